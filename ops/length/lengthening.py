"""Valid inputs longer than those of training: a target window lengthened in front, with the path as it was.

Inert: random target-window tokens stand before a sequence of the trained length, and the answer stays where it was
(arXiv 2605.31558 §3.6). Active: the window itself grows, and the answer moves to any place in it. The vocabulary stays
the trained one. What may stand in front is for each task to say (`ops.tasks.task.Lengthening`).
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.sequences import Seed, Solution, stream
from ops.tasks.task import Lengthened, task_of

# Purposes of the random streams under one seed, apart from those of ops.tasks.graph.
_PREFIX_STREAM, _SUFFIX_STREAM, _RENAMING_STREAM, _MOVE_STREAM = 0x70726566, 0x73756666, 0x72656E61, 0x6D6F7665


class Moved(NamedTuple):
    """Whole inputs of one length in the active mode; `chain` holds their positions."""

    ids: Int[Tensor, "prefix sequence position"]
    labels: Int[Tensor, "prefix sequence"]
    hops: Int[Tensor, "prefix sequence"]
    chain: Int[Tensor, "prefix sequence link"]


def lengthen(task: TaskSpec, longest: int, *, n_prefixes: int, n_sequences: int, seed: Seed) -> Lengthened:
    """`n_sequences` sequences behind each of `n_prefixes` prefixes, `longest` tokens together.

    Any first part of a prefix, followed by one of its sequences, is a valid input (`joined`). The hop classes have
    equal shares (±1) behind every prefix.
    Raises ValueError if `longest` is below the task's length, a count below 1, or the task has no longer inputs.
    """
    if longest < task.sequence_length:
        raise ValueError(f"longest is {longest}, but a sequence of the task has {task.sequence_length} tokens already")
    if n_prefixes < 1 or n_sequences < 1:
        raise ValueError(f"n_prefixes is {n_prefixes} and n_sequences {n_sequences}; both must be at least 1")
    own = task_of(task)
    parts = [own.generate(n_sequences, seed=_child(seed, _SUFFIX_STREAM, p)) for p in range(n_prefixes)]
    columns = (torch.stack(column) for column in zip(*parts, strict=True))
    return own.lengthening.behind_prefixes(
        Lengthened(torch.empty(n_prefixes, 0, dtype=torch.int64), *columns),
        longest - task.sequence_length,
        stream(seed, _PREFIX_STREAM),
        stream(seed, _RENAMING_STREAM),
    )


def joined(inputs: Lengthened, length: int) -> Int[Tensor, "prefix sequence position"]:
    """The whole inputs of `length` tokens: the first part of each prefix before each of its sequences.

    Raises ValueError if `length` is not between a sequence's length and the longest.
    """
    n = length - inputs.ids.shape[2]
    if not 0 <= n <= inputs.prefixes.shape[1]:
        shortest = inputs.ids.shape[2]
        raise ValueError(f"length {length} is not from {shortest} to {shortest + inputs.prefixes.shape[1]}")
    before = inputs.prefixes[:, None, :n].expand(-1, inputs.ids.shape[1], -1)
    return torch.cat((before, inputs.ids), 2)


def move_answers(task: TaskSpec, inputs: Lengthened, length: int, seed: Seed) -> Moved:
    """Whole inputs of `length` tokens whose answer lies anywhere in the lengthened target window, uniformly.

    The answer's token changes places with another of the window, as far back as what points to it can reach, and what
    points to it is set to its new place.
    """
    ids, lengthening = joined(inputs, length), task_of(task).lengthening
    n = length - task.sequence_length
    window = n + task.target_window
    chain = torch.where(inputs.chain < 0, -1, inputs.chain + n)
    last, before = (chain.gather(2, inputs.hops[..., None] - back) for back in (0, 1))
    first = (before - lengthening.reach(length)).clamp(min=0).numpy()
    there = torch.from_numpy(stream(seed, _MOVE_STREAM).integers(first, window))
    here_token, there_token = ids.gather(2, last), ids.gather(2, there)
    ids.scatter_(2, last, there_token).scatter_(2, there, here_token)
    chain.scatter_(2, inputs.hops[..., None], there)
    return Moved(lengthening.point(ids, before, there), inputs.labels, inputs.hops, chain)


def solve_lengthened(task: TaskSpec, ids: Int[Tensor, "n position"]) -> Solution:
    """The task's oracle on inputs whose target window is longer than the task's, written in the task's vocabulary.

    Raises ValueError naming the row without a unique path, as the oracles do.
    """
    return task_of(task).lengthening.solve(ids)


def _child(seed: Seed, purpose: int, index: int) -> np.random.SeedSequence:
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, purpose, index))
