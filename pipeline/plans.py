"""The keys that the declared studies give now, without running or loading anything: what explain and prune compare."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assets.registry import STAGES
from assets.stage import Replicate, Stage, parts_of_key
from ops.spec.study import StudySpec, more_seeds
from pipeline.studies import declared_studies
from warehouse.keys import key_of


class Planned(NamedTuple):
    """One artifact as today's code and specs give it; `parts` is what `key` is made of."""

    experiment: str
    seed: int
    stage: str
    key: str
    parts: dict[str, Any]


def replicates(studies: Sequence[StudySpec]) -> list[Replicate]:
    """Each experiment with each of its seeds, those that only the job `<study>_more_seeds` runs among them."""
    return [
        Replicate(experiment, seed)
        for study in studies
        for experiment in study.experiments
        for seed in (*experiment.seeds, *more_seeds(experiment))
    ]


def planned(experiment: str | None = None, stages: Sequence[Stage] = STAGES) -> Iterator[Planned]:
    """Every artifact of every declared study, or those of one experiment. Raises StudyError on a faulty file."""
    for replicate in replicates(declared_studies()):
        if experiment is not None and replicate.experiment.name != experiment:
            continue
        keys: dict[str, str] = {}
        for stage in stages:
            if stage.applies(replicate.experiment):
                parts = parts_of_key(stage, replicate, keys)
                keys[stage.name] = key_of(parts)
                yield Planned(replicate.experiment.name, replicate.seed, stage.name, keys[stage.name], parts)
