"""The tasks that a study may name: those of the project, one line each, and those that are named from outside.

Only specs are imported here; each finds its own computation (`ops.tasks.task`). So no key covers this module.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from ops.spec import study
from ops.spec.task import Tasks, TaskSpec

OWN = (
    "ops.tasks.number",
    "ops.tasks.letter",
    "ops.tasks.letter_matched",
)


def known_tasks(outside: Sequence[str] = ()) -> Tasks:
    """Name → spec of the project's tasks and of those in the packages `outside` (dotted names).

    Raises SpecError with one sentence on a package that is not there or is no task, and on a name that comes twice.
    """
    known: dict[str, type[TaskSpec]] = {}
    for package in (*OWN, *outside):
        spec = _spec_in(package)
        name = spec.model_fields["name"].default
        if name in known:
            raise study.SpecError(
                "",
                f"the task {name!r} of {package} is declared in {known[name].__module__} already; give it another name",
            )
        known[name] = spec
    return known


def parse_study(text: bytes | str, source: str, tasks: Tasks | None = None) -> study.StudySpec:
    """`ops.spec.study.parse_study` with `tasks`, or the project's own."""
    return study.parse_study(text, source, known_tasks() if tasks is None else tasks)


def _spec_in(package: str) -> type[TaskSpec]:
    try:
        found = find_spec(f"{package}.spec")
    except (ImportError, SyntaxError, ValueError) as error:
        raise study.SpecError(
            "", f"the task package {package!r} cannot be imported ({error}); correct its name"
        ) from None
    if found is None:
        raise study.SpecError(
            "", f"the task package {package!r} has no spec.py; a task is a folder with spec.py and task.py"
        )
    try:
        module = import_module(f"{package}.spec")
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise study.SpecError("", f"{found.origin} cannot be imported ({reason}); correct the file") from error
    specs = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, TaskSpec) and each.__module__ == module.__name__
    ]
    if len(specs) != 1 or not isinstance(specs[0].model_fields["name"].default, str):
        raise study.SpecError(
            "",
            f"{package}.spec must have exactly one class on top of ops.spec.task.TaskSpec, with a name, such as "
            'name: Literal["number"] = "number"',
        )
    if specs[0].module("task") is None:
        raise study.SpecError(
            "", f"the task package {package!r} has no task.py; a task is a folder with spec.py and task.py"
        )
    return specs[0]
