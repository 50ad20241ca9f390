"""One job a study, and one that renews the report from what the store holds."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.builder import SPECS_TAG
from ops.spec.study import StudySpec
from pipeline import studies as declared
from pipeline.executors import executor
from pipeline.factory import OVER_ALL

CONSOLE = {"loggers": {"console": {"config": {"log_level": "INFO"}}}}
RESULTS = "results"


def build_jobs(studies: Sequence[StudySpec]) -> list[Any]:
    """The jobs, as Dagster's unresolved asset jobs (a type that it does not export)."""
    over_all = dg.AssetSelection.assets(*OVER_ALL)
    tags = {SPECS_TAG: declared.digest(studies)}
    jobs = [
        dg.define_asset_job(
            name=study.study,
            selection=dg.AssetSelection.groups(*(experiment.name for experiment in study.experiments)) | over_all,
            description=study.description,
            tags=tags,
            config=CONSOLE,
            executor_def=executor(study),
        )
        for study in studies
    ]
    report = dg.define_asset_job(
        name=RESULTS,
        selection=over_all,
        description="Rebuild the warehouse, the charts and the report from what the store holds.",
        tags=tags,
        config=CONSOLE,
        executor_def=dg.in_process_executor,
    )
    return [*jobs, report]
