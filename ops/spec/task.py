"""What every task declares: windows, hops, split sizes; and where a declared task finds what computes it.

A task is a folder. Its `spec.py` (no torch) declares one class on top of `TaskSpec`; the other modules of the folder
compute it, and `ops.tasks.task` says what each of them is. Source of the sizes: arXiv 2605.31558 §2.1.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError, to_json

from ops.spec.part import Rising, SpecPart

Size = Annotated[int, Field(ge=1, le=100_000_000)]
Window = Annotated[int, Field(ge=1, le=4096)]
Tasks = Mapping[str, type["TaskSpec"]]  # what a study may name: task name to spec


class TaskSpec(SpecPart):
    """What all tasks share, and the base of every task's spec. Windows are counted in tokens, splits in sequences.

    A task's own class gives `name` a literal, e.g. `name: Literal["number"] = "number"`.
    """

    name: Any = None  # a Literal in each task's class
    target_window: Window = 8
    pre_target_window: Window = 8
    hops: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Rising] = (1, 2, 3, 4)
    n_train: Size = 432_000
    n_validation: Size = 2_400
    n_test: Size = 45_600

    @property
    def sequence_length(self) -> int:
        """Target window + pre-target window + the query token."""
        return self.target_window + self.pre_target_window + 1

    @property
    def alphabet(self) -> int | None:
        """Number of letters by which keys are matched; None if they are matched by none."""
        return None

    @property
    def not_lengthened(self) -> str | None:
        """Why no valid input is longer than the task's sequences, as the end of a sentence; None if some are.

        A task whose sizes decide this overrides it.
        """
        return None if self.module("lengthening") else f"needs longer inputs, but the {self.name} task has none"

    @classmethod
    def package(cls) -> str:
        """Dotted name of the task's folder."""
        return cls.__module__.rpartition(".")[0]

    @classmethod
    def module(cls, part: str) -> str | None:
        """Dotted name of a module of the task's folder, such as `task` or `lengthening`; None if it has none."""
        return _module(f"{cls.package()}.{part}")

    @model_validator(mode="after")
    def _hops_fit(self):
        if self.hops[-1] - 1 > self.pre_target_window:
            raise ValueError(
                f"hops up to {self.hops[-1]} need {self.hops[-1] - 1} intermediate positions, but pre_target_window "
                f"is {self.pre_target_window}; lower hops or widen pre_target_window"
            )
        return self


@cache
def _module(name: str) -> str | None:
    return name if find_spec(name) else None


def _of_known_task(value: Any, info: ValidationInfo) -> Any:
    """The spec of the task that `value` names, by the tasks in the validation's context."""
    if isinstance(value, TaskSpec):
        return value
    known: Tasks = (info.context or {}).get("tasks", {})
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(sorted(known)) or "none: give them as the validation's context"
        given = "missing" if name is None else repr(name)
        sentence = "its name is {given}; known tasks are {known}"
        raise PydanticCustomError("unknown_task", sentence, {"given": given, "known": listed})
    return known[name].model_validate_json(to_json(value), context=info.context)


KnownTask = Annotated[SerializeAsAny[TaskSpec], BeforeValidator(_of_known_task)]
