"""A trained model under a sweep of ablations, as rows of the tables `frequency_ablation` and `ablation_scores`."""

from collections.abc import Callable
from typing import Any

import polars as pl
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.ablation.interventions import INPUTS_AT_ONCE, Ablation, ablated_answers, score_sweep, sweep
from ops.model.gptj import GPTJ
from ops.scores.accuracy import answers
from ops.scores.heads import score_heads
from ops.spec.ablation import AblationSpec
from ops.tasks.dataset import stratified_sample
from ops.tasks.sequences import Sequences

Report = Callable[[int, int], None]

INTACT = {"mode": "none", "band_low": None, "band_high": None, "layers": [], "heads": None}
_WHAT = {
    "mode": pl.String,
    "band_low": pl.Int64,
    "band_high": pl.Int64,
    "layers": pl.List(pl.Int64),
    "heads": pl.List(pl.Int64),
}


def accuracy_under_ablation(
    model: GPTJ, test: Sequences, spec: AblationSpec, step: int, report: Report = lambda done, of: None
) -> pl.DataFrame:
    """Rows of `frequency_ablation`: the intact model, then every ablation, each by hop class and over all (null).

    `report(done, of)` is called after each ablation.
    """
    sample = stratified_sample(test, spec.n_inputs)
    ablations = sweep(spec, model.rotary)
    right, _ = answers(model, sample.ids, sample.labels)
    rows = _by_hop(INTACT, right, sample.hops)
    answered: dict[int, list[Bool[Tensor, " share"]]] = {}
    found = ablated_answers(model, sample.ids, sample.labels, ablations, spec.tolerance)
    of = len(ablations) * -(-len(sample.ids) // INPUTS_AT_ONCE)
    for done, (index, part) in enumerate(found, 1):
        answered.setdefault(index, []).append(part)
        report(done, of)
    for index, ablation in enumerate(ablations):
        rows += _by_hop(_what(ablation), torch.cat(answered[index]), sample.hops)
    schema = {**_WHAT, "hop": pl.Int64, "accuracy": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema).with_columns(step=pl.lit(step))


def scores_under_ablation(
    model: GPTJ, test: Sequences, spec: AblationSpec, step: int, report: Report = lambda done, of: None
) -> pl.DataFrame:
    """Rows of `ablation_scores`: every head's mean scores at the last token, intact and under each score ablation.

    Heads below the first changed layer are as in the intact model and are left out.
    """
    ids = stratified_sample(test, spec.n_score_inputs).ids
    rows = _scores(model, ids, spec.tau, INTACT, None)
    ablations = score_sweep(spec, model.rotary)
    for done, ablation in enumerate(ablations, 1):
        rows += _scores(model, ids, spec.tau, _what(ablation), ablation)
        report(done, len(ablations))
    schema = {**_WHAT, "layer": pl.Int64, "head": pl.Int64, "tau": pl.Float64}
    schema |= {"positional_score": pl.Float64, "symbolic_score": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema).with_columns(step=pl.lit(step))


def _what(ablation: Ablation) -> dict[str, Any]:
    return {
        "mode": ablation.mode,
        "band_low": ablation.band[0],
        "band_high": ablation.band[1],
        "layers": list(ablation.layers),
        "heads": None if ablation.heads is None else list(ablation.heads),
    }


def _by_hop(what: dict[str, Any], right: Bool[Tensor, " n"], hops: Int[Tensor, " n"]) -> list[dict[str, Any]]:
    rows = []
    for hop in (None, *hops.unique().tolist()):
        chosen = right if hop is None else right[hops == hop]
        rows.append({**what, "hop": hop, "accuracy": chosen.double().mean().item(), "n": len(chosen)})
    return rows


def _scores(
    model: GPTJ, ids: Int[Tensor, "n position"], tau: float, what: dict[str, Any], ablation: Ablation | None
) -> list[dict[str, Any]]:
    table = model.rotary if ablation is None else ablation.table(model.rotary)
    means = score_heads(model, ids, "last", (tau,), rotary=table)[:, 0].mean(0).cpu()  # (layer, head, 2)
    first = 0 if ablation is None else min(ablation.layers)
    return [
        {
            **what,
            "layer": layer,
            "head": head,
            "tau": tau,
            "positional_score": means[layer, head, 0].item(),
            "symbolic_score": means[layer, head, 1].item(),
            "n": len(ids),
        }
        for layer in range(first, means.shape[0])
        for head in range(means.shape[1])
    ]
