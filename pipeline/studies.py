"""The declared studies: every YAML file in pipeline/experiments and in the folders of $ROPEWALK_EXPERIMENTS.

$ROPEWALK_STUDIES (names with commas between) loads some of them alone, and reads no other file to its end.
$ROPEWALK_ONLY and $ROPEWALK_SEEDS, which `python -m pipeline.run --only … --seeds …` sets, leave of these some
experiments and seeds.
"""

import hashlib
import keyword
import os
import re
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from ops.spec.study import Experiment, SpecError, StudySpec, canonical_json, more_seeds, parse_study
from warehouse.durable import StoreError
from warehouse.places import places

OWN = Path(__file__).parent / "experiments"
MORE_SEEDS = "_more_seeds"  # ends the name of the job that has a study's more_seeds too
RESERVED = {"study": {"results", "warehouse", "charts", "report"}, "experiment": {"results"}}
KEPT = frozenset(  # what no job of Dagster may be called; its own list cannot be read without importing all of it
    (*keyword.kwlist, "bool", "conf", "config", "context", "dict", "float", "input", "int", "meta", "output", "str")
    + ("type", "arg_dict", "input_arg_dict", "output_arg_dict")
)
_STUDY = re.compile(rb"^study:[ \t]*([a-z][a-z0-9_]*)[ \t]*(?:#.*)?\r?$", re.MULTILINE)
LONGEST_STUDY = 63  # characters of a tag's value in Dagster; an asset's tags name its study
LARGEST = 4_000_000  # bytes of a study's file


class StudyError(click.ClickException):
    """A study that cannot be run: a terminal shows the sentence alone, without a traceback; the exit code is 1."""


def folders() -> list[Path]:
    """Where studies are looked for: the project's own folder, then those of $ROPEWALK_EXPERIMENTS, each once.

    Raises StudyError.
    """
    try:
        found = [OWN, *places("ROPEWALK_EXPERIMENTS")]
    except StoreError as error:
        raise StudyError(str(error)) from None
    return list({os.path.realpath(folder): folder for folder in found}.values())


def declared_studies(searched: Sequence[Path] | None = None, wanted: Collection[str] = ()) -> tuple[StudySpec, ...]:
    """The studies named `wanted` (none named: all), by file name.

    Raises StudyError with one sentence: file, field, remedy; or the names there are, where a wanted one is not there.
    """
    studies: list[StudySpec] = []
    passed: list[str] = []
    sources: dict[tuple[str, str], Path] = {}
    for folder in folders() if searched is None else searched:
        for path in _files(folder):
            text = _content(path)
            named = _STUDY.search(text) if wanted else None
            if named is not None and named[1].decode() not in wanted:
                passed.append(named[1].decode())
                continue
            study = _parsed(text, path)
            if wanted and study.study not in wanted:
                passed.append(study.study)
                continue
            _refuse_taken(sources, "study", study.study, path)
            for experiment in study.experiments:
                _refuse_taken(sources, "experiment", experiment.name, path)
            studies.append(study)
    if missing := sorted(set(wanted) - {study.study for study in studies}):
        there = ", ".join(sorted({*passed, *(study.study for study in studies)}))
        raise StudyError(f"there is no study {missing[0]!r}; declared are {there}")
    return tuple(studies)


def loaded_studies() -> tuple[StudySpec, ...]:
    """The studies that the environment asks for, with the experiments and seeds that it leaves. Raises StudyError."""
    found = declared_studies(wanted=listed("ROPEWALK_STUDIES"))
    only, seeds = listed("ROPEWALK_ONLY"), listed("ROPEWALK_SEEDS")
    return narrowed(found, only, seeds) if only or seeds else found


def listed(variable: str) -> tuple[str, ...]:
    """The words of a variable with commas between; none where it is unset or empty."""
    return tuple(word.strip() for word in os.environ.get(variable, "").split(",") if word.strip())


def narrowed(studies: Sequence[StudySpec], only: Collection[str], seeds: Collection[str]) -> tuple[StudySpec, ...]:
    """The studies with the experiments `only` and the seeds `seeds` alone (none named: all of them).

    A seed of `more_seeds` that is named becomes one of `seeds`. Raises StudyError where a name or seed is nobody's.
    """
    names = {experiment.name for experiment in experiments(studies)}
    if unknown := sorted(set(only) - names):
        raise StudyError(f"there is no experiment {unknown[0]!r} here; there are {', '.join(sorted(names))}")
    wanted = {int(seed) for seed in seeds if re.fullmatch(r"[0-9]{1,10}", seed)}
    declared: set[int] = set()
    kept: list[StudySpec] = []
    for study in studies:
        chosen = []
        for experiment in study.experiments:
            if only and experiment.name not in only:
                continue
            all_seeds = (*experiment.seeds, *more_seeds(experiment))
            declared.update(all_seeds)
            left = tuple(seed for seed in all_seeds if seed in wanted) if seeds else experiment.seeds
            if left:
                fields = {"seeds": left} | ({"more_seeds": ()} if seeds and more_seeds(experiment) else {})
                chosen.append(experiment.model_copy(update=fields))
        if chosen:
            kept.append(study.model_copy(update={"experiments": tuple(chosen)}))
    if strange := [seed for seed in seeds if not seed.isdecimal() or int(seed) not in declared]:
        there = ", ".join(map(str, sorted(declared)))
        raise StudyError(f"seed {strange[0]!r} is declared by none of the experiments; their seeds are {there}")
    return tuple(kept)


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


def _content(path: Path) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe that nobody writes to opens too
            held = os.fstat(file.fileno())
            if not stat.S_ISREG(held.st_mode):
                raise StudyError(f"{shown(path)}: cannot be read (it is no file); remove it or name it otherwise")
            if held.st_size > LARGEST:
                raise StudyError(f"{shown(path)}: has {held.st_size:,} bytes; a study has {LARGEST:,} at most")
            return file.read()
    except OSError as error:
        raise StudyError(f"{shown(path)}: cannot be read ({error.strerror}); correct the file or remove it") from None


def _parsed(text: bytes, path: Path) -> StudySpec:
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
    if study in KEPT:
        raise StudyError(
            f"{shown(path)}: study: {study!r} is a word that Dagster or Python keeps for itself; choose another one, "
            f"e.g. {study}_study"
        )
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
