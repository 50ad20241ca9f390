"""Discrepancy and exclusion bound by reasoning, against enumerating inputs and permutations.

    python bench/bench_theory.py

Writes nothing. Brute force enumerates the inputs of one short length (Retrieval) and all permutations of 8 keys; the
ratios grow factorially with length.
"""

import argparse
import itertools
import json
import math
import platform
import time
from collections.abc import Callable

import numpy as np
import torch

from ops.theory.discrepancy import index_discrepancy, retrieval_discrepancy
from ops.theory.exclusion import bound_by_enumeration, exclusion

COMMAND = "python bench/bench_theory.py"
N, LETTERS, THETA = 6, 8, 0.0027


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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


def rows() -> list[dict]:
    """One row a computation: name, ours_s, theirs_s (brute force), ratio, machine, command. One thread, best of 3."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logits = torch.randn(20, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        (f"Retrieval's discrepancy, n = {N}, {LETTERS} letters", lambda: retrieval_discrepancy([N], THETA, LETTERS),
         every_retrieval_gap),
        ("Index's discrepancy, n = 2 to 1,000", lambda: index_discrepancy(range(2, 1_001), 0.8), every_index_gap),
        ("exclusion bound, 8 keys, 20 inputs", lambda: exclusion(logits), lambda: bound_by_enumeration(logits)),
    ]  # fmt: skip
    found = []
    for name, ours, theirs in pairs:
        quick, slow = (min(_seconds(work) for _ in range(3)) for work in (ours, theirs))
        found.append(
            {
                "name": f"{name} (theirs: brute force)",
                "ours_s": quick,
                "theirs_s": slow,
                "ratio": slow / quick,
                "machine": f"one core of {platform.machine()}, {platform.system()}",
                "command": COMMAND,
            }
        )
    torch.set_num_threads(threads)
    return found


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for row in rows():
        print(json.dumps(row))
