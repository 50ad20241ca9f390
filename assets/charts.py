"""Asset `charts`: every figure as a file of its own, fed by one SQL view."""

import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from assets.builder import OWNERS, StoreResource, refuse_changed_specs
from assets.results import (
    DATABASE,
    GROUP,
    WAREHOUSE_CODE,
    current_warehouse,
    get_or_write,
    planned_version,
    report_result,
)
from assets.stage import Replicate, Stage
from warehouse.keys import stage_key
from warehouse.store import Artifact, Store

CODE = ("warehouse.charts.figures",)


def current_charts(
    context: dg.AssetExecutionContext, store: Store, replicates: Sequence[Replicate], stages: Sequence[Stage]
) -> tuple[Artifact, str]:
    """The figures over the database of this moment."""
    warehouse, _ = current_warehouse(context, store, replicates, stages)
    inputs = {"warehouse": warehouse.key}

    def render(folder: Path) -> None:
        import duckdb

        from warehouse.charts.figures import save_all

        with duckdb.connect(str(warehouse.file(DATABASE)), read_only=True) as connection:
            save_all(connection, folder)

    return get_or_write(context, store, "charts", stage_key("charts", {}, inputs, CODE), CODE, inputs, render, {})


def charts_asset(replicates: Sequence[Replicate], stages: Sequence[Stage], specs: str) -> dg.AssetsDefinition:
    """The asset `charts`."""

    @dg.asset(
        key="charts",
        deps=["warehouse"],
        group_name=GROUP,
        code_version=planned_version(replicates, stages, (*CODE, *WAREHOUSE_CODE)),
        description="Every figure of the report as SVG and PNG, each drawn from one SQL view.",
        kinds={"altair", "sql"},
        owners=OWNERS,
    )
    def charts(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult:
        refuse_changed_specs(context, specs)
        began = time.monotonic()
        opened = store.open()
        artifact, cache = current_charts(context, opened, replicates, stages)
        exposed = opened.expose(artifact, "charts")
        return report_result(context, artifact, cache, time.monotonic() - began, exposed)

    return charts
