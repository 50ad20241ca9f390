"""Positional and symbolic scores from one matrix of logits a query, exactly and in log space.

Swapping the contents of positions i and j changes two keys of the query's row and its normaliser, and a cosine does
not see the normaliser. With `A[p, s]` the logit of content s placed at position p, v ∝ (e^A[i,i], e^A[j,j]) and
v' ∝ (e^A[i,j], e^A[j,i]). The angle of (e^a, e^b) with the diagonal is φ(a − b), φ(z) = atan(tanh(z/2)), so with
x = A[i,i] − A[j,j], y = A[i,j] − A[j,i], t = tanh(z/2) of each:

    cos(v', v)          = cos(φ(x) − φ(y)) = (1 + t_x·t_y) / √((1 + t_x²)(1 + t_y²))
    cos(v', reversed v) = cos(φ(x) + φ(y)) = (1 − t_x·t_y) / √((1 + t_x²)(1 + t_y²))

Inside, arrays are "group pair batch": the axis that is reduced is never the contiguous one.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

NEGLIGIBLE_NORM = 1e-8  # torch.nn.functional.cosine_similarity's default eps: below it the authors' scores shrink


class SwapScores(NamedTuple):
    """What one query's row says, in float64; masses are shares in [0, 1], entropy is in nats."""

    scores: Float[Tensor, "*batch tau 2"]  # positional, symbolic
    own_mass: Float[Tensor, "*batch"]  # attention of the query on its own position
    negligible_mass: Float[Tensor, "*batch tau"]  # α on swaps with a norm of v or v' below 1e-8
    entropy: Float[Tensor, "*batch"]  # of the true attention row, own position included


def swap_scores(
    logits: Float[Tensor, "*batch position content"],
    own_logit: Float[Tensor, "*batch"],
    taus: Sequence[float] = (1e-4, 1e-2),
    eps: float = 0.0,
) -> SwapScores:
    """Positional and symbolic score of a query from its logits on every content at every position.

    `logits[..., p, s]`: the query's scaled logit on content s placed at position p, over the n keys before the query
    (a key that the query may not see is no key: leave it out). `own_logit`: its logit on itself, which is never
    swapped. `taus` are in units of attention mass. `eps > 0` divides by max(norm, eps) as the authors' code does
    (torch's cosine_similarity, eps = 1e-8); 0 is exact. Scores lie in [0, 1], and unless eps > 0 they add up to at
    least 1; both near 1 means near-uniform attention. Finite logits of any size neither overflow nor underflow.
    Source: arXiv 2511.11579 §3, 2605.31558 App. D; the closed form is ours.
    Raises ValueError on fewer than two keys, a shape that does not fit, non-finite logits, a τ <= 0 or eps < 0.
    """
    *batch, n, contents = logits.shape
    if n != contents or n < 2:
        raise ValueError(f"logits must be position × content over at least two keys, not {n} × {contents}")
    if own_logit.shape != tuple(batch):
        raise ValueError(f"own_logit has shape {tuple(own_logit.shape)}, the logits' batch has {tuple(batch)}")
    flat = logits.detach().to(torch.float64).reshape(-1, n * n).T.contiguous()[None]
    result = score_groups(flat, own_logit.detach().to(torch.float64).reshape(1, -1), taus, eps)
    return SwapScores(*(part[0].reshape((*batch, *part.shape[2:])) for part in result))


def score_groups(
    logits: Float[Tensor, "group pair batch"],
    own_logit: Float[Tensor, "group batch"],
    taus: Sequence[float],
    eps: float = 0.0,
) -> SwapScores:
    """`swap_scores` in its own layout: float64, entry `p * n + s` of the middle axis is content s at position p.

    Results lead with "group batch". Raises ValueError on non-finite logits, a τ <= 0 or eps < 0.
    """
    n = round(logits.shape[1] ** 0.5)
    check_taus(taus)
    if not eps >= 0:
        raise ValueError(f"eps must be at least 0, not {eps}")
    if logits.numel() == 0:
        return _empty(logits, len(taus))
    lowest, highest = torch.aminmax(logits)
    if not bool(torch.isfinite(lowest) & torch.isfinite(highest) & torch.isfinite(own_logit).all()):
        raise ValueError("logits are not finite: the weights hold a NaN or an infinity, or the dtype overflowed")

    diagonal = logits[:, :: n + 1]
    row = torch.cat([diagonal, own_logit[:, None]], 1)
    peak = row.amax(1, keepdim=True)
    shift = row.sub_(peak)
    attention = shift.exp()
    total = attention.sum(1, keepdim=True)
    attention /= total
    log_total = total.log()
    entropy = log_total[:, 0] - shift.clamp_min_(-1e3).mul_(attention).sum(1)
    log_total = (log_total + peak)[:, 0]

    first, second, there, back = pair_indices(n, logits.device)
    gap = attention.index_select(1, first).sub_(attention.index_select(1, second)).abs_()
    mean, half = swap_cosines(
        diagonal.index_select(1, first).sub_(diagonal.index_select(1, second)),
        logits.index_select(1, there).sub_(logits.index_select(1, back)),
    )
    scores = weigh_swaps(gap, mean, half, taus)

    negligible = torch.zeros(*scores.shape[:-1], dtype=torch.float64, device=logits.device)
    # ‖v'‖ > e^m / (Z + 2e^m) for m the larger of the two logits, so a row whose least logit is above this has no
    # swap of small norm, and nothing to clamp.
    floor = torch.tensor(max(eps, NEGLIGIBLE_NORM), dtype=torch.float64).log().item() + 0.1
    if bool(lowest < log_total.max() + floor) or eps > 0.5:
        least = logits.amin(1)
        group, column = torch.nonzero((least < log_total + floor) | (eps > 0.5), as_tuple=True)
        if len(group):
            small, clamped = _small_norms(
                logits[group, :, column].T.contiguous(), own_logit[group, column], attention[group, :-1, column].T, eps
            )
            picked = [part[group, :, column].T.contiguous()[None] for part in (gap, mean, half)]
            share = weigh_swaps(picked[0], small[None], torch.zeros_like(small)[None], taus)
            negligible[group, column] = share[0, ..., 0]
            if eps > 0:
                clamped = clamped[None]
                scores[group, column] = weigh_swaps(picked[0], picked[1] * clamped, picked[2] * clamped, taus)[0]
    return SwapScores(scores, attention[:, -1], negligible, entropy)


def check_taus(taus: Sequence[float]) -> None:
    """Raise ValueError unless `taus` are one or more positive numbers."""
    if len(taus) == 0 or not all(0 < tau < float("inf") for tau in taus):
        raise ValueError(f"taus must be one or more positive numbers, not {tuple(taus)}")


@lru_cache(maxsize=256)
def pair_indices(n: int, device: torch.device) -> tuple[Int[Tensor, " pair"], ...]:
    """For the swaps i < j of n keys: i, j, and the flat places of A[i, j] and A[j, i]."""
    with torch.inference_mode(False):
        first, second = torch.triu_indices(n, n, 1, device=device)
        return first, second, first * n + second, second * n + first


def swap_cosines(
    x: Float[Tensor, "group pair batch"], y: Float[Tensor, "group pair batch"]
) -> tuple[Float[Tensor, "group pair batch"], Float[Tensor, "group pair batch"]]:
    """(m, h) with cos(v', v) = m + h, cos(v', reversed v) = m − h, from the module's x and y, which it overwrites."""
    x.mul_(0.5).tanh_()
    y.mul_(0.5).tanh_()
    half = x * y
    mean = x.square_().add_(1).mul_(y.square_().add_(1)).rsqrt_()
    return mean, half.mul_(mean)


def weigh_swaps(
    gap: Float[Tensor, "group pair batch"],
    mean: Float[Tensor, "group pair batch"],
    half: Float[Tensor, "group pair batch"],
    taus: Sequence[float],
) -> Float[Tensor, "group batch tau 2"]:
    """Σ α (m + h) and Σ α (m − h) with α = softmax over swaps of gap / τ, gap = |D_i − D_j|; reads, never writes."""
    largest = gap.amax(1, keepdim=True)
    scores = torch.empty(gap.shape[0], gap.shape[2], len(taus), 2, dtype=torch.float64, device=gap.device)
    weight, product = torch.empty_like(gap), torch.empty_like(gap)
    for k, tau in enumerate(taus):
        torch.sub(gap, largest, out=weight)
        weight.div_(tau).exp_()
        total = weight.sum(1)
        m = torch.mul(weight, mean, out=product).sum(1)
        h = torch.mul(weight, half, out=product).sum(1)
        scores[..., k, 0] = (m + h) / total
        scores[..., k, 1] = (m - h) / total
    return scores.clamp_(0, 1)


def _small_norms(
    logits: Float[Tensor, "square batch"],
    own_logit: Float[Tensor, " batch"],
    attention: Float[Tensor, "key batch"],
    eps: float,
) -> tuple[Float[Tensor, "pair batch"], Float[Tensor, "pair batch"]]:
    """(1 where a norm is negligible, the factor that clamping at eps multiplies the cosines by), a swap each.

    The mass that a swap leaves alone, R = Z − e^A[i,i] − e^A[j,j], would cancel when i or j holds nearly all of it.
    So it is taken from the sum without the row's largest or two largest entries, each on its own scale: then what is
    still subtracted is never larger than an entry that stays.
    """
    n = len(attention)
    first, second, there, back = pair_indices(n, logits.device)
    row = torch.cat([logits[:: n + 1], own_logit[None]])
    order = row.argsort(0, descending=True)
    ranked = row.gather(0, order)
    index = torch.arange(n, device=logits.device)[:, None]
    is_first, is_second = index == order[0], index == order[1]
    has_first = is_first[first] | is_first[second]
    has_both = has_first & (is_second[first] | is_second[second])

    scale = torch.where(has_both, ranked[2], torch.where(has_first, ranked[1], ranked[0]))
    sums = [(ranked[k:] - ranked[k]).exp().sum(0) for k in range(3)]
    rest = torch.where(has_both, sums[2], torch.where(has_first, sums[1], sums[0]))
    for member in (first, second):
        gone = is_first[member] | (has_both & is_second[member])
        rest = rest - torch.where(gone, 0.0, (row[member] - scale).clamp_max_(0).exp())

    i_after = (logits[there] - scale).clamp_max_(300).exp_()
    j_after = (logits[back] - scale).clamp_max_(300).exp_()
    norm_after = torch.hypot(i_after, j_after) / (rest + i_after + j_after)
    norm = torch.hypot(attention[first], attention[second])
    small = ((norm < NEGLIGIBLE_NORM) | (norm_after < NEGLIGIBLE_NORM)).to(torch.float64)
    if eps == 0:
        return small, torch.ones_like(small)
    return small, (norm / eps).clamp_max(1) * (norm_after / eps).clamp_max(1)


def _empty(logits: Tensor, n_taus: int) -> SwapScores:
    group, _, batch = logits.shape
    return SwapScores(
        logits.new_zeros(group, batch, n_taus, 2),
        logits.new_zeros(group, batch),
        logits.new_zeros(group, batch, n_taus),
        logits.new_zeros(group, batch),
    )
