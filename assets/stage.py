"""A stage: one computation on one replicate, under a cache key that is known before anything runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ops.spec.study import ExperimentSpec
from ops.training.pace import Countdown
from warehouse.keys import key_of, made_of, set_fields

if TYPE_CHECKING:
    import polars as pl

    from warehouse.store import Artifact

Item = TypeVar("Item")
TASK = "{task}"


@dataclass(frozen=True)
class Replicate:
    """One experiment (of whichever kind: `ops.spec.study.Experiment`) with one of its seeds."""

    experiment: Any
    seed: int

    def __str__(self) -> str:
        return f"{self.experiment.name}, seed {self.seed}"


@dataclass(frozen=True)
class Check:
    """What must hold of a stage's result. A blocking check that fails stops what comes after, and the run fails."""

    name: str
    description: str
    blocking: bool = True


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check, with the numbers it rests on."""

    passed: bool
    measured: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What a stage's compute is given: its replicate, its inputs' artifacts, a folder to write in, and a voice.

    `folder` survives a kill: a compute that is started again finds there what it left. `log` takes a line for the
    run's log, `observe` numbers that show on the asset while it is being computed.
    """

    replicate: Replicate
    inputs: "Mapping[str, Artifact]"
    folder: Path
    log: Callable[[str], None]
    observe: Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Computed:
    """What a stage's compute returns: tables, folders (in `Work.folder`) to publish, a JSON summary, verdicts.

    `curves` are small series by name that the asset's page draws.
    """

    tables: "Mapping[str, pl.DataFrame]" = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)


def no_rows(table: str) -> "pl.DataFrame":
    """A table's frame where a stage has none to give: its columns but those that are added on publishing."""
    from ops.tables.tables import TABLES

    return TABLES[table].empty().drop("experiment", "seed")


@dataclass(frozen=True)
class Stage:
    """A step of every replicate's flow.

    `code` names the roots of the code that belongs to the key (`warehouse.code.definitions`: modules, or single
    definitions of them), `code_if` those that belong to it where an experiment declares an optional part (by the part's
    field), `reads` the spec fields, `inputs` the stages it needs.
    "{task}.mechanism" in `code` or `code_if` is that module of the experiment's own task (`ops.tasks.task`).
    `applies` says which experiments have the stage, if not told those that train on a task; `exclusive` stages never
    run two at a time. `order` is the stage's place among all (`assets.registry`), after its inputs in any case; the
    hundreds are chapters.
    """

    name: str
    description: str
    code: tuple[str, ...]
    reads: Callable[[Any], Mapping[str, Any]]
    compute: Callable[[Work], Computed]
    inputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    kinds: tuple[str, ...] = ("python",)
    exclusive: bool = False
    order: int = 1_000
    code_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    applies: Callable[[Any], bool] = lambda experiment: isinstance(experiment, ExperimentSpec)

    def modules(self, experiment: Any) -> tuple[str, ...]:
        """The roots of the code that computes the stage for `experiment`."""
        declared = (modules for part, modules in self.code_if.items() if getattr(experiment, part) is not None)
        named = (*self.code, *(module for modules in declared for module in modules))
        return tuple(module.replace(TASK, experiment.task.package()) if TASK in module else module for module in named)

    def spec(self, replicate: Replicate) -> dict[str, Any]:
        """What the key says about the replicate: its name, its seed, and the set fields that the stage reads."""
        return {
            "experiment": replicate.experiment.name,
            "seed": replicate.seed,
            **set_fields(self.reads(replicate.experiment)),
        }


def has_mechanism(experiment: Any) -> bool:
    """Whether the experiment asks for its model's mechanism, and its task says what one is."""
    return getattr(experiment, "mechanism", None) is not None and bool(experiment.task.module("mechanism"))


def plan(replicate: Replicate, stages: Sequence[Stage]) -> dict[str, str]:
    """The key of every stage that applies to `replicate`, computed without running or importing any of them.

    `stages` stand in an order in which inputs come first; a stage whose input does not apply is refused.
    """
    keys: dict[str, str] = {}
    for stage in stages:
        if not stage.applies(replicate.experiment):
            continue
        if missing := [name for name in stage.inputs if name not in keys]:
            raise ValueError(f"stage {stage.name} of {replicate} needs {missing[0]}, which is not planned before it")
        keys[stage.name] = key_of(parts_of_key(stage, replicate, keys))
    return keys


@dataclass(frozen=True)
class Plans:
    """The keys of all loaded replicates, planned once: by replicate, then by stage. `stages` has inputs first."""

    stages: tuple[Stage, ...]
    keys: Mapping[Replicate, Mapping[str, str]]

    @classmethod
    def of(cls, replicates: Iterable[Replicate], stages: Sequence[Stage]) -> "Plans":
        """The plans of `replicates`."""
        return cls(tuple(stages), {replicate: plan(replicate, stages) for replicate in replicates})


def parts_of_key(stage: Stage, replicate: Replicate, keys: Mapping[str, str]) -> dict[str, Any]:
    """What the key of one stage of `replicate` is made of (`warehouse.keys.made_of`); `keys` has its inputs' keys."""
    inputs = {name: keys[name] for name in stage.inputs}
    return made_of(stage.name, stage.spec(replicate), inputs, stage.modules(replicate.experiment))


def refuse_changed_reads(stage: Stage, replicate: Replicate, keys: Mapping[str, str]) -> None:
    """Raise ValueError if what the stage reads is no longer what its key says: a model was edited since the planning.

    Call it before and after computing: a result must not bear the key of another model.
    """
    if key_of(parts_of_key(stage, replicate, keys)) != keys[stage.name]:
        raise ValueError(
            f"{stage.name} of {replicate}: the files it reads changed while this run was on; start the run again, "
            "finished stages are kept"
        )


def paced(items: Sequence[Item], work: Work, what: str, every_s: float = 10.0) -> Iterator[Item]:
    """`items` one by one, with a line such as `head scores 12/136 (9%) 0.41 s each, ETA 0:00:51` now and then."""
    tell = Countdown(what, work.log, every_s)
    for done, item in enumerate(items):
        if done:
            tell(done, len(items))
        yield item


def every_verdict(stage: Stage, verdicts: Mapping[str, Verdict]) -> list[tuple[Check, Verdict]]:
    """Each declared check with its verdict; a check without a verdict, or a verdict without a check, is a defect."""
    declared = {check.name: check for check in stage.checks}
    if odd := set(declared) ^ set(verdicts):
        raise ValueError(f"stage {stage.name}: checks and verdicts differ in {', '.join(sorted(odd))}")
    return [(declared[name], verdicts[name]) for name in declared]
