"""One job a study, a second one where it has more seeds, and one that renews the report from what the store holds."""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.builder import SPECS_TAG
from ops.spec.study import StudySpec, more_seeds
from pipeline import studies as declared
from pipeline.asked import RESULTS
from pipeline.executors import executor
from pipeline.factory import OVER_ALL

CONSOLE = {"loggers": {"console": {"config": {"log_level": "INFO"}}}}


def seeds_of_the_job(study: StudySpec) -> dg.AssetSelection:
    """The assets of a study's experiments, without those of `more_seeds`."""
    selections = []
    for experiment in study.experiments:
        selection = dg.AssetSelection.groups(experiment.name)
        for seed in more_seeds(experiment):
            selection = selection - dg.AssetSelection.tag("seed", str(seed))
        selections.append(selection)
    return functools.reduce(operator.or_, selections)


def build_jobs(studies: Sequence[StudySpec]) -> list[Any]:
    """The jobs, as Dagster's unresolved asset jobs (a type that it does not export)."""
    over_all = dg.AssetSelection.assets(*OVER_ALL)
    tags = {SPECS_TAG: declared.digest(studies)}

    def job(study: StudySpec, name: str, selection: dg.AssetSelection, description: str) -> Any:
        return dg.define_asset_job(
            name=name,
            selection=selection | over_all,
            description=description,
            tags=tags,
            config=CONSOLE,
            executor_def=executor(study),
        )

    jobs = []
    for study in studies:
        jobs.append(job(study, study.study, seeds_of_the_job(study), study.description))
        if any(more_seeds(experiment) for experiment in study.experiments):
            everything = dg.AssetSelection.groups(*(experiment.name for experiment in study.experiments))
            name = study.study + declared.MORE_SEEDS
            jobs.append(job(study, name, everything, f"{study.description} With the seeds of more_seeds as well."))
    report = dg.define_asset_job(
        name=RESULTS,
        selection=over_all,
        description="Rebuild the warehouse, the charts and the report from what the store holds.",
        tags=tags,
        config=CONSOLE,
        executor_def=dg.in_process_executor,
    )
    return [*jobs, report]
