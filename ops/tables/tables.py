"""Every table of the warehouse: columns, types, units, comments. Conventions:

long format, one fact a row; layers and heads count from 0, frequency IDs from 1, positions from 0, steps are optimiser
steps, times are seconds. NULL means "not defined", never "failed".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from ops.tables.columns import COLUMNS, Column


class TableError(ValueError):
    """Rows that do not fit their table. One sentence with table, column and remedy."""


@dataclass(frozen=True)
class Table:
    """A base table. `comment` says what one row is; `columns` begin with experiment and seed."""

    name: str
    comment: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, DataType | DataTypeClass]:
        """Column name → Polars type, in order."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """The table without rows."""
        return pl.DataFrame(schema=self.schema)


def _table(name: str, comment: str, columns: str, **comments: str) -> Table:
    """A table of the shared columns named in `columns`; `comments` say what a column means in this table."""
    chosen = []
    for column in ["experiment", "seed", *columns.split()]:
        shared = COLUMNS[column]
        chosen.append(Column(column, shared.dtype, shared.unit, comments.pop(column, shared.comment)))
    if comments:
        raise TableError(f"{name}: comments on columns that it does not have: {', '.join(comments)}")
    return Table(name, comment, tuple(chosen))


TABLES: Mapping[str, Table] = MappingProxyType(
    {
        table.name: table
        for table in (
            _table(
                "experiments",
                "One row an experiment and seed that was declared.",
                "task study n_layers n_heads width sequence_length hops frequencies n_parameters spec key",
                key="key of its newest stage that all its results depend on: the trained checkpoints",
            ),
            _table(
                "artifacts",
                "One row a published artifact: what was computed, where, how long it took, and from what.",
                "stage key bytes wall_s created_at device torch_version git_revision inputs",
            ),
            _table(
                "training_log",
                "One row a logged training step.",
                "step loss learning_rate steps_per_s grad_norm",
                loss="mean cross-entropy of the step's batch on the last token",
            ),
            _table(
                "accuracy",
                "One row a checkpoint, split and hop class: how often the model names the right token.",
                "step split hop accuracy loss n",
                n="number of sequences",
            ),
            _table(
                "head_scores",
                "One row a checkpoint, layer, head, query kind and tau: the mean positional and symbolic score "
                "(arXiv 2511.11579 §3).",
                "step layer head query tau positional_score symbolic_score entropy own_mass negligible_mass n",
                n="number of queries averaged over",
            ),
            _table(
                "frequency_use",
                "One row a checkpoint, layer, head and frequency ID: the largest contribution of the RoPE plane to a "
                "logit of the last-token query (arXiv 2605.31558 App. G).",
                "step layer head frequency_id theta mean q25 q50 q75",
            ),
            _table(
                "shortcut_accuracy",
                "One row a task, shortcut and hop class: how often a rule that follows no path names the right token.",
                "task shortcut hop accuracy n",
                accuracy="share of sequences on which the shortcut is right",
                n="number of sequences",
            ),
            _table(
                "information_flow",
                "One row a flow, example, layer and position: where the position attends most and what it holds after "
                "the layer (arXiv 2605.31558 §3.2). Layer -1 is the input.",
                "step flow example hop layer position link attends_to weight holds_token ideal_attends_to agrees",
                hop="hop class of the example",
                layer="layer, from 0; -1 = the input itself",
                weight="attention that attends_to gets, mean over heads",
                ideal_attends_to="position that the task's function would look at, given what positions hold so far",
                agrees="whether positions holding the token that the ideal looks at get over half of the attention",
            ),
            _table(
                "flow_agreement",
                "One row a checkpoint and layer: how far its information flow is ideal (arXiv 2605.31558 §3.2).",
                "step layer agreement answer_held n",
            ),
            _table(
                "value_patching",
                "One row a hop class, layer and edge of the chain: what the model answers when that reader gets the "
                "value of an input with another answer.",
                "step hop layer reader_link read_link follows keeps n",
                hop="hop class of the inputs",
                layer="layer that is patched; NULL = all layers at once",
                n="number of inputs, all answered rightly without the patch",
            ),
            _table(
                "qk_plane",
                "One row an example, layer, head, position and role: query or key in the RoPE plane that the head uses "
                "most, before rotation (arXiv 2605.31558 Fig. 4B).",
                "step example layer head position role frequency_id theta x y token token_kind points_back",
                position="position of the query or key in the sequence",
                token="token at the position, as text",
            ),
            _table(
                "constructions",
                "One row a construction, length and kind of inputs: does one softmax head with one RoPE plane compute "
                "the function (arXiv 2605.31558 Thm 3.1).",
                "construction sample times length theta omega beta smallest_beta exact_share positional_score "
                "symbolic_score n_positions n",
                length="n: position of the query from 0, so n + 1 tokens",
                beta="sharpness of the softmax, from the least discrepancy by the argument of Lemma F.1",
                exact_share="share of defined positions (chained: of inputs, last token) that hold the right token",
                n="number of inputs",
            ),
            _table(
                "discrepancy",
                "One row a source, angle and length: largest minus second-largest logit over inputs, beside the bounds "
                "(arXiv 2605.31558 Def. 3.1, Thm 3.2). Constructions have beta 1; trained heads their own scale.",
                "source layer head length theta measured measured_mean measured_min bound bound_corrected bound_sharp "
                "in_range n",
                source="whose logits: index or retrieval (the constructions), or trained",
                measured="largest discrepancy over the inputs of this length",
                layer="layer of a trained head (with index or retrieval: the head whose angle it is); else NULL",
                head="trained head (with index or retrieval: the head whose angle it is); else NULL",
                length="n: position of the query from 0, so n + 1 tokens",
                theta="angle of the RoPE plane; NULL for a trained head, which has several",
                bound="upper bound that the theorem prints",
                n="number of inputs; NULL where all are covered exactly",
            ),
            _table(
                "exclusion",
                "One row a layer and head: variance of the last query's logits beside the bound by its positional "
                "and symbolic deviations (arXiv 2511.11579 Thm 1), exact over all permutations.",
                "step layer head variance bound within_share tightest sampled_bound sampled_error n",
                bound="upper bound that the theorem gives, averaged over inputs",
                n="number of inputs",
            ),
            _table(
                "score_variants",
                "One row a layer, head, tau and variant of the scores of arXiv 2511.11579 §3, on the same inputs, last "
                "query.",
                "step layer head variant tau positional_score symbolic_score n",
                n="number of inputs",
            ),
            _table(
                "frequency_ablation",
                "One row a band, mode, set of layers (and heads) and hop class: accuracy of a trained model whose RoPE "
                "planes are removed or frozen at inference (arXiv 2511.11579 §5).",
                "step mode band_low band_high layers heads hop accuracy n",
                n="number of sequences",
            ),
            _table(
                "ablation_scores",
                "One row a band, mode, set of layers (and heads) that are changed, and scored layer and head: the mean "
                "scores under the ablation, at the last token.",
                "step mode band_low band_high layers heads layer head tau positional_score symbolic_score n",
                layer="layer of the scored head",
                head="scored head",
                n="number of sequences averaged over",
            ),
            _table(
                "canonical_accuracy",
                "One row a canonical task, set of angles and answer position: an attention-only head trained with "
                "those angles (arXiv 2511.11579 §5).",
                "canonical_task length frequency_ids thetas answer_position accuracy chance positional_score "
                "symbolic_score n",
                length="tokens before the query",
                positional_score="positional score of the head, in [0, 1]; NULL at a single answer position",
                symbolic_score="symbolic score of the head, in [0, 1]; NULL at a single answer position",
                n="number of sequences",
            ),
            _table(
                "canonical_plane",
                "One row a canonical task, set of angles, RoPE plane, source, role and token: queries and keys before "
                "RoPE, turned to a common direction and scaled to a largest norm of 1.",
                "canonical_task length frequency_ids plane frequency_id theta source role item_id token x y",
                length="tokens before the query",
                frequency_id="frequency ID of the plane; 0 = it stands still",
                source="trained, or construction (arXiv 2605.31558 Thm 3.1)",
                item_id="integer that the token asks for, or its entity; NULL for a key that has none",
            ),
            _table(
                "length_accuracy",
                "One row a checkpoint, way to lengthen, change at inference, length and hop class: accuracy with a "
                "longer target window (arXiv 2605.31558 §3.6).",
                "step lengthening inference length hop accuracy ci_low ci_high n n_prefixes",
                n="number of sequences",
            ),
            _table(
                "length_accuracy_by_prefix",
                "One row as in length_accuracy and prefix: the independent clusters behind its intervals.",
                "step lengthening inference length hop prefix n_right n",
                n="number of sequences behind the prefix",
            ),
            _table(
                "length_heads",
                "One row a checkpoint, layer, head, query kind and length: whether the head still finds its target, "
                "the token that it attends to most at the trained length.",
                "step layer head query length target_mass kept_share lead discrepancy least_discrepancy "
                "largest_discrepancy n",
                n="number of queries",
            ),
            _table(
                "lm_head_scores",
                "One row a language model, prompt set, null kind, layer, head and tau: scores over blocks of tokens, "
                "averaged over prompts (arXiv 2511.11579 §4).",
                "model prompts null_kind layer head tau positional_score symbolic_score own_mass sink_mass layer_type "
                "n",
                n="number of prompts on which the head has a score",
                own_mass="attention of the query to its own position, mean over prompts; NULL for random logits",
                sink_mass="attention to position 0, mean over prompts; NULL for random logits",
            ),
            _table(
                "lm_prompt_scores",
                "One row a language model, prompt set, null kind, prompt, layer, head and tau: what lm_head_scores "
                "averages.",
                "model prompts null_kind prompt layer head tau positional_score symbolic_score answered",
            ),
            _table(
                "lm_frequency_scores",
                "One row a language model, prompt set, null kind, layer, head and frequency ID: scores of the RoPE "
                "plane alone, averaged over prompts.",
                "model prompts null_kind layer head frequency_id theta positional_score symbolic_score "
                "logit_variance_share",
                positional_score="positional score of the plane alone, in [0, 1]; NULL where the plane is zero",
                symbolic_score="symbolic score of the plane alone, in [0, 1]; NULL where the plane is zero",
            ),
            _table(
                "lm_verification",
                "One row a language model, prompt set, verified layer, head and tau: closed form beside brute force.",
                "model prompts layer head tau positional_score symbolic_score brute_positional brute_symbolic "
                "score_error",
            ),
            _table(
                "lm_length_accuracy",
                "One row a prompted language model, task, length and run (arXiv 2605.31558 §3.7).",
                "model task length run accuracy n screened",
                n="number of prompts",
                length="target window of the prompt, in tokens of the task",
            ),
            _table(
                "lm_answers",
                "One row a prompted language model, task, length, run and question: what it replied.",
                "model task length run question expected answer raw finish_reason prompt_tokens completion_tokens",
                length="target window of the prompt, in tokens of the task",
            ),
            _table(
                "paper_values",
                "One row a figure read from a paper; experiment and seed are NULL.",
                "source item layer length value",
                layer="layer the value belongs to; NULL where it belongs to none",
                length="target window of the prompt; NULL where there is none",
            ),
            _table(
                "claim_statements",
                "One row a claim: what a paper states, how it is measured here, and what counts as reproduced; "
                "experiment and seed are NULL.",
                "id source place_in_source statement measure paper_value criterion",
                source="PVS = arXiv 2605.31558, DPS = arXiv 2511.11579, ours = stated by this project",
            ),
        )
    }
)


def frame_for(table: str, frame: pl.DataFrame, experiment: str | None, seed: int | None) -> pl.DataFrame:
    """`frame` as rows of `table`: experiment and seed put first, columns ordered, types cast.

    `frame` has the table's other columns in any order. Raises TableError on an unknown table, an unknown or missing
    column, a value that its type cannot hold, and on NaN or infinity (what is not defined is NULL).
    """
    declared = _declared(table)
    wanted = [name for name in declared.schema if name not in ("experiment", "seed")]
    if unknown := [name for name in frame.columns if name not in wanted]:
        raise TableError(f"{table}: unknown column {unknown[0]}; its columns are {', '.join(wanted)}")
    if missing := [name for name in wanted if name not in frame.columns]:
        raise TableError(f"{table}: column {missing[0]} is missing; add it, NULL where it is not defined")
    owner = [pl.lit(experiment, pl.String).alias("experiment"), pl.lit(seed, pl.Int32).alias("seed")]
    columns = []
    for name in wanted:
        try:
            columns.append(frame[name].cast(declared.schema[name], strict=True))
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise TableError(f"{table}: column {name} does not fit {declared.schema[name]}: {reason}") from None
        if declared.schema[name] == pl.Float64 and (n := int((~columns[-1].is_finite()).sum())):
            raise TableError(f"{table}: column {name} has {n} values that are NaN or infinite; use NULL if undefined")
    return pl.DataFrame(columns).with_columns(owner).select(list(declared.schema))


def write_table(folder: Path, table: str, frame: pl.DataFrame) -> Path:
    """Write `<folder>/<table>.parquet`, equal bytes for equal rows. `frame` comes from `frame_for`.

    Raises TableError if the columns or types are not exactly the table's, FileExistsError if the file exists.
    """
    declared = _declared(table)
    if dict(frame.schema) != declared.schema or frame.columns != list(declared.schema):
        raise TableError(f"{table}: columns or types are not the table's; pass the rows through frame_for")
    path = folder / f"{table}.parquet"
    with path.open("xb") as file:
        frame.rechunk().write_parquet(file, compression="zstd", statistics=True)
    return path


def _declared(table: str) -> Table:
    if table not in TABLES:
        raise TableError(f"{table}: no such table; the tables are {', '.join(TABLES)}")
    return TABLES[table]
