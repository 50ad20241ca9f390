"""Positional and symbolic scores of every head of a language model, with blocks of tokens in place of positions.

With A[(i, t), (j, t)] the query's logit on token t of block j's contents at block i's places, all that the scores
need is B[i, j] = log Σ_t exp A (arXiv 2511.11579 §4; the closed form is ours), and the true row for the weights.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ops.language_models.attention import LayerAttention, observe_layers
from ops.language_models.prompt import Prompt, check_prompt
from ops.scores.blocks import block_swap_scores

ELEMENTS_AT_ONCE = 1 << 22


class LayerProfile(NamedTuple):
    """One layer on one prompt, float64. NaN = undefined: nothing to compare (window too short, a plane that is off)."""

    layer: int
    layer_type: str
    scores: Float[Tensor, "head tau 2"]
    own_mass: Float[Tensor, "head"]
    sink_mass: Float[Tensor, "head"]
    random_scores: Float[Tensor, "head tau 2"]
    theta: Float[Tensor, "plane"]
    plane_scores: Float[Tensor, "head plane 2"]
    variance_share: Float[Tensor, "head plane"]


class PromptProfile(NamedTuple):
    """All attention layers on one prompt, and whether the model's first guess is the answer (None: no answer known)."""

    layers: list[LayerProfile]
    answered: bool | None


def profile_prompt(
    model: nn.Module,
    prompt: Prompt,
    taus: Sequence[float] = (1e-2, 1e-4),
    frequencies: bool = True,
    seed: int = 0,
) -> PromptProfile:
    """Scores of every head on one prompt, in one forward pass.

    `taus` are in units of attention mass; plane scores use the first. `seed` draws the random-logit null, whose mean
    and spread are each head's own. Raises UnsupportedModel or ValueError with one sentence.
    """
    check_prompt(prompt)
    generator = torch.Generator().manual_seed(seed)
    layers: list[LayerProfile] = []

    def visit(layer: LayerAttention) -> None:
        layers.append(profile_layer(layer, prompt.blocks, taus, frequencies, generator))

    logits = observe_layers(model, prompt.ids, prompt.query, visit)
    answered = None if prompt.answer is None else int(logits.argmax()) == prompt.answer
    return PromptProfile(layers, answered)


def profile_layer(
    layer: LayerAttention,
    blocks: Int[Tensor, "block token"],
    taus: Sequence[float],
    frequencies: bool,
    generator: torch.Generator,
) -> LayerProfile:
    """Scores of one layer's heads; see `profile_prompt`."""
    row = layer.row()
    log_total = layer.log_normaliser(row)
    weights = torch.exp(row - log_total[:, None])
    n_heads, n_planes = layer.n_heads, 0 if layer.rotation is None else len(layer.rotation.first)
    scores = random_scores = torch.full((n_heads, len(taus), 2), torch.nan, dtype=torch.float64)
    plane_scores = torch.full((n_heads, n_planes, 2), torch.nan, dtype=torch.float64)
    variance = torch.zeros(n_heads, n_planes, dtype=torch.float64)
    blocks = visible_blocks(layer, blocks)
    if len(blocks) >= 2:
        logits = exchanged_logits(layer, blocks)
        means = weights[:, blocks].mean(-1)
        scores = block_swap_scores(torch.logsumexp(logits, -1), means, taus)
        inside = means.sum(1) * blocks.shape[1]
        log_outside = log_total + torch.log1p(-inside.clamp_max(1 - 1e-15))
        random_scores = _random_scores(logits, log_outside, taus, generator)
        if frequencies and n_planes:
            plane_scores, variance = _profile_planes(layer, blocks, taus[:1])
    total = variance.sum(1, keepdim=True)
    return LayerProfile(
        layer=layer.layer,
        layer_type=layer.layer_type,
        scores=scores,
        own_mass=weights[:, layer.position],
        sink_mass=weights[:, 0],
        random_scores=random_scores,
        theta=torch.zeros(0, dtype=torch.float64) if layer.rotation is None else layer.rotation.theta(),
        plane_scores=plane_scores,
        variance_share=torch.where(total > 0, variance / total, torch.nan),
    )


def visible_blocks(layer: LayerAttention, blocks: Int[Tensor, "block token"]) -> Int[Tensor, "seen_block token"]:
    """The blocks that lie wholly in the query's window: else the window alone would make a head look positional."""
    return blocks[layer.visible[blocks].all(1)]


def exchanged_logits(
    layer: LayerAttention, blocks: Int[Tensor, "block token"]
) -> Float[Tensor, "head place content token"]:
    """The query's logit on token t of block j's contents at block i's places; the blocks must be visible."""
    products = torch.einsum("hitd,hjtd->hijt", _turned_back(layer, blocks), layer.of_head(layer.contents[:, blocks]))
    return layer.capped(products * layer.scaling)


def _turned_back(layer: LayerAttention, places: Int[Tensor, "block token"]) -> Float[Tensor, "head block token dim"]:
    """Query turned back by each place's rotation: its product with contents is the logit of contents at that place."""
    query = layer.query[:, None, None, :].repeat(1, *places.shape, 1)
    if (rotation := layer.rotation) is not None:
        cos, sin = rotation.cos[places], rotation.sin[places]
        first, second = query[..., rotation.first], query[..., rotation.second]
        query[..., rotation.first] = first * cos + second * sin
        query[..., rotation.second] = second * cos - first * sin
    return query


def _profile_planes(
    layer: LayerAttention, blocks: Int[Tensor, "block token"], taus: Sequence[float]
) -> tuple[Float[Tensor, "head plane 2"], Float[Tensor, "head plane"]]:
    """Each plane as the head's only one: scores, and the variance of its logits over the blocks' keys."""
    assert layer.rotation is not None
    pairs = torch.stack([layer.rotation.first, layer.rotation.second], 1)  # plane 2
    query, contents = _turned_back(layer, blocks), layer.of_head(layer.contents[:, blocks])
    keys = layer.of_head(layer.keys)
    chunk = max(1, ELEMENTS_AT_ONCE // (layer.n_heads * blocks.shape[0] * blocks.numel()))
    scores, variances = [], []
    for pair in pairs.split(chunk):
        products = torch.einsum("hitpc,hjtpc->hpijt", query[..., pair], contents[..., pair])
        masses = torch.logsumexp(layer.capped(products * layer.scaling), -1)
        row = layer.capped(torch.einsum("hpc,hkpc->hpk", layer.query[:, pair], keys[:, :, pair]) * layer.scaling)
        means = torch.softmax(row.masked_fill(~layer.visible, -torch.inf), -1)[..., blocks].mean(-1)
        off = ~products.flatten(2).any(-1)
        scores.append(block_swap_scores(masses, means, taus)[..., 0, :].masked_fill(off[..., None], torch.nan))
        variances.append(row[..., blocks.flatten()].var(-1, correction=0))
    return torch.cat(scores, 1), torch.cat(variances, 1)


def _random_scores(
    logits: Float[Tensor, "head place content token"],
    log_outside: Float[Tensor, "head"],
    taus: Sequence[float],
    generator: torch.Generator,
) -> Float[Tensor, "head tau 2"]:
    """Scores of independent normal logits with each head's mean and spread, and its mass outside the blocks."""
    flat = logits.flatten(1)
    drawn = torch.randn(flat.shape, generator=generator, dtype=torch.float64)
    drawn = drawn * flat.std(1, correction=0, keepdim=True) + flat.mean(1, keepdim=True)
    masses = torch.logsumexp(drawn.reshape(logits.shape), -1)
    own = masses.diagonal(dim1=1, dim2=2)
    log_total = torch.logsumexp(torch.cat([own, log_outside[:, None]], 1), 1)
    return block_swap_scores(masses, torch.exp(own - log_total[:, None]) / logits.shape[-1], taus)
