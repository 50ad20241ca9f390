"""Every column name of the warehouse, with one type, unit and meaning wherever it appears."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl
from polars.datatypes import DataType, DataTypeClass


@dataclass(frozen=True)
class Column:
    """A column: name, Polars type, unit ("" if it has none) and what it means."""

    name: str
    dtype: DataType | DataTypeClass
    unit: str
    comment: str

    @property
    def description(self) -> str:
        """The comment with the unit, as `COMMENT ON COLUMN` shows it."""
        return f"{self.comment} [{self.unit}]" if self.unit else self.comment


_TEXT, _INTEGER, _COUNT, _REAL, _TRUTH = pl.String, pl.Int32, pl.Int64, pl.Float64, pl.Boolean

COLUMNS: Mapping[str, Column] = MappingProxyType(
    {
        name: Column(name, dtype, unit, comment)
        for name, dtype, unit, comment in (
            ("experiment", _TEXT, "", "name of the experiment, as its YAML file declares it"),
            ("seed", _INTEGER, "", "seed of the replicate"),
            # what ran
            ("task", _TEXT, "", "task: number, letter, letter_matched or a canonical one"),
            ("study", _TEXT, "", "study that declares the experiment, e.g. quick or paper"),
            ("n_layers", _INTEGER, "layers", "number of layers"),
            ("n_heads", _INTEGER, "heads", "number of attention heads a layer"),
            ("width", _INTEGER, "dimensions", "dimensions of the residual stream"),
            ("sequence_length", _INTEGER, "tokens", "tokens a sequence, the query included"),
            ("hops", pl.List(pl.Int32), "hops", "hop classes of the task"),
            ("frequencies", pl.List(pl.Int32), "", "frequency IDs (planes) that rotate, from 1"),
            ("n_parameters", _COUNT, "parameters", "number of trained parameters"),
            ("spec", _TEXT, "JSON", "the whole experiment as canonical JSON"),
            ("key", _TEXT, "", "cache key: sha256 of spec, inputs and code"),
            ("stage", _TEXT, "", "stage that computed it, e.g. head_scores"),
            ("bytes", _COUNT, "bytes", "size of its files"),
            ("wall_s", _REAL, "s", "time it took to compute"),
            ("created_at", _TEXT, "ISO 8601, UTC", "when it was published"),
            ("device", _TEXT, "", "device that computed it"),
            ("torch_version", _TEXT, "", "version of torch that computed it"),
            ("git_revision", _TEXT, "", "git revision of the project; NULL outside a repository"),
            ("inputs", pl.List(pl.String), "", "keys of the artifacts it was computed from"),
            # training and accuracy
            ("step", _INTEGER, "optimiser steps", "optimiser steps taken so far"),
            ("loss", _REAL, "nats", "mean cross-entropy on the last token"),
            ("learning_rate", _REAL, "", "learning rate of the step"),
            ("steps_per_s", _REAL, "steps/s", "training speed since the last row"),
            ("grad_norm", _REAL, "", "norm of the gradient before clipping"),
            ("split", _TEXT, "", "split: val or test"),
            ("hop", _INTEGER, "hops", "hop class; NULL = all classes"),
            ("accuracy", _REAL, "share", "share of answers that are right, 0 to 1"),
            ("n", _COUNT, "", "number of inputs"),
            ("shortcut", _TEXT, "", "name of the rule"),
            # heads
            ("layer", _INTEGER, "", "layer, from 0"),
            ("head", _INTEGER, "", "head of the layer, from 0"),
            ("query", _TEXT, "", "query kind: last (the last token) or hop (the positions of the hop chain)"),
            ("tau", _REAL, "attention mass", "temperature of the weights over swaps"),
            ("positional_score", _REAL, "", "positional score, mean over inputs, in [0, 1]"),
            ("symbolic_score", _REAL, "", "symbolic score, mean over inputs, in [0, 1]"),
            ("entropy", _REAL, "nats", "entropy of the query's attention row, mean over inputs"),
            ("own_mass", _REAL, "attention mass", "attention of the query to its own position, mean over inputs"),
            ("negligible_mass", _REAL, "share", "weight of the swaps that compare next to no attention"),
            ("frequency_id", _INTEGER, "", "RoPE plane, from 1 (the fastest if plane_frequencies is unset)"),
            ("theta", _REAL, "rad/position", "angle of the RoPE plane"),
            ("mean", _REAL, "logit x sqrt(head dimension)", "mean over inputs of the largest contribution"),
            ("q25", _REAL, "logit x sqrt(head dimension)", "lower quartile over inputs"),
            ("q50", _REAL, "logit x sqrt(head dimension)", "median over inputs"),
            ("q75", _REAL, "logit x sqrt(head dimension)", "upper quartile over inputs"),
            # mechanism
            ("example", _INTEGER, "", "number of the example, from 0"),
            ("position", _INTEGER, "", "position in the sequence, from 0"),
            ("attends_to", _INTEGER, "", "position that gets the most attention"),
            ("weight", _REAL, "attention mass", "attention that this position gets"),
            ("holds_token", _TEXT, "", "token whose content the position holds after this layer, as text"),
            ("ideal_attends_to", _INTEGER, "", "position that the ideal function copies from"),
            ("agrees", _TRUTH, "", "whether attends_to is ideal_attends_to"),
            ("role", _TEXT, "", "query or key"),
            ("x", _REAL, "", "first coordinate in the RoPE plane, before rotation"),
            ("y", _REAL, "", "second coordinate in the RoPE plane, before rotation"),
            ("token", _TEXT, "", "token, as text"),
            ("flow", _TEXT, "", "model (read from its attention) or ideal (the task's function layer by layer)"),
            ("link", _INTEGER, "", "place on the hop chain: 0 = last token, hop = target; NULL off the chain"),
            ("agreement", _REAL, "share", "share of the chain's asking positions at which the flow is the ideal one"),
            ("answer_held", _REAL, "share", "share of inputs whose last token holds the answer after the layer"),
            ("reader_link", _INTEGER, "", "place on the hop chain of the position that reads"),
            ("read_link", _INTEGER, "", "place on the hop chain of the position read; NULL = one off the chain"),
            ("follows", _REAL, "share", "share of inputs that answer with the patched-in token"),
            ("keeps", _REAL, "share", "share of inputs that still answer with their own token"),
            ("token_kind", _TEXT, "", "integer or letter; letter-digit or letter-letter"),
            ("points_back", _INTEGER, "positions", "how far back the token points; NULL if nowhere"),
            # theory
            ("construction", _TEXT, "", "construction: index or retrieval"),
            ("length", _INTEGER, "tokens", "length of the sequence"),
            ("omega", _REAL, "rad/letter", "angle between neighbouring letters; NULL for index"),
            ("beta", _REAL, "", "sharpness of the softmax"),
            ("exact_share", _REAL, "share", "share of inputs on which the construction is exact"),
            ("source", _TEXT, "", "where the value comes from"),
            ("measured", _REAL, "", "measured value"),
            ("bound", _REAL, "", "upper bound"),
            ("sample", _TEXT, "", "inputs: exhaustive, random, task (the task's own), or chained (several layers)"),
            ("times", _INTEGER, "", "applications in a row"),
            ("smallest_beta", _REAL, "", "least sharpness that is exact on every input of this length, by bisection"),
            ("n_positions", _COUNT, "", "number of positions at which the function is defined"),
            ("measured_mean", _REAL, "logit", "mean over inputs"),
            ("measured_min", _REAL, "logit", "smallest over inputs"),
            ("bound_corrected", _REAL, "logit", "corrected bound: ceil((n - 1) / 2) for n in 2 pi^2 / n^2"),
            ("bound_sharp", _REAL, "logit", "bound that some angle attains: 1 - cos(2 pi / (ceil(n / 2) + 1))"),
            ("in_range", _TRUTH, "", "whether the length is one that the theorem is about"),
            ("within_share", _REAL, "share", "share of inputs whose variance is within the bound"),
            ("tightest", _REAL, "", "largest variance / bound over inputs"),
            ("sampled_bound", _REAL, "logit^2", "the bound estimated from random permutations, mean over inputs"),
            ("sampled_error", _REAL, "logit^2", "standard error of sampled_bound"),
            ("variant", _TEXT, "", "what is compared (weights or logits) over which changes (swaps or permutations)"),
            ("variance", _REAL, "", "variance of the logits over the keys, averaged over inputs"),
            # interventions, canonical tasks, length
            ("mode", _TEXT, "", "remove (the planes leave the logits), freeze (they stop rotating) or none (intact)"),
            ("band_low", _INTEGER, "", "lowest frequency ID of the band; NULL for the intact model"),
            ("band_high", _INTEGER, "", "highest frequency ID of the band; NULL for the intact model"),
            ("layers", pl.List(pl.Int32), "", "layers that are changed; none for the intact model"),
            ("heads", pl.List(pl.Int32), "", "heads that are changed in these layers; NULL = all"),
            ("canonical_task", _TEXT, "", "canonical task: index, retrieval or partial_induction"),
            ("frequency_ids", pl.List(pl.Int32), "", "frequency IDs that the head has; 0 = a plane that stands still"),
            ("plane", _INTEGER, "", "plane of the head, from 1, in the order of frequency_ids"),
            ("item_id", _INTEGER, "", "integer that the token asks for, or its entity"),
            ("chance", _REAL, "share", "accuracy of a guess that has not read the sequence"),
            ("thetas", pl.List(pl.Float64), "rad/position", "angles of these planes, in the same order"),
            ("answer_position", _INTEGER, "", "position of the answer; NULL = all positions"),
            ("ci_low", _REAL, "share", "lower end of the 95 % interval of accuracy, over prefixes"),
            ("ci_high", _REAL, "share", "upper end of the 95 % interval of accuracy, over prefixes"),
            ("n_prefixes", _INTEGER, "", "number of independent prefixes"),
            ("prefix", _INTEGER, "", "number of the prefix, from 0"),
            ("n_right", _COUNT, "", "number of right answers"),
            ("lengthening", _TEXT, "", "inert (tokens in front of the window) or active (the answer anywhere in it)"),
            ("inference", _TEXT, "", "change at inference: none, log_n, position_interpolation or yarn"),
            ("target_mass", _REAL, "attention mass", "mean attention on the target"),
            ("kept_share", _REAL, "share", "share of queries at which the target still gets the most attention"),
            ("lead", _REAL, "logit", "mean of the target's logit minus the largest other one; below 0 = lost"),
            ("discrepancy", _REAL, "logit", "mean of the largest minus the second-largest logit"),
            ("least_discrepancy", _REAL, "logit", "smallest discrepancy over queries"),
            ("largest_discrepancy", _REAL, "logit", "largest discrepancy over queries"),
            # language models
            ("model", _TEXT, "", "name of the language model"),
            ("prompts", _TEXT, "", "name of the prompt set"),
            (
                "null_kind",
                _TEXT,
                "",
                "none (the model), random-logits (each head's mean and spread) or untrained (a twin)",
            ),
            ("prompt", _INTEGER, "", "number of the prompt within its set, from 0"),
            ("answered", _TRUTH, "", "whether the model's first guess is the prompt's answer; NULL if it has none"),
            ("brute_positional", _REAL, "", "positional score by brute force"),
            ("brute_symbolic", _REAL, "", "symbolic score by brute force"),
            ("score_error", _REAL, "", "larger distance of the two scores from brute force"),
            ("expected", _TEXT, "", "the right answer"),
            ("answer", _TEXT, "", "answer read strictly from the raw text; NULL if it is not one symbol"),
            ("raw", _TEXT, "", "what the model replied, as it came; empty if it said nothing"),
            (
                "finish_reason",
                _TEXT,
                "",
                "why it stopped: stop, length (cut off), refusal, unknown, or as the server says",
            ),
            ("prompt_tokens", _COUNT, "tokens", "tokens of the prompt that were counted; NULL if they were not"),
            ("completion_tokens", _COUNT, "tokens", "tokens of the reply, reasoning included; NULL if not counted"),
            ("question", _INTEGER, "", "number of the question within its run, from 0"),
            ("sink_mass", _REAL, "attention mass", "attention to the sink (position 0 and BOS), mean over prompts"),
            ("layer_type", _TEXT, "", "attention of the layer: full or sliding"),
            ("logit_variance_share", _REAL, "share", "share of the head's logit variance that the plane carries"),
            ("run", _INTEGER, "", "number of the run, which is its seed"),
            ("screened", _TRUTH, "", "whether the letter accuracy at 16 reached the spec's screening"),
            # papers
            ("item", _TEXT, "", "what the value is, e.g. number_frequency_id or letter_accuracy_mean/<model>"),
            ("value", _REAL, "", "the paper's value"),
            ("id", _TEXT, "", "short name of the claim"),
            ("place_in_source", _TEXT, "", "section, figure or theorem of the source"),
            ("statement", _TEXT, "", "what is claimed"),
            ("measure", _TEXT, "", "what is computed to decide it"),
            ("paper_value", _TEXT, "", "value that the paper reports; values with 'about' are read off plots"),
            ("criterion", _TEXT, "", "what the computed value must satisfy to count as reproduced"),
        )
    }
)

VIEW_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "study": "study that declares the experiment, e.g. quick or paper",
        "gamma": "tolerance of purity: one score >= 1 - gamma and the other <= gamma",
        "kind": "kind of the head: positional, symbolic or mixed",
        "since_step": "first step from which on the head is pure to the end; NULL for a mixed head",
        "weighted_id_linear": "mean frequency ID, weighted by use",
        "weighted_id_squared": "mean frequency ID, weighted by squared use; the paper's table matches this one",
        "weighted_id": "mean frequency ID, weighted by squared use, mean over seeds",
        "low": "lowest value over seeds",
        "high": "highest value over seeds",
        "n_seeds": "number of seeds behind the row",
        "n_runs": "number of runs (experiment and seed) behind the row",
        "last_step": "last step that was measured",
        # claims
        "interval_low": "lowest value over runs, or lower end of their own intervals; NULL for one run without",
        "interval_high": "highest value over runs, or upper end of their own intervals; NULL for one run without",
        "verdict": "reproduced, not reproduced or not run",
        "basis": "study whose runs decide the claim: paper, or quick where the claim names no size",
        "holds": "whether the criterion holds on this run",
        "n_holds": "number of runs on which the criterion holds",
        "n_tasks": "number of tasks that must have run for a verdict",
        "detail": "measured numbers behind the verdict, as text",
        "described": "the experiment with its size, as text",
        # learning
        "threshold": "accuracy that must be reached",
        "maximum": "highest accuracy of the run",
        "maximal_at_step": "first step whose accuracy is within 0.001 of the run's maximum",
        "earliest": "earliest step over seeds",
        "latest": "latest step over seeds",
        "normalised": "entropy between the layer's lowest (0) and highest (1) over training; NULL if it never changes",
        "n_pure": "number of heads of this kind that are pure from this step to the end",
        "name": "name of the head, e.g. L3, or L3H1 where layers have several",
        "names": "names of the pure heads; in brackets the number of seeds if not all",
        "lane": "row within the layer, from 0, for drawing",
        "n_lanes": "number of rows a layer, for drawing",
        "panel": "panel of the figure",
        "series": "line in the panel",
        "path": "line of one seed's head, for drawing",
        "place": "where the checkpoint lies in the run: start, between or end",
        # frequencies
        "next_step": "step of the next checkpoint; NULL at the last",
        "n_frequencies": "number of RoPE planes of a head",
        "paper_id": "mean frequency ID in the paper's Table 1; NULL where the model's size or planes differ",
        "difference": "weighted_id minus paper_id",
        "id_from": "frequency ID - 0.5, for drawing",
        "id_to": "frequency ID + 0.5, for drawing",
        "share": "share of the plane in the layer's squared use",
        "mean_use": "mean use of the plane",
        # what ran
        "solver": "the trained model, or the name of a shortcut",
        "is_model": "whether the solver is the trained model",
        "hop_class": "hop class, as text",
        "lowest_accuracy": "lowest test accuracy over hop classes at the last checkpoint",
        "accuracy_by_hop": "test accuracy of each hop class at the last checkpoint, as text",
        "n_positional": "number of pure positional heads at the end",
        "n_symbolic": "number of pure symbolic heads at the end",
        "positional_heads": "names of the pure positional heads",
        "symbolic_heads": "names of the pure symbolic heads",
        "n_artifacts": "number of published artifacts",
        "finished_at": "when the last artifact was published",
        "n_experiments": "number of experiments",
        "experiments": "names of the experiments, as text",
    }
)
