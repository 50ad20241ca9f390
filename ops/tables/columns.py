"""The columns that several tables share, with one type, unit and meaning wherever they appear, and those of views.

A column of one table alone stands with that table (`ops.tables.table`).
"""

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


TEXT, INTEGER, COUNT, REAL, TRUTH = pl.String, pl.Int32, pl.Int64, pl.Float64, pl.Boolean

COLUMNS: Mapping[str, Column] = MappingProxyType(
    {
        name: Column(name, dtype, unit, comment)
        for name, dtype, unit, comment in (
            ("experiment", TEXT, "", "name of the experiment, as its YAML file declares it"),
            ("seed", INTEGER, "", "seed of the replicate"),
            # what ran
            ("task", TEXT, "", "task: number, letter, letter_matched or a canonical one"),
            ("key", TEXT, "", "cache key: sha256 of spec, inputs and code"),
            # training and accuracy
            ("step", INTEGER, "optimiser steps", "optimiser steps taken so far"),
            ("loss", REAL, "nats", "mean cross-entropy on the last token"),
            ("hop", INTEGER, "hops", "hop class; NULL = all classes"),
            ("accuracy", REAL, "share", "share of answers that are right, 0 to 1"),
            ("n", COUNT, "", "number of inputs"),
            # heads
            ("layer", INTEGER, "", "layer, from 0"),
            ("head", INTEGER, "", "head of the layer, from 0"),
            ("query", TEXT, "", "query kind: last (the last token) or hop (the positions of the hop chain)"),
            ("tau", REAL, "attention mass", "temperature of the weights over swaps"),
            ("positional_score", REAL, "", "positional score, mean over inputs, in [0, 1]"),
            ("symbolic_score", REAL, "", "symbolic score, mean over inputs, in [0, 1]"),
            ("own_mass", REAL, "attention mass", "attention of the query to its own position, mean over inputs"),
            ("frequency_id", INTEGER, "", "RoPE plane, from 1 (the fastest if plane_frequencies is unset)"),
            ("theta", REAL, "rad/position", "angle of the RoPE plane"),
            # mechanism
            ("example", INTEGER, "", "number of the example, from 0"),
            ("position", INTEGER, "", "position in the sequence, from 0"),
            ("role", TEXT, "", "query or key"),
            ("x", REAL, "", "first coordinate in the RoPE plane, before rotation"),
            ("y", REAL, "", "second coordinate in the RoPE plane, before rotation"),
            ("token", TEXT, "", "token, as text"),
            # theory
            ("length", INTEGER, "tokens", "length of the sequence"),
            ("source", TEXT, "", "where the value comes from"),
            ("bound", REAL, "", "upper bound"),
            # interventions, canonical tasks, length
            ("mode", TEXT, "", "remove (the planes leave the logits), freeze (they stop rotating) or none (intact)"),
            ("band_low", INTEGER, "", "lowest frequency ID of the band; NULL for the intact model"),
            ("band_high", INTEGER, "", "highest frequency ID of the band; NULL for the intact model"),
            ("layers", pl.List(pl.Int32), "", "layers that are changed; none for the intact model"),
            ("heads", pl.List(pl.Int32), "", "heads that are changed in these layers; NULL = all"),
            ("canonical_task", TEXT, "", "canonical task: index, retrieval or partial_induction"),
            ("frequency_ids", pl.List(pl.Int32), "", "frequency IDs that the head has; 0 = a plane that stands still"),
            ("lengthening", TEXT, "", "inert (tokens in front of the window) or active (the answer anywhere in it)"),
            ("inference", TEXT, "", "change at inference: none, log_n, position_interpolation or yarn"),
            # language models
            ("model", TEXT, "", "name of the language model"),
            ("prompts", TEXT, "", "name of the prompt set"),
            (
                "null_kind",
                TEXT,
                "",
                "none (the model), random-logits (each head's mean and spread) or untrained (a twin)",
            ),
            ("run", INTEGER, "", "number of the run, which is its seed"),
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
