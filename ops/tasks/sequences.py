"""What every task's generator and solver give back, and the random streams that they draw from."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

Seed = int | np.random.SeedSequence


class Sequences(NamedTuple):
    """Sequences of one task, all int64.

    `chain` lists the positions of the hop chain in the order followed: the query's (the last), the intermediate ones,
    the target's; -1 pads rows with fewer hops.
    """

    ids: Int[Tensor, "n position"]
    labels: Int[Tensor, "n"]
    hops: Int[Tensor, "n"]
    chain: Int[Tensor, "n link"]


class Solution(NamedTuple):
    """An oracle's answer: the token id at the end of each chain, and the chain as in `Sequences`."""

    answer: Int[Tensor, "n"]
    chain: Int[Tensor, "n link"]


def stream(seed: Seed, purpose: int) -> np.random.Generator:
    """The random stream of one purpose under a seed: independent of every other purpose's and seed's.

    Leaves a SeedSequence as it found it (`spawn` would not), so that the same seed gives the same data twice.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, purpose)))


def letter_name(index: int) -> str:
    """a … z, aa … zz, aaa …: the alphabet of arXiv 2605.31558 §2.1, continued."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = chr(ord("a") + letter) + name
    return name


def checked_ids(ids: Tensor, sequence_length: int, vocabulary_size: int) -> Int[Tensor, "n position"]:
    """`ids` as an int64 tensor on the CPU.

    Raises ValueError unless it is a matrix of integers, `sequence_length` wide, in 1 … vocabulary_size - 1.
    """
    ids = torch.as_tensor(ids)
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ValueError(f"ids are {ids.dtype}; give integers")
    if ids.ndim != 2 or ids.shape[1] != sequence_length:
        raise ValueError(f"ids have shape {tuple(ids.shape)}; the task needs (n, {sequence_length})")
    ids = ids.to("cpu", torch.int64)
    refuse_rows((ids < 1) | (ids >= vocabulary_size), f"has a token id outside 1 … {vocabulary_size - 1}")
    return ids


def refuse_rows(bad: Tensor, complaint: str) -> None:
    """Raises ValueError naming the first row (and, for a matrix, the position) at which `bad` is true."""
    if bool(bad.any()):
        row, *position = bad.nonzero()[0].tolist()
        where = f" at position {position[0]}" if position else ""
        raise ValueError(f"row {row} {complaint}{where}")


def another(symbols: Int[Tensor, "n"], size: int, generator: torch.Generator) -> Int[Tensor, "n"]:
    """For each symbol in 0 … size - 1 another one, uniformly. Raises ValueError if there is no other."""
    if size < 2:
        raise ValueError("the task has a single answer symbol, so there is no other answer to patch in")
    return (symbols + torch.randint(1, size, (len(symbols),), generator=generator)) % size
