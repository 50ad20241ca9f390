"""The pointer graphs beneath the multi-hop tasks: which positions lie on the chain, and what points where.

A task is such a graph plus an encoding. Both come hop class by hop class, column by column: arrays are laid out
(position, row), so that one vectorised step handles one position of all rows. Source: arXiv 2605.31558 §2.1, App. B.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray

from ops.spec.task import TaskSpec
from ops.tasks.graph_spec import PointerTaskSpec
from ops.tasks.sequences import Seed, Sequences, stream

# Purposes of the random streams under one seed. Large, so that a caller's own `SeedSequence.spawn` does not meet them.
GRAPH_STREAM = 0x67726170
ENCODING_STREAM = 0x656E636F


class HopClass(NamedTuple):
    """The chains of all sequences with `hops` hops.

    `rows`: their places among the n sequences, rising. `ranks`: a shuffled count from 0 within the class, from which
    targets and answers are balanced. `chain`: positions, the query's first and the target's last.
    """

    hops: int
    rows: Int[ndarray, "row"]
    ranks: Int[ndarray, "row"]
    chain: Int[ndarray, "link row"]


Encoding = Callable[[HopClass], Int[ndarray, "position row"]]


def hop_classes(task: TaskSpec, n: int, rng: np.random.Generator) -> Iterator[HopClass]:
    """Draws chains for n sequences: hop classes of equal size (±1), targets balanced (±1) within each.

    Intermediate positions are distinct and uniform in the pre-target window.
    """
    window, n_classes = task.target_window, len(task.hops)
    place = rng.permutation(n)
    which, ranks = place % n_classes, place // n_classes
    for c, hops in enumerate(rng.permutation(task.hops).tolist()):
        rows = np.flatnonzero(which == c)
        chain = np.empty((hops + 1, len(rows)), np.int16)
        chain[0] = task.sequence_length - 1
        chain[1:hops] = sorted_rows(distinct(rng, hops - 1, task.pre_target_window, len(rows)))[::-1]
        chain[1:hops] += window
        chain[hops] = rng.permutation(window)[ranks[rows] % window]
        yield HopClass(hops, rows, ranks[rows], chain)


def pointers(task: PointerTaskSpec, hop_class: HopClass, rng: np.random.Generator) -> Int[ndarray, "pointing row"]:
    """The position that each pre-target position, and last the query, points to.

    On the chain: the chain's next position. Elsewhere: uniform over all earlier positions, or those off the chain.
    """
    window, n_rows = task.target_window, len(hop_class.rows)
    to = np.empty((task.pre_target_window + 1, n_rows), np.int16)
    for position in range(window, task.sequence_length):
        if task.may_point_onto_chain:
            to[position - window] = rng.integers(0, position, n_rows, dtype=np.int16)
        else:
            to[position - window] = _earlier_off_chain(position, hop_class.chain, rng)
    row = np.arange(n_rows)
    for here, there in zip(hop_class.chain[:-1], hop_class.chain[1:], strict=True):
        to[here - window, row] = there
    return to


def _earlier_off_chain(position: int, chain: Int[ndarray, "link row"], rng: np.random.Generator) -> Int[ndarray, "row"]:
    """For each row, a position before `position` that is not on the chain, uniformly."""
    drawn = rng.integers(0, position - (chain < position).sum(0), dtype=np.int16)
    for link in chain[::-1]:  # the target first: rising, so that each shift steps over one more position of the chain
        drawn += drawn >= link
    return drawn


def balanced_answers(
    task: TaskSpec, hop_class: HopClass, n_symbols: int, rng: np.random.Generator
) -> Int[ndarray, "row"]:
    """Answer symbols in 0 … n_symbols - 1, balanced (±1) over target position × symbol, and over symbols alone.

    Targets repeat with period `target_window` over the ranks, symbols with period `n_symbols`; shifting the symbols by
    one after each common period runs through every (target, symbol) once before any comes twice.
    """
    ranks = hop_class.ranks
    shift = ranks // math.lcm(task.target_window, n_symbols)
    return rng.permutation(n_symbols)[(ranks + shift) % n_symbols]


def distinct(
    rng: np.random.Generator, k: int, below: int, n_rows: int, excluded: Sequence[ndarray] = ()
) -> Int[ndarray, "k row"]:
    """For each row, k distinct integers in 0 … below - 1 without the `excluded` ones, in random order, uniformly."""
    taken = list(excluded)
    for _ in range(k):
        taken.append(among_others(rng, below, n_rows, sorted_rows(taken)))
    drawn = taken[len(excluded) :]
    return np.stack(drawn) if drawn else np.empty((0, n_rows), np.int16)


def among_others(
    rng: np.random.Generator, below: int, n_rows: int, taken: Sequence[ndarray] | ndarray
) -> Int[ndarray, "row"]:
    """For each row, one integer in 0 … below - 1 that is none of `taken` (distinct, rising), uniformly."""
    drawn = rng.integers(0, below - len(taken), n_rows, dtype=np.int16)
    for value in taken:
        drawn += drawn >= value
    return drawn


def sorted_rows(columns: Sequence[ndarray] | ndarray) -> Sequence[ndarray] | Int[ndarray, "k row"]:
    """The columns with each row's values in rising order."""
    return np.sort(np.asarray(columns), axis=0) if len(columns) > 1 else columns


def generate_from_graphs(task: TaskSpec, n: int, seed: Seed, encoding: Callable[..., Encoding]) -> Sequences:
    """n sequences, in an order shuffled by the seed. `encoding(task, graph rng, encoding rng)` makes the encoder.

    Two tasks whose encoders draw the same from the graph's stream get the same graphs for the same seed.
    Raises ValueError if n < 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}; ask for at least 1 sequence")
    graph_rng = stream(seed, GRAPH_STREAM)
    encode = encoding(task, graph_rng, stream(seed, ENCODING_STREAM))
    ids = np.empty((n, task.sequence_length), np.int64)
    labels = np.empty(n, np.int64)
    hops = np.empty(n, np.int64)
    chain = np.full((n, task.hops[-1] + 1), -1, np.int64)
    for hop_class in hop_classes(task, n, graph_rng):
        rows, tokens = hop_class.rows, encode(hop_class)
        ids[rows] = tokens.T
        labels[rows] = tokens[hop_class.chain[-1], np.arange(len(rows))]
        hops[rows] = hop_class.hops
        chain[rows, : hop_class.hops + 1] = hop_class.chain.T
    return Sequences(*map(torch.from_numpy, (ids, labels, hops, chain)))
