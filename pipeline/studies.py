"""The declared studies: every YAML file in pipeline/experiments and in the folders of $ROPEWALK_EXPERIMENTS."""

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import click
import dagster as dg

from ops.spec.study import Experiment, SpecError, StudySpec, canonical_json, parse_study
from warehouse.durable import StoreError
from warehouse.places import places

OWN = Path(__file__).parent / "experiments"
MORE_SEEDS = "_more_seeds"  # ends the name of the job that has a study's more_seeds too
RESERVED = {"study": {"results", "warehouse", "charts", "report"}, "experiment": {"results"}}
LONGEST_STUDY = 63  # characters of a tag's value in Dagster; an asset's tags name its study
LARGEST = 4_000_000  # bytes of a study's file


class StudyError(click.ClickException, dg.DagsterError):
    """A study that cannot be run: `dagster` prints the sentence alone, without a traceback, and exits with 1.

    A click error for the terminal's sake. A Dagster error since Dagster would wrap another one in its own when it loads
    the project, and its pages would begin with that instead of the sentence.
    """


def folders() -> list[Path]:
    """Where studies are looked for: the project's own folder, then those of $ROPEWALK_EXPERIMENTS, each once.

    Raises StudyError.
    """
    try:
        found = [OWN, *places("ROPEWALK_EXPERIMENTS")]
    except StoreError as error:
        raise StudyError(str(error)) from None
    return list({os.path.realpath(folder): folder for folder in found}.values())


def declared_studies(searched: Sequence[Path] | None = None) -> tuple[StudySpec, ...]:
    """All studies, by file name. Raises StudyError with one sentence: file, field, remedy."""
    studies: list[StudySpec] = []
    sources: dict[tuple[str, str], Path] = {}
    for folder in folders() if searched is None else searched:
        for path in _files(folder):
            study = _read(path)
            _refuse_taken(sources, "study", study.study, path)
            for experiment in study.experiments:
                _refuse_taken(sources, "experiment", experiment.name, path)
            studies.append(study)
    return tuple(studies)


def _files(folder: Path) -> list[Path]:
    """The YAML files of a folder by name, without those that editors and systems put there.

    Hidden ones are theirs (`._a.yaml` from a Mac, Emacs' lock `.#a.yaml`), and those that begin with ~ (an office
    program's lock `~$a.yaml`) or # are too.
    """
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(f"{shown(folder)}: no such folder; correct ROPEWALK_EXPERIMENTS") from None
    except OSError as error:
        raise StudyError(
            f"{shown(folder)}: cannot be read ({error.strerror}); correct the folder or ROPEWALK_EXPERIMENTS"
        ) from None
    return [folder / name for name in names if name.lower().endswith((".yaml", ".yml")) and name[0] not in ".~#"]


def _read(path: Path) -> StudySpec:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe that nobody writes to opens too
            held = os.fstat(file.fileno())
            if not stat.S_ISREG(held.st_mode):
                raise StudyError(f"{shown(path)}: cannot be read (it is no file); remove it or name it otherwise")
            if held.st_size > LARGEST:
                raise StudyError(f"{shown(path)}: has {held.st_size:,} bytes; a study has {LARGEST:,} at most")
            text = file.read()
    except OSError as error:
        raise StudyError(f"{shown(path)}: cannot be read ({error.strerror}); correct the file or remove it") from None
    try:
        return parse_study(text, shown(path))
    except SpecError as error:
        raise StudyError(str(error)) from None


def _refuse_taken(sources: dict[tuple[str, str], Path], kind: str, text: str, path: Path) -> None:
    name = (kind, text)
    field = "study" if kind == "study" else f"experiments.{text}"
    taken = kind == "study" and ("__" in text or text.endswith(MORE_SEEDS))
    if text in RESERVED[kind] or taken:
        raise StudyError(f"{shown(path)}: {field}: {text!r} is the pipeline's own name; choose another one")
    if kind == "study":
        _refuse_unfit(text, path)
    if name in sources:
        raise StudyError(
            f"{shown(path)}: {field}: the {kind} {text!r} is declared in {shown(sources[name])} already; rename one"
        )
    sources[name] = path


def _refuse_unfit(study: str, path: Path) -> None:
    """Raise StudyError for a name that no job of Dagster can have. Experiments' names are parts of longer ones."""
    try:
        dg.GraphDefinition(name=study)  # the cheapest thing with a name that Dagster checks as it checks a job's
    except dg.DagsterInvalidDefinitionError:
        raise StudyError(
            f"{shown(path)}: study: {study!r} is a word that Dagster or Python keeps for itself; choose another one, "
            f"e.g. {study}_study"
        ) from None
    if len(study) > LONGEST_STUDY:
        raise StudyError(f"{shown(path)}: study: has {len(study)} characters, {LONGEST_STUDY} at most; shorten it")


def shown(path: Path) -> str:
    """A path as a user would type it: relative to the current folder where it lies below it, on one line."""
    try:
        text = str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError, RuntimeError):  # elsewhere, no current folder any more, links in a circle
        text = str(path)
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def digest(studies: Sequence[StudySpec]) -> str:
    """One hash over everything that all studies declare."""
    content = [study.model_dump(mode="json") for study in studies]
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def experiments(studies: Sequence[StudySpec]) -> list[Experiment]:
    """Every experiment of every study."""
    return [experiment for study in studies for experiment in study.experiments]
