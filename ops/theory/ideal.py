"""The ideal functions on token sequences: Index, Retrieval, Reflexive (arXiv 2605.31558 §3.2).

h applications of Index (number task) or Retrieval (letter tasks), then Reflexive, read at the last position, answer
every input of h hops.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import LetterMatchedTaskSpec, LetterTaskSpec, NumberTaskSpec, TaskSpec
from ops.tasks.pairs import lefts_and_rights


class Applied(NamedTuple):
    """What every position holds after one application, and the position that it looked at (itself = it kept)."""

    ids: Int[Tensor, "n position"]
    attends_to: Int[Tensor, "n position"]


def index(ids: Int[Tensor, "n position"], task: NumberTaskSpec) -> Applied:
    """A position that holds the integer i looks i positions back, and copies the token there if it is a letter.

    A letter looks at itself; so does an integer that points to before the first position. Any length.
    """
    positions = torch.arange(ids.shape[1]).expand_as(ids)
    back = positions - ids
    points = (ids < task.sequence_length) & (back >= 0)
    attends_to = torch.where(points, back, positions)
    seen = ids.gather(1, attends_to)
    return Applied(torch.where(seen >= task.sequence_length, seen, ids), attends_to)


def retrieval(ids: Int[Tensor, "n position"], task: LetterTaskSpec | LetterMatchedTaskSpec) -> Applied:
    """A letter-letter pair (x, y) copies the nearest earlier pair whose left letter is y.

    A letter-digit pair, and a pair without such a predecessor, looks at itself. Any length.
    """
    left, right = lefts_and_rights(ids, task)
    positions = torch.arange(ids.shape[1])
    match = (left[:, None, :] == right[:, :, None]) & (positions < positions[:, None])
    nearest = torch.where(match, positions, -1).amax(-1)
    asks = (ids > task.n_letters * task.n_digits) & (nearest >= 0)
    attends_to = torch.where(asks, nearest, positions.expand_as(ids))
    return Applied(ids.gather(1, attends_to), attends_to)


def reflexive(ids: Int[Tensor, "n position"]) -> Applied:
    """Every position looks at itself."""
    return Applied(ids, torch.arange(ids.shape[1]).expand_as(ids))


def apply_hop(ids: Int[Tensor, "n position"], task: TaskSpec) -> Applied:
    """One application of the task's function: Index for the number task, Retrieval for the letter tasks."""
    return index(ids, task) if isinstance(task, NumberTaskSpec) else retrieval(ids, task)


def compose(ids: Int[Tensor, "n position"], task: TaskSpec, times: int) -> Int[Tensor, "n position"]:
    """What every position holds after `times` applications of the task's function and one of Reflexive."""
    for _ in range(times):
        ids = apply_hop(ids, task).ids
    return reflexive(ids).ids
