"""The ideal functions on token sequences: the task's own hop, and Reflexive (arXiv 2605.31558 §3.2).

h applications of Index (number task) or Retrieval (letter tasks), then Reflexive, read at the last position, answer
every input of h hops.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.task import Applied, task_of


def reflexive(ids: Int[Tensor, "n position"]) -> Applied:
    """Every position looks at itself."""
    return Applied(ids, torch.arange(ids.shape[1]).expand_as(ids))


def apply_hop(ids: Int[Tensor, "n position"], task: TaskSpec) -> Applied:
    """One application of the task's function."""
    return task_of(task).mechanism.ideal_hop(ids)


def compose(ids: Int[Tensor, "n position"], task: TaskSpec, times: int) -> Int[Tensor, "n position"]:
    """What every position holds after `times` applications of the task's function and one of Reflexive."""
    for _ in range(times):
        ids = apply_hop(ids, task).ids
    return reflexive(ids).ids
