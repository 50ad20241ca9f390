"""Experiment × seed × stage → assets (a factory, no partitions), and the assets over all experiments."""

from collections.abc import Sequence

import dagster as dg

from assets.builder import stage_asset
from assets.charts import charts_asset
from assets.registry import STAGES
from assets.report import report_asset
from assets.results import warehouse_asset
from assets.stage import Replicate, Stage
from ops.spec.study import StudySpec, more_seeds
from pipeline import studies as declared

OVER_ALL = {"warehouse": warehouse_asset, "charts": charts_asset, "report": report_asset}


def replicates(studies: Sequence[StudySpec]) -> list[Replicate]:
    """Each experiment with each of its seeds, those that only the job `<study>_more_seeds` runs among them."""
    return [
        Replicate(experiment, seed)
        for experiment in declared.experiments(studies)
        for seed in (*experiment.seeds, *more_seeds(experiment))
    ]


def build_assets(studies: Sequence[StudySpec], stages: Sequence[Stage] = STAGES) -> list[dg.AssetsDefinition]:
    """All assets of all studies."""
    specs = declared.digest(studies)
    each = replicates(studies)
    return [
        *(
            stage_asset(stage, stages, replicate, specs)
            for replicate in each
            for stage in stages
            if stage.applies(replicate.experiment)
        ),
        *(asset(each, stages, specs) for asset in OVER_ALL.values()),
    ]
