"""Discrepancy and exclusion bound by reasoning, against enumerating inputs and permutations.

Brute force enumerates the inputs of one short length (Retrieval) and all permutations of 8 keys; the
ratios grow factorially with length.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bench.measure import REPEATS, interleaved, row
from ops.theory.discrepancy import index_discrepancy, retrieval_discrepancy
from ops.theory.exclusion import bound_by_enumeration, exclusion

COMMAND = "python -m bench theory"
N, LETTERS, THETA = 6, 8, 0.0027


def every_retrieval_gap() -> tuple[float, float, float]:
    """Largest, mean and smallest gap over every target and every choice of the other keys' letters, n = N."""
    omega = 2 * math.pi / LETTERS
    gaps = []
    letters = np.array(list(itertools.product(range(1, LETTERS), repeat=N)))
    for target in range(1, N + 1):
        distance = np.delete(np.arange(N + 1), target)
        gaps.append(math.cos(target * THETA) - np.cos(letters * omega + distance * THETA).max(1))
    together = np.concatenate(gaps)
    return together.max(), together.mean(), together.min()


def every_index_gap() -> list[float]:
    """The largest gap at every n up to 1,000, pointer by pointer and key by key."""
    found = []
    for n in range(2, 1_001):
        away = np.arange(n + 1) - np.arange(1, n + 1)[:, None]
        found.append(np.where(away == 0, np.inf, 1 - np.cos(away * 0.8)).min(1).max())
    return found


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`discrepancy_retrieval`, `discrepancy_index`, `exclusion_bound`: on one thread, theirs by brute force."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logits = torch.randn(20, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], str]] = {
        "discrepancy_retrieval": (
            lambda: retrieval_discrepancy([N], THETA, LETTERS), every_retrieval_gap, f"n = {N}, {LETTERS} letters"
        ),
        "discrepancy_index": (
            lambda: index_discrepancy(range(2, 1_001), 0.8), every_index_gap, "n = 2 to 1,000"
        ),
        "exclusion_bound": (
            lambda: exclusion(logits), lambda: bound_by_enumeration(logits), "8 keys, 20 inputs"
        ),
    }  # fmt: skip
    found = []
    for name, (ours, theirs, what) in pairs.items():
        taken = interleaved({"ours": ours, "theirs": theirs}, 1 if quick else REPEATS)
        found.append(
            row(name, COMMAND, taken["ours"].wall, taken["theirs"].wall, theirs=f"brute force, {what}", threads=1)
        )
    torch.set_num_threads(threads)
    return found
