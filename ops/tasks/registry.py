"""The multi-hop tasks by name: one generator, solver and vocabulary for whichever task a spec declares."""

from types import ModuleType

from torch import Tensor

import ops.tasks.letter as letter
import ops.tasks.letter_matched as letter_matched
import ops.tasks.number as number
from ops.spec.task import TaskSpec
from ops.tasks.sequences import Seed, Sequences, Solution

TASKS: dict[str, ModuleType] = {"number": number, "letter": letter, "letter_matched": letter_matched}


def generate(task: TaskSpec, n: int, seed: Seed) -> Sequences:
    """n sequences of the task, shuffled and balanced. Raises ValueError if n < 1."""
    return TASKS[task.name].generate(n, seed=seed, task=task)


def solve(task: TaskSpec, ids: Tensor) -> Solution:
    """The oracle's answers and chains for `ids`, (n, position). Raises ValueError naming a row with no unique path."""
    return TASKS[task.name].solve(ids, task)


def vocabulary(task: TaskSpec) -> list[str]:
    """Readable tokens by id, "<pad>" first."""
    return TASKS[task.name].vocabulary(task)


def vocabulary_size(task: TaskSpec) -> int:
    """Number of token ids, padding included."""
    return TASKS[task.name].vocabulary_size(task)
