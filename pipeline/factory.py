"""Experiment × seed × stage → assets (a factory, no partitions), and the assets over all experiments."""

from collections.abc import Sequence

import dagster as dg

from assets.builder import stage_asset
from assets.charts import charts_asset
from assets.registry import STAGES
from assets.report import report_asset
from assets.results import warehouse_asset
from assets.stage import Plans, Stage
from ops.spec.study import StudySpec
from pipeline import studies as declared
from pipeline.plans import replicates

OVER_ALL = {"warehouse": warehouse_asset, "charts": charts_asset, "report": report_asset}


def build_assets(studies: Sequence[StudySpec], stages: Sequence[Stage] = STAGES) -> list[dg.AssetsDefinition]:
    """All assets of all studies."""
    specs = declared.digest(studies)
    plans, by_name = Plans.of(replicates(studies), stages), {stage.name: stage for stage in stages}
    return [
        *(
            stage_asset(stage, by_name, replicate, planned, specs)
            for replicate, planned in plans.keys.items()
            for stage in stages
            if stage.name in planned
        ),
        *(asset(plans, specs) for asset in OVER_ALL.values()),
    ]
