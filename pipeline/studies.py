"""The declared studies: every YAML file in pipeline/experiments and in the folders of $ROPEWALK_EXPERIMENTS."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import click
import dagster as dg

from ops.spec.study import Experiment, SpecError, StudySpec, canonical_json
from ops.spec.task import Tasks
from ops.tasks.registry import known_tasks, parse_study

OWN = Path(__file__).parent / "experiments"
MORE_SEEDS = "_more_seeds"  # ends the name of the job that has a study's more_seeds too
RESERVED = {"study": {"results", "warehouse", "charts", "report"}, "experiment": {"results"}}


class StudyError(click.ClickException, dg.DagsterError):
    """A study that cannot be run: `dagster` prints the sentence alone, without a traceback, and exits with 1.

    A click error for the terminal's sake. A Dagster error since Dagster would wrap another one in its own when it loads
    the project, and its pages would begin with that instead of the sentence.
    """


def folders() -> list[Path]:
    """Where studies are looked for: the project's own folder, then those of $ROPEWALK_EXPERIMENTS (a path list)."""
    listed = os.environ.get("ROPEWALK_EXPERIMENTS", "").split(os.pathsep)
    return [OWN, *(Path(folder).expanduser() for folder in listed if folder)]


def declared_studies(searched: Sequence[Path] | None = None) -> tuple[StudySpec, ...]:
    """All studies, by file name. Raises StudyError with one sentence: file, field, remedy."""
    studies: list[StudySpec] = []
    tasks = declared_tasks()
    sources: dict[tuple[str, str], Path] = {}
    for folder in folders() if searched is None else searched:
        if not folder.is_dir():
            raise StudyError(f"{folder}: no such folder; correct ROPEWALK_EXPERIMENTS")
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            study = _read(path, tasks)
            _refuse_taken(sources, "study", study.study, path)
            for experiment in study.experiments:
                _refuse_taken(sources, "experiment", experiment.name, path)
            studies.append(study)
    return tuple(studies)


def declared_tasks() -> Tasks:
    """The tasks that a study may name: the project's own, and those in the packages that $ROPEWALK_TASKS lists.

    The list has commas: `ROPEWALK_TASKS=my_task,lab.other_task`. Raises StudyError with one sentence.
    """
    listed = (name.strip() for name in os.environ.get("ROPEWALK_TASKS", "").split(","))
    try:
        return known_tasks([name for name in listed if name])
    except SpecError as error:
        raise StudyError(f"ROPEWALK_TASKS: {error}") from None


def _read(path: Path, tasks: Tasks) -> StudySpec:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{shown(path)}: cannot be read ({error.strerror}); correct the file or remove it") from None
    try:
        return parse_study(text, shown(path), tasks)
    except SpecError as error:
        raise StudyError(str(error)) from None


def _refuse_taken(sources: dict[tuple[str, str], Path], kind: str, text: str, path: Path) -> None:
    name = (kind, text)
    field = "study" if kind == "study" else f"experiments.{text}"
    taken = kind == "study" and ("__" in text or text.endswith(MORE_SEEDS))
    if text in RESERVED[kind] or taken:
        raise StudyError(f"{shown(path)}: {field}: {text!r} is the pipeline's own name; choose another one")
    if name in sources:
        raise StudyError(
            f"{shown(path)}: {field}: the {kind} {text!r} is declared in {shown(sources[name])} already; rename one"
        )
    sources[name] = path


def shown(path: Path) -> str:
    """A path as a user would type it: relative to the current folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def digest(studies: Sequence[StudySpec]) -> str:
    """One hash over everything that all studies declare."""
    content = [study.model_dump(mode="json") for study in studies]
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def experiments(studies: Sequence[StudySpec]) -> list[Experiment]:
    """Every experiment of every study."""
    return [experiment for study in studies for experiment in study.experiments]
