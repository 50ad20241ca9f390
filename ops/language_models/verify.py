"""The brute force behind the closed form: exchange two blocks of a layer's input, run its attention again, compare.

Slow (one run of the attention module a swap) and independent of the closed form: it sees nothing but attention weights.
"""

from collections.abc import Collection, Sequence

import polars as pl
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ops.language_models.attention import LayerAttention, observe_layers, observe_with_reruns
from ops.language_models.profile import profile_layer, visible_blocks
from ops.language_models.prompt import Prompt, check_prompt


def brute_force_scores(
    rerun, n_positions: int, blocks: Int[Tensor, "block token"], taus: Sequence[float]
) -> Float[Tensor, "head tau 2"]:
    """Scores from m(m−1)/2 reruns. `rerun(order)` gives the query's weights with position p holding input order[p].

    A swap between two blocks without any weight before and after compares nothing and is left out; NaN if all are.
    """
    identity = torch.arange(n_positions)

    def block_means(order: Tensor) -> Float[Tensor, "head block"]:
        return rerun(order)[:, blocks].mean(-1)

    base = block_means(identity)
    gaps, positional, symbolic = [], [], []
    for i in range(len(blocks)):
        for j in range(i + 1, len(blocks)):
            order = identity.clone()
            order[blocks[i]], order[blocks[j]] = blocks[j], blocks[i]
            before, after = base[:, [i, j]], block_means(order)[:, [i, j]]
            norms = before.norm(dim=1) * after.norm(dim=1)
            gaps.append(torch.where(norms > 0, (before[:, 0] - before[:, 1]).abs(), -torch.inf))
            norms = norms.clamp_min(1e-300)
            positional.append((after * before).sum(1) / norms)
            symbolic.append((after * before.flip(1)).sum(1) / norms)
    gap = torch.stack(gaps, 1)
    pair = torch.stack([torch.stack(positional, 1), torch.stack(symbolic, 1)], 2)
    scores = [torch.einsum("hs,hsc->hc", torch.softmax(gap / tau, 1), pair) for tau in taus]
    return torch.stack(scores, 1)


def brute_force_layers(
    model: nn.Module, prompt: Prompt, taus: Sequence[float], layers: Collection[int]
) -> dict[int, Float[Tensor, "head tau 2"]]:
    """Scores of some layers by brute force alone; a layer that sees fewer than two blocks is left out."""
    check_prompt(prompt)
    found: dict[int, Tensor] = {}

    def visit(layer: LayerAttention, rerun) -> None:
        blocks = visible_blocks(layer, prompt.blocks)
        if layer.layer in layers and len(blocks) >= 2:
            found[layer.layer] = brute_force_scores(rerun, len(prompt.ids), blocks, taus)

    observe_with_reruns(model, prompt.ids, prompt.query, visit)
    return found


def verify_heads(
    model: nn.Module, prompt: Prompt, taus: Sequence[float] = (1e-2,), layers: Collection[int] | None = None
) -> pl.DataFrame:
    """Closed form against brute force, a row a head and τ: layer, head, tau, both scores both ways, their difference.

    `layers` are layer numbers from 0; None takes the first, a middle and the last that attend. In float32 expect
    differences of 1e-6 at τ = 1e-2 and up to 1e-3 at 1e-4, where the weights of the swaps magnify rounding.
    Layers whose window shows fewer than two blocks have nothing to compare and no rows.
    Raises ValueError when no layer has rows.
    """
    check_prompt(prompt)
    if layers is None:
        seen: list[int] = []
        observe_layers(model, prompt.ids, prompt.query, lambda layer: seen.append(layer.layer))
        layers = {seen[0], seen[len(seen) // 2], seen[-1]}
    rows: list[dict] = []

    brute_force = brute_force_layers(model, prompt, taus, layers)

    def visit(layer: LayerAttention) -> None:
        if layer.layer not in brute_force:
            return
        generator = torch.Generator().manual_seed(0)
        closed = profile_layer(layer, prompt.blocks, taus, False, generator).scores
        for head in range(layer.n_heads):
            for k, tau in enumerate(taus):
                pair, reference = closed[head, k].tolist(), brute_force[layer.layer][head, k].tolist()
                rows.append(
                    {
                        "layer": layer.layer,
                        "head": head,
                        "tau": tau,
                        "positional_score": pair[0],
                        "symbolic_score": pair[1],
                        "brute_positional": reference[0],
                        "brute_symbolic": reference[1],
                        "difference": max(abs(pair[0] - reference[0]), abs(pair[1] - reference[1])),
                    }
                )

    observe_layers(model, prompt.ids, prompt.query, visit)
    if not rows:
        raise ValueError(f"no layer of {sorted(layers)} attends to two blocks or more; choose other layers")
    return pl.DataFrame(rows).fill_nan(None)
