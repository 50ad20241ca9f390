"""A language model's head scores as Polars frames: for a notebook, and for the tables of the warehouse.

model, tokenizer = load_model("smollm2")
score_prompts(model, tokenizer, ["The cat sat on the mat because the cat"])
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor, nn

from ops.language_models.profile import PromptProfile, profile_prompt
from ops.language_models.prompt import Prompt
from ops.language_models.prompts import prompt_from_text

TAUS = (1e-2, 1e-4)
HEADS = {
    "prompt": pl.Int32,
    "layer": pl.Int32,
    "head": pl.Int32,
    "tau": pl.Float64,
    "positional_score": pl.Float64,
    "symbolic_score": pl.Float64,
    "own_mass": pl.Float64,
    "sink_mass": pl.Float64,
    "layer_type": pl.String,
    "random_positional": pl.Float64,
    "random_symbolic": pl.Float64,
    "answered": pl.Boolean,
}
FREQUENCIES = {
    "prompt": pl.Int32,
    "layer": pl.Int32,
    "head": pl.Int32,
    "frequency_id": pl.Int32,
    "theta": pl.Float64,
    "positional_score": pl.Float64,
    "symbolic_score": pl.Float64,
    "logit_variance_share": pl.Float64,
}


class Profiles(NamedTuple):
    """Rows of `HEADS` (a prompt, head, τ) and of `FREQUENCIES` (a prompt, head, frequency ID); null = undefined."""

    heads: pl.DataFrame
    frequencies: pl.DataFrame


def score_prompts(
    model: nn.Module,
    tokenizer: Any,
    prompts: Iterable[Prompt | str],
    taus: Sequence[float] = TAUS,
    block_tokens: int = 1,
    seed: int = 0,
) -> pl.DataFrame:
    """Positional and symbolic score of every head on every prompt, a row a prompt, layer, head and τ.

    `prompts` are texts (all tokens but the first and the last, in blocks of `block_tokens`) or `Prompt`s. `taus` are in
    units of attention mass; read 1e-2 first, 1e-4 hangs on a single swap. random_positional and random_symbolic are the
    same head's scores if its logits were random with their own mean and spread (drawn from `seed`).
    Source: arXiv 2511.11579 §4. Raises UnsupportedModel or ValueError with one sentence.
    """
    ready = [prompt_from_text(tokenizer, p, block_tokens) if isinstance(p, str) else p for p in prompts]
    return profile_frames(model, ready, taus, frequencies=False, seed=seed).heads


def profile_frames(
    model: nn.Module,
    prompts: Sequence[Prompt],
    taus: Sequence[float] = TAUS,
    frequencies: bool = True,
    seed: int = 0,
) -> Profiles:
    """Head scores of `prompts`, and with `frequencies` each RoPE plane's at the first τ.

    Raises ValueError on no prompts, or one given twice (n counts prompts), else as `score_prompts`.
    """
    if not prompts:
        raise ValueError("there are no prompts to profile; give at least one")
    seen: dict[tuple, int] = {}
    for number, prompt in enumerate(prompts):
        what = (tuple(prompt.ids.tolist()), prompt.query, tuple(prompt.blocks.flatten().tolist()))
        if (first := seen.setdefault((*what, len(prompt.blocks)), number)) != number:
            raise ValueError(f"prompts {first} and {number} are one and the same; give each prompt once")
    heads, planes = [], []
    for number, prompt in enumerate(prompts):
        profile = profile_prompt(model, prompt, taus, frequencies, seed=seed + number)
        heads.append(_head_rows(number, profile, taus))
        if frequencies:
            planes.append(_frequency_rows(number, profile))
    empty = pl.DataFrame(schema=FREQUENCIES)
    return Profiles(pl.concat(heads), pl.concat(planes) if planes else empty)


def average_heads(heads: pl.DataFrame) -> pl.DataFrame:
    """Mean over prompts of `HEADS` rows, with `n`, the number of prompts on which the head has a score."""
    return heads.group_by("layer", "head", "tau", maintain_order=True).agg(
        pl.col(
            "positional_score", "symbolic_score", "own_mass", "sink_mass", "random_positional", "random_symbolic"
        ).mean(),
        pl.col("layer_type").first(),
        n=pl.col("positional_score").count(),
    )


def average_frequencies(frequencies: pl.DataFrame) -> pl.DataFrame:
    """Mean over prompts of `FREQUENCIES` rows."""
    return frequencies.group_by("layer", "head", "frequency_id", maintain_order=True).agg(
        pl.col("theta").first(), pl.col("positional_score", "symbolic_score", "logit_variance_share").mean()
    )


def _head_rows(number: int, profile: PromptProfile, taus: Sequence[float]) -> pl.DataFrame:
    layers, n_taus = profile.layers, len(taus)
    counts = [layer.scores.shape[0] * n_taus for layer in layers]
    scores = torch.cat([layer.scores.flatten(0, 1) for layer in layers])
    drawn = torch.cat([layer.random_scores.flatten(0, 1) for layer in layers])
    columns = {
        "layer": _repeated([layer.layer for layer in layers], counts),
        "head": torch.cat([torch.arange(layer.scores.shape[0]).repeat_interleave(n_taus) for layer in layers]),
        "tau": torch.tensor(taus, dtype=torch.float64).repeat(len(scores) // n_taus),
        "positional_score": scores[:, 0],
        "symbolic_score": scores[:, 1],
        "own_mass": torch.cat([layer.own_mass.repeat_interleave(n_taus) for layer in layers]),
        "sink_mass": torch.cat([layer.sink_mass.repeat_interleave(n_taus) for layer in layers]),
        "random_positional": drawn[:, 0],
        "random_symbolic": drawn[:, 1],
    }
    kinds = [layer.layer_type for layer, count in zip(layers, counts, strict=True) for _ in range(count)]
    tags = {"prompt": number, "layer_type": kinds, "answered": profile.answered}
    return _frame(columns, tags, HEADS)


def _frequency_rows(number: int, profile: PromptProfile) -> pl.DataFrame:
    layers = profile.layers
    sizes = [layer.variance_share.shape for layer in layers]
    planes = [torch.arange(n_planes).repeat(n_heads) for n_heads, n_planes in sizes]
    scores = torch.cat([layer.plane_scores.flatten(0, 1) for layer in layers])
    columns = {
        "layer": _repeated([layer.layer for layer in layers], [n_heads * n_planes for n_heads, n_planes in sizes]),
        "head": torch.cat([torch.arange(n_heads).repeat_interleave(n_planes) for n_heads, n_planes in sizes]),
        "frequency_id": torch.cat(planes) + 1,
        "theta": torch.cat([layer.theta[plane] for layer, plane in zip(layers, planes, strict=True)]),
        "positional_score": scores[:, 0],
        "symbolic_score": scores[:, 1],
        "logit_variance_share": torch.cat([layer.variance_share.flatten() for layer in layers]),
    }
    return _frame(columns, {"prompt": number}, FREQUENCIES)


def _repeated(values: Sequence[int], counts: Sequence[int]) -> Tensor:
    return torch.repeat_interleave(torch.tensor(values), torch.tensor(counts))


def _frame(columns: dict[str, Tensor], tags: dict[str, Any], schema: dict[str, Any]) -> pl.DataFrame:
    """Columns and constant tags in the schema's order and types; NaN, an undefined score, becomes null."""
    found = tags | {name: column.numpy() for name, column in columns.items()}
    return pl.DataFrame({name: found[name] for name in schema}, schema=schema).fill_nan(None)
