"""The slow way to head scores: swap two positions of a layer's input for real, and run the layer again.

The published procedure (arXiv 2511.11579 §3). It shares the model's layer with the closed form, and no formula.
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ, Layer
from ops.model.rope import Rotation
from ops.scores.closed_form import check_taus
from ops.scores.heads import score_heads

_HIDDEN_PER_CHUNK = 2**19  # numbers in the swapped inputs that are run at once


def brute_force_scores(
    model: GPTJ, ids: Int[Tensor, "input position"], taus: Sequence[float] = (1e-4, 1e-2), eps: float = 0.0
) -> Float[Tensor, "input tau layer head 2"]:
    """`score_heads` at the last token, with every layer run again for each swap: n (n - 1) / 2 passes an input.

    The layers run in the model's precision, cosines and weights are float64. Raises ValueError on a τ <= 0 or fewer
    than two keys before the last token.
    """
    check_taus(taus)
    length = ids.shape[1]
    if length < 3:
        raise ValueError(f"a swap needs two keys before the query, and the inputs have {length} tokens")
    device = model.lm_head.weight.device
    first, second = torch.triu_indices(length - 1, length - 1, 1, device=device)
    swap = torch.arange(len(first), device=device)
    order = torch.arange(length, device=device).repeat(len(first), 1)
    order[swap, first], order[swap, second] = second, first
    chunks = order.split(inputs_per_chunk(model, length, _HIDDEN_PER_CHUNK))
    found = []
    with evaluating(model):
        rotations = model.rotations(0, length)
        for state in model.layers(ids.to(device)):
            layer, rotation = model.blocks[state.layer], rotations[state.layer]
            row = _last_row(layer, state.hidden, rotation)
            before = torch.stack((row[..., first], row[..., second]), -1)
            after = torch.empty_like(before)
            for b, hidden in enumerate(state.hidden):
                rows = torch.cat([_last_row(layer, hidden[chunk], rotation) for chunk in chunks])
                after[b] = torch.stack((rows[swap, :, first], rows[swap, :, second]), -1).transpose(0, 1)
            gap = before.exp().diff(dim=-1)[..., 0].abs()
            cosines = torch.stack((_cosine(after, before, eps), _cosine(after, before.flip(-1), eps)), -1)
            weights = [(gap / tau).softmax(-1)[..., None] for tau in taus]
            found.append(torch.stack([(weight * cosines).sum(-2) for weight in weights], 1))
    return torch.stack(found, 2)


def brute_force_error(
    model: GPTJ, ids: Int[Tensor, "input position"], taus: Sequence[float] = (1e-4, 1e-2), eps: float = 0.0
) -> float:
    """Largest difference of `score_heads` from `brute_force_scores` on `ids`, both on the weights as float64.

    In float32 the layer's own rounding, divided by a small τ, would hide an error of the formula.
    """
    model = deepcopy(model).double()
    exact = score_heads(model, ids, taus=taus, eps=eps)
    return float((exact - brute_force_scores(model, ids, taus, eps)).abs().max())


def _last_row(
    layer: Layer, hidden: Float[Tensor, "batch position width"], rotation: Rotation
) -> Float[Tensor, "batch head position"]:
    """Logarithm of the last token's attention in a run of the whole layer, float64."""
    rows: list[Tensor] = []

    def gather(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        future = torch.ones(key.shape[2], key.shape[2], dtype=torch.bool, device=key.device).triu(1)
        attention = (query @ key.mT).masked_fill(future, -torch.inf).log_softmax(-1)
        rows.append(attention[:, :, -1].double())
        return attention.exp() @ value

    layer.step(hidden, rotation, gather=gather)
    return rows[0]


def _cosine(a: Float[Tensor, "*batch 2"], b: Float[Tensor, "*batch 2"], eps: float) -> Float[Tensor, "*batch"]:
    """Cosine of e^a and e^b, each norm at least `eps`; a pair's own factor drops out, so nothing underflows."""
    one, other = ((x - x.amax(-1, keepdim=True)).exp() for x in (a, b))
    exact = (one * other).sum(-1) / (one.norm(dim=-1) * other.norm(dim=-1))
    if eps == 0:
        return exact
    return exact * (a.exp().norm(dim=-1) / eps).clamp_max(1) * (b.exp().norm(dim=-1) / eps).clamp_max(1)
