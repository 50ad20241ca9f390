"""How much the scores depend on how they are defined: the scores of one query by other definitions.

Variants of arXiv 2511.11579 §3: compare softmax weights (the definition) or logits, over swaps of two keys (the
definition) or over random permutations of all keys. A swap's weight is softmax(|D_i − D_j| / τ); a permutation's is
softmax(‖D − D∘π‖ / (√2 τ)), which is the same for a swap. Logits are compared after subtracting the row's mean, since
attention ignores a shift and a cosine does not.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.scores.closed_form import pair_indices, swap_scores

VARIANTS = ("weights, swaps", "logits, swaps", "weights, permutations", "logits, permutations")

Logits = Float[Tensor, "*batch place content"]
Scores = Float[Tensor, "*batch tau 2"]


def variant_scores(
    logits: Logits,
    own_logit: Float[Tensor, "*batch"],
    taus: Sequence[float],
    orders: Int[Tensor, "permutation place"],
) -> dict[str, Scores]:
    """Positional and symbolic score of a query by each of `VARIANTS`; arguments as `closed_form.swap_scores`.

    `orders` are the permutations (`ops.theory.exclusion.random_orders`). Where a compared vector
    is 0, the two are equal: 1.
    """
    m = logits.shape[-1]
    first, second, _, _ = pair_indices(m, logits.device)
    own = logits.diagonal(dim1=-2, dim2=-1)
    attention = torch.cat((own, own_logit[..., None]), -1).softmax(-1)[..., :m]

    after = logits.clone()
    i_after, j_after = after[..., first, second], after[..., second, first]
    shift = own.mean(-1, keepdim=True)
    moved_shift = shift + (i_after + j_after - own[..., first] - own[..., second]) / m
    before = torch.stack((own[..., first], own[..., second]), -1) - shift[..., None]
    swapped = torch.stack((i_after, j_after), -1) - moved_shift[..., None]
    gap = (attention[..., first] - attention[..., second]).abs()

    permuted = logits[..., torch.arange(m, device=logits.device), orders]  # (…, permutation, place)
    distance = (attention[..., None, :] - attention[..., orders]).norm(dim=-1) / 2**0.5

    def over_permutations(row: Tensor, moved: Tensor) -> Scores:
        return _scores(distance, _cosine(moved, row[..., None, :]), _cosine(moved, row[..., orders]), taus)

    return {
        VARIANTS[0]: swap_scores(logits, own_logit, taus).scores,
        VARIANTS[1]: _scores(gap, _cosine(swapped, before), _cosine(swapped, before.flip(-1)), taus),
        VARIANTS[2]: over_permutations(
            (own - own.amax(-1, keepdim=True)).exp(), (permuted - permuted.amax(-1, keepdim=True)).exp()
        ),
        VARIANTS[3]: over_permutations(own - own.mean(-1, keepdim=True), permuted - permuted.mean(-1, keepdim=True)),
    }


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    norm = a.norm(dim=-1) * b.norm(dim=-1)
    return torch.where(norm > 0, (a * b).sum(-1) / norm.clamp_min(1e-300), 1.0)


def _scores(gap: Tensor, positional: Tensor, symbolic: Tensor, taus: Sequence[float]) -> Scores:
    rows = []
    for tau in taus:
        weight = (gap / tau).softmax(-1)
        rows.append(torch.stack(((weight * positional).sum(-1), (weight * symbolic).sum(-1)), -1))
    return torch.stack(rows, -2)
