"""The exclusion principle: a head cannot be both positional and symbolic unless its logits are flat.

With A[p, s] the query's logit on content s placed at position p, over the m keys before the query, and π a permutation
of the contents, δ_pos(π, i) = A[i, π(i)] − A[i, i] and δ_sym(π, i) = A[i, π(i)] − A[π(i), π(i)]. The theorem:

    Var(A[i, i]) <= (‖δ_pos‖² + ‖δ_sym‖²) / (m! · m),      norms over all π and i, population variance over i.

Each pair (i, s) is met by (m − 1)! permutations, so the sum over all m! of them is a sum over m² pairs, exactly, at
every length (ours). It also proves the theorem: (a − x)² + (a − y)² >= (x − y)² / 2, and the mean of (x − y)² / 2 over
all pairs is the variance; equality iff every A[i, s] is the mean of A[i, i] and A[s, s].
Source: arXiv 2511.11579, Thm 1.
"""

from itertools import permutations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

Logits = Float[Tensor, "*batch place content"]


class Exclusion(NamedTuple):
    """A head's logits on its inputs: variance over the keys, and the theorem's bound, in squared logits."""

    variance: Float[Tensor, "*batch"]
    bound: Float[Tensor, "*batch"]


class SampledBound(NamedTuple):
    """The bound from randomly drawn permutations, and the standard error of that."""

    bound: Float[Tensor, "*head"]
    error: Float[Tensor, "*head"]


def exclusion(logits: Logits) -> Exclusion:
    """Variance and exact bound over all m! permutations of the m keys, in m² steps.

    `logits[..., p, s]`: the query's logit on content s at position p, keys before the query only.
    Raises ValueError unless place and content have one size m >= 2.
    """
    own = _own(logits)
    squares = (logits - own[..., :, None]).square() + (logits - own[..., None, :]).square()
    return Exclusion(own.var(-1, correction=0), squares.mean((-2, -1)))


def bound_by_enumeration(logits: Logits) -> Float[Tensor, "*batch"]:
    """The same bound from its definition, permutation by permutation: m! steps, so for m <= 8."""
    own = _own(logits)
    orders = torch.tensor(list(permutations(range(own.shape[-1]))), device=logits.device)
    return _deviations(logits, own, orders).mean(-1)


def sampled_bound(
    logits: Float[Tensor, "input *head place content"], orders: Int[Tensor, "permutation place"]
) -> SampledBound:
    """The mean bound over inputs, estimated from uniformly drawn permutations, the same for every input.

    The error is one standard deviation of the estimate, over permutations (inputs share them, so they do not average
    it out). Raises ValueError with fewer than two permutations.
    """
    if len(orders) < 2:
        raise ValueError(f"a standard error needs at least two permutations, not {len(orders)}")
    values = _deviations(logits, _own(logits), orders).mean(0)
    return SampledBound(values.mean(-1), values.std(-1) / len(orders) ** 0.5)


def random_orders(n_keys: int, n_permutations: int, generator: torch.Generator) -> Int[Tensor, "permutation place"]:
    """Uniform permutations: entry [π, i] is the content that π puts at place i."""
    return torch.rand(n_permutations, n_keys, generator=generator).argsort(-1)


def _deviations(logits: Tensor, own: Tensor, orders: Tensor) -> Tensor:
    """(‖δ_pos(π)‖² + ‖δ_sym(π)‖²) / m, a permutation each (last axis)."""
    moved = logits[..., torch.arange(own.shape[-1], device=logits.device), orders]
    return ((moved - own[..., None, :]).square() + (moved - own[..., orders]).square()).mean(-1)


def _own(logits: Tensor) -> Tensor:
    m = logits.shape[-1]
    if logits.shape[-2] != m or m < 2:
        raise ValueError(f"logits must be place × content over at least two keys, not {tuple(logits.shape[-2:])}")
    return logits.diagonal(dim1=-2, dim2=-1)
