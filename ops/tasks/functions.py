"""A task's generator, oracle and vocabulary as functions of its package, at the published sizes unless told otherwise.

    from ops.tasks import number
    number.generate(10, seed=0, spec=number.NumberTaskSpec(hops=(1, 2)))

A package takes them from here when they are asked for, so that importing it, or its spec, imports no torch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ops.spec.task import TaskSpec

if TYPE_CHECKING:
    from torch import Tensor

    from ops.tasks.sequences import Seed, Sequences, Solution


class Generate(Protocol):
    """`ops.tasks.task.Task.generate`."""

    def __call__(self, n: int, *, seed: "Seed", spec: TaskSpec | None = None) -> "Sequences": ...


class Solve(Protocol):
    """`ops.tasks.task.Task.solve`."""

    def __call__(self, ids: "Tensor", *, spec: TaskSpec | None = None) -> "Solution": ...


class Functions(NamedTuple):
    """The functions of one task's package. `vocabulary` and `vocabulary_size` take a spec, or none."""

    generate: Generate
    solve: Solve
    vocabulary: Callable[..., tuple[str, ...]]
    vocabulary_size: Callable[..., int]


def functions(kind: type[TaskSpec]) -> Functions:
    """The functions of the task that `kind` is the spec of; `spec` is `kind()` if not given."""
    from ops.tasks.task import task_of

    def task(spec: TaskSpec | None):
        if spec is not None and not isinstance(spec, kind):
            raise TypeError(f"spec is a {type(spec).__name__}; give a {kind.__name__}")
        return task_of(kind() if spec is None else spec)

    return Functions(
        generate=lambda n, *, seed, spec=None: task(spec).generate(n, seed=seed),
        solve=lambda ids, *, spec=None: task(spec).solve(ids),
        vocabulary=lambda spec=None: task(spec).vocabulary,
        vocabulary_size=lambda spec=None: task(spec).vocabulary_size,
    )


def when_asked(package: str, kind: type[TaskSpec]) -> Callable[[str], Any]:
    """A package's `__getattr__` that gives its functions."""

    def get(name: str) -> Any:
        if name in Functions._fields:
            return getattr(functions(kind), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
