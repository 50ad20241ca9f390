"""Discrepancy of the constructions: largest minus second-largest logit (arXiv 2605.31558 Def. 3.1, Thm 3.2).

n is the query's position counted from 0, so the query has n keys before it, at distances 1 … n, and itself at 0.
Maximum, minimum and mean over all inputs are exact: a gap depends on the target's distance and, for Retrieval, on the
other keys' letters, one key at a time. β = 1 throughout; a gap scales with β.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

_KEPT = 300  # largest values that the mean looks at: 300 values with 7 letters a key leave a chance of at most 1e-20


class Discrepancy(NamedTuple):
    """Over all inputs of each length n: target's logit minus the largest other logit, at β = 1.

    Mean: over pointers 1 … n (Index), or target distances 1 … n and independent uniform other letters (Retrieval).
    Where every gap is positive this is Def. 3.1's; a negative one means that the head looks at the wrong key.
    """

    maximum: Float[ndarray, "length"]
    mean: Float[ndarray, "length"]
    minimum: Float[ndarray, "length"]


def index_discrepancy(lengths: Sequence[int], theta: float) -> Discrepancy:
    """Of the Index head. Raises ValueError on a length below 1.

    A pointer i sees keys up to max(i, n − i) from its target, so its gap is the least 1 − cos(kθ) over these k.
    """
    n = _checked(lengths)
    gaps = 1 - np.cos(theta * np.arange(1, n.max() + 1))
    least = np.concatenate(([np.inf], np.minimum.accumulate(gaps)))  # least[m] = min over k <= m
    sums = np.concatenate(([0.0], np.cumsum(least[1:])))
    middle = (n + 1) // 2
    total = 2 * (sums[n] - sums[middle - 1]) - least[n] - np.where(n % 2 == 0, least[middle], 0)
    return Discrepancy(least[middle], total / n, least[n])


def retrieval_discrepancy(lengths: Sequence[int], theta: float, n_letters: int) -> Discrepancy:
    """Of the Retrieval head, ω = 2π / n_letters. Raises ValueError on a length below 1 or fewer than two letters."""
    n = _checked(lengths)
    if n_letters < 2:
        raise ValueError(f"n_letters is {n_letters}; without a second letter there is no other logit")
    omega = 2 * math.pi / n_letters
    distance = np.arange(n.max() + 1)
    target = np.cos(distance * theta)
    other = np.cos(np.arange(1, n_letters)[:, None] * omega + distance * theta)  # (letter, distance)
    most = [_over_targets(target[: m + 1], other.min(0)[: m + 1], max) for m in n]
    least = [_over_targets(target[: m + 1], other.max(0)[: m + 1], min) for m in n]
    mean = [target[1 : m + 1].mean() - _mean_largest(other[:, : m + 1]) for m in n]
    return Discrepancy(np.array(most), np.array(mean), np.array(least))


def _over_targets(target: Float[ndarray, "distance"], other: Float[ndarray, "distance"], choose) -> float:
    """Best or worst target's logit minus the largest of the others', over target distances from 1."""
    first, second = np.sort(other)[[-1, -2]]
    without = np.where(np.arange(len(other)) == other.argmax(), second, first)
    return float(choose(target[1:] - without[1:]))


def _mean_largest(values: Float[ndarray, "letter distance"]) -> float:
    """E of the largest logit among the keys at all distances but the target's, each key's letter uniform.

    Going down the sorted values, a key with c of its A − 1 values passed is below with chance 1 − c / (A − 1).
    """
    n_letters, n_keys = values.shape
    flat = values.ravel()
    order = np.argpartition(-flat, _KEPT)[:_KEPT] if flat.size > _KEPT else np.arange(flat.size)
    order = order[np.argsort(-flat[order], kind="stable")]
    owner, value = order % n_keys, flat[order]
    seen: dict[int, int] = {}
    factor = np.empty(len(order))
    for k, key in enumerate(owner.tolist()):
        passed = seen[key] = seen.get(key, 0) + 1
        factor[k] = (n_letters - passed) / (n_letters - passed + 1)
    targets = np.unique(owner[owner > 0])
    rows = np.concatenate((targets, [-1]))  # -1: a target with no value among the largest
    below = np.cumprod(np.where(owner == rows[:, None], 1.0, factor), 1)
    chance = np.concatenate((np.ones((len(rows), 1)), below[:, :-1]), 1) - below
    means = chance @ value
    weight = np.concatenate((np.ones(len(targets)), [n_keys - 1 - len(targets)]))
    return float(means @ weight / (n_keys - 1))


def index_printed_bound(lengths: Sequence[int], theta: float) -> Float[ndarray, "length"]:
    """min(1 − cos θ, 2π² / n²), as Thm 3.2 prints it. It does not hold: see `index_corrected_bound`."""
    n = _checked(lengths)
    return np.minimum(1 - math.cos(theta), 2 * math.pi**2 / n**2)


def index_corrected_bound(lengths: Sequence[int], theta: float) -> Float[ndarray, "length"]:
    """min(1 − cos θ, 2π² / ⌈(n − 1)/2⌉²), ours: a target in the middle has no key farther away. n = 1: 1 − cos θ."""
    n = _checked(lengths)
    reach = np.maximum(n // 2, 1)  # ⌈(n − 1) / 2⌉
    return np.minimum(1 - math.cos(theta), np.where(n < 2, np.inf, 2 * math.pi**2 / reach**2))


def index_sharp_bound(lengths: Sequence[int], theta: float) -> Float[ndarray, "length"]:
    """min(1 − cos θ, 1 − cos(2π / (m + 1))), m = ⌈n/2⌉, ours: equality at θ = 2π / (m + 1), so no θ-free one is less.

    By Dirichlet's theorem some kθ, 1 ≤ k ≤ m, lies within 2π / (m + 1) of a multiple of 2π.
    """
    n = _checked(lengths)
    return np.minimum(1 - math.cos(theta), 1 - np.cos(2 * math.pi / ((n + 1) // 2 + 1)))


def retrieval_printed_bound(lengths: Sequence[int], theta: float, n_letters: int) -> Float[ndarray, "length"]:
    """1 − cos(ω − nθ), as Thm 3.2 prints it: false of the maximum over inputs, true of the minimum."""
    return 1 - np.cos(2 * math.pi / n_letters - _checked(lengths) * theta)


def in_range(lengths: Sequence[int], theta: float, n_letters: int) -> Bool[ndarray, "length"]:
    """Whether 0 < θ < ω / (2n), what Thm 3.1 asks of Retrieval."""
    return (theta > 0) & (2 * _checked(lengths) * theta < 2 * math.pi / n_letters)


def _checked(lengths: Sequence[int]) -> Int[ndarray, "length"]:
    n = np.asarray(lengths, dtype=np.int64)
    if n.ndim != 1 or n.size == 0 or n.min() < 1:
        raise ValueError("lengths must be one or more integers of at least 1")
    return n
