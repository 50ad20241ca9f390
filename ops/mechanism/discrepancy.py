"""Discrepancy of trained heads: largest minus second-largest logit of the last query, at lengths beyond training.

Inputs are lengthened in front (`ops.length.lengthening`): nothing the model needs moves (arXiv 2605.31558 §3.6).
"""

from collections.abc import Sequence

import polars as pl
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.length.lengthening import joined, lengthen
from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ
from ops.scores.frequency import frequency_use, weighted_frequency_id
from ops.spec.task import TaskSpec
from ops.tasks.sequences import Seed
from ops.theory.discrepancy import (
    Discrepancy,
    index_discrepancy,
    index_printed_bound,
    retrieval_discrepancy,
    retrieval_printed_bound,
)

_TOKENS_PER_CHUNK = 2**13
_PREFIXES = 8
_FIGURE_LETTERS = 8  # alphabet of arXiv 2605.31558 Fig. 5A, for a task whose keys are matched by no letters


def logit_gaps(model: GPTJ, ids: Int[Tensor, "n position"]) -> Float[Tensor, "n layer head"]:
    """Largest minus second-largest logit of the last query, itself among the keys, scaled as in attention."""
    rotations = model.rotations(0, ids.shape[1])
    parts = []
    with evaluating(model):
        for chunk in ids.split(max(1, _TOKENS_PER_CHUNK // ids.shape[1])):
            layers = []
            for state, rotation in zip(model.layers(chunk.to(model.lm_head.weight.device)), rotations, strict=True):
                query = rotation.last().apply_query(state.query[:, :, -1:])
                top = (query @ rotation.apply_key(state.key).mT)[:, :, 0].topk(2, -1).values
                layers.append((top[..., 0] - top[..., 1]).double().cpu())
            parts.append(torch.stack(layers, 1))
    return torch.cat(parts)


def mean_angles(model: GPTJ, ids: Int[Tensor, "n position"]) -> Float[Tensor, "layer head"]:
    """Angle of each head's mean frequency ID, weights u² (arXiv 2605.31558 App. G), radians a position.

    IDs are those of the planes' angles (`ModelSpec.plane_frequencies`); a head that uses no such plane has angle 0.
    """
    ids_used = weighted_frequency_id(frequency_use(model, ids).mean, ids=model.spec.plane_frequencies)
    if model.spec.plane_frequencies is not None:
        ids_used = ids_used.nan_to_num(nan=torch.inf)
    return model.spec.rope_base ** (-(ids_used - 1) / model.spec.n_frequencies)


def trained_discrepancy_frame(
    model: GPTJ, task: TaskSpec, lengths: Sequence[int], n_inputs: int, seed: Seed
) -> pl.DataFrame:
    """Rows of `discrepancy`: of each trained head (source "trained"), and of both constructions at the head's angle.

    `lengths` are n: keys before the last query; the trained n is always among them. `n_inputs` inputs a length stand
    behind at most 8 prefixes. Raises ValueError as `ops.length.lengthening.lengthen` does.
    """
    trained = task.sequence_length - 1
    wanted = sorted({trained, *(n for n in lengths if n > trained)})
    n_prefixes = min(_PREFIXES, n_inputs)
    inputs = lengthen(task, wanted[-1] + 1, n_prefixes=n_prefixes, n_sequences=-(-n_inputs // n_prefixes), seed=seed)
    heads = [(layer, head) for layer in range(model.spec.n_layers) for head in range(model.spec.n_heads)]
    rows: list[dict] = []
    for n in wanted:
        gaps = logit_gaps(model, joined(inputs, n + 1).flatten(0, 1))
        for layer, head in heads:
            over = gaps[:, layer, head]
            found = Discrepancy(*(part[None].numpy() for part in (over.max(), over.mean(), over.min())))
            rows += _rows("trained", layer, head, [n], None, found, [None], len(over))
    angles = mean_angles(model, inputs.ids.flatten(0, 1))
    n_letters = task.alphabet or _FIGURE_LETTERS
    for layer, head in heads:
        theta = float(angles[layer, head])
        index, retrieval = index_discrepancy(wanted, theta), retrieval_discrepancy(wanted, theta, n_letters)
        printed = index_printed_bound(wanted, theta), retrieval_printed_bound(wanted, theta, n_letters)
        rows += _rows("index", layer, head, wanted, theta, index, printed[0], None)
        rows += _rows("retrieval", layer, head, wanted, theta, retrieval, printed[1], None)
    return pl.DataFrame(rows, infer_schema_length=None)


def _rows(source, layer, head, lengths, theta, found: Discrepancy, bounds, n: int | None) -> list[dict]:
    return [
        {
            "source": source,
            "layer": layer,
            "head": head,
            "length": length,
            "theta": theta,
            "measured": float(found.maximum[k]),
            "measured_mean": float(found.mean[k]),
            "measured_min": float(found.minimum[k]),
            "bound": None if bounds[k] is None else float(bounds[k]),
            "bound_corrected": None,
            "bound_sharp": None,
            "in_range": None,
            "n": n,
        }
        for k, length in enumerate(lengths)
    ]
