"""Scores with blocks of tokens in place of single positions, for language models (arXiv 2511.11579 §4)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ops.scores.closed_form import check_taus, pair_indices, swap_cosines, weigh_swaps


def block_swap_scores(
    log_block_mass: Float[Tensor, "*batch place content"],
    block_means: Float[Tensor, "*batch place"],
    taus: Sequence[float] = (1e-2, 1e-4),
) -> Float[Tensor, "*batch tau 2"]:
    """Positional [..., 0] and symbolic [..., 1] score of a query over swaps of blocks of equal token count.

    `log_block_mass[..., i, j]`: log-sum-exp, over a block's tokens, of the query's scaled logits with block j's
    contents at block i's places. `block_means[..., i]`: mean true attention of block i's tokens, which weighs the
    swaps; it has the units of `taus`. float64 inside and out. Exact: every v is proportional to a pair of block
    masses, and blocks of equal size make a mean of a sum.
    A place that the query cannot see (sliding window) has log mass -inf for every content and mean 0; a swap between
    two such places compares nothing with nothing and is left out; if no swap is left the scores are NaN (undefined).
    Source: arXiv 2511.11579 §4; the closed form is ours.
    Raises ValueError on fewer than two blocks, shapes that do not fit, NaN, +inf, or a τ <= 0.
    """
    *batch, m, contents = log_block_mass.shape
    if m != contents or m < 2:
        raise ValueError(f"log_block_mass must be place × content over at least two blocks, not {m} × {contents}")
    if block_means.shape != (*batch, m):
        raise ValueError(f"block_means has shape {tuple(block_means.shape)}, expected {(*batch, m)}")
    check_taus(taus)
    mass = log_block_mass.detach().to(torch.float64).reshape(-1, m * m).T.contiguous()[None]
    means = block_means.detach().to(torch.float64).reshape(-1, m).T.contiguous()[None]
    if bool((mass.isnan() | (mass == torch.inf)).any()) or not bool(means.isfinite().all()):
        raise ValueError("block masses hold a NaN or an infinity: the model's logits are not finite")

    first, second, there, back = pair_indices(m, mass.device)
    x = mass[:, first * (m + 1)] - mass[:, second * (m + 1)]
    y = mass[:, there] - mass[:, back]
    gap = (means[:, first] - means[:, second]).abs()
    unseen = x.isnan() | y.isnan()  # -inf minus -inf: nothing to compare
    mean, half = swap_cosines(x.masked_fill_(unseen, 0), y.masked_fill_(unseen, 0))
    gap.masked_fill_(unseen, -torch.inf)
    undefined = unseen.all(1)
    gap.masked_fill_(undefined[:, None], 0)
    scores = weigh_swaps(gap, mean, half, taus)
    scores[undefined] = torch.nan
    return scores[0].reshape((*batch, len(taus), 2))
