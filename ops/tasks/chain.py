"""Following a hop chain from the last token into the target window: the oracle solvers' common walk."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.sequences import Solution, refuse_rows

Step = Callable[[Int[Tensor, "n"], Bool[Tensor, "n"]], Int[Tensor, "n"]]


def follow(ids: Int[Tensor, "n position"], task: TaskSpec, step: Step) -> Solution:
    """Walks every row until it is in the target window.

    `step(position, alive)` gives the position that each row's token points to, for rows that are `alive`, and refuses
    rows without a unique one. Raises ValueError naming the row if a path is longer than the task's most hops.
    """
    n, most = len(ids), task.hops[-1]
    position = torch.full((n,), task.sequence_length - 1)
    chain = torch.full((n, most + 1), -1)
    chain[:, 0] = position
    for link in range(1, most + 1):
        alive = position >= task.target_window
        position = torch.where(alive, step(position, alive), position)
        chain[:, link] = torch.where(alive, position, -1)
    refuse_rows(position >= task.target_window, f"takes more than {most} hops, the task's most")
    return Solution(ids.gather(1, position[:, None])[:, 0], chain)
