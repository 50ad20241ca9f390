"""A share estimated from clusters of answers, with an interval that knows that answers of one cluster are alike."""

import math

from jaxtyping import Int
from torch import Tensor

ALPHA = 0.05


def clustered_interval(
    right: Int[Tensor, " cluster"], n: Int[Tensor, " cluster"], alpha: float = ALPHA
) -> tuple[float, float, float]:
    """(share, low, high) of right answers, `right` of `n` in each of several independent clusters.

    A Wilson interval for as many independent answers as would give the variance seen between clusters (at most the
    number that there is), with Student's t for the clusters in place of the normal quantile: wide where clusters
    differ, never of width 0 at a share of 0 or 1. Covers about 1 - alpha; with 16 clusters and a share within 0.03 of
    0 or 1 that differs strongly between them (intraclass correlation 0.2) only about 0.82 of 0.95 (tests simulate it).
    Source: N. Dean and M. Pagano, J. Surv. Stat. Methodol. 3 (2015) 484, Wilson with Korn and Graubard's effective n.
    One cluster says nothing of how clusters differ: its interval is 0 to 1.
    Raises ValueError without a cluster, with an empty one, or on counts that do not fit.
    """
    clusters, total = len(n), int(n.sum())
    if not clusters or right.shape != n.shape:
        raise ValueError(f"right and n have one count a cluster, not shapes {tuple(right.shape)} and {tuple(n.shape)}")
    if int(n.min()) < 1 or int(right.min()) < 0 or bool((right > n).any()):
        raise ValueError("right must be between 0 and n, and n at least 1, in every cluster")
    share = int(right.sum()) / total
    if clusters == 1:
        return share, 0.0, 1.0
    residual = right.double() - share * n.double()
    variance = clusters / (clusters - 1) * float(residual.square().sum()) / total**2
    binomial = share * (1 - share)
    effective = total if variance == 0 or binomial == 0 else min(total, binomial / variance)
    t = student_quantile(1 - alpha / 2, clusters - 1)
    spread = t * math.sqrt(binomial / effective + t * t / (4 * effective**2))
    centre, scale = share + t * t / (2 * effective), 1 + t * t / effective
    return share, max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t with a whole number of degrees of freedom, for 0.5 < probability < 1.

    Source: M. Abramowitz and I. A. Stegun, 26.7.3 and 26.7.4 (the distribution as a finite sum), bisected.
    """
    if degrees < 1 or not 0.5 < probability < 1:
        raise ValueError(f"degrees is {degrees} (at least 1) and probability {probability} (between 0.5 and 1)")
    low, high = 0.0, 1.0
    while _within(high, degrees) < 2 * probability - 1:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 2 * probability - 1 else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """Probability that |T| <= t."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for i in range(1 + odd, degrees, 2):
        total += term
        term *= i / (i + 1) * cosine * cosine
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
