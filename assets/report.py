"""Asset `report`: the report over all experiments, store/report/index.html, readable without a network."""

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

CODE = ("warehouse.charts.report",)


def current_report(
    context: dg.AssetExecutionContext, store: Store, replicates: Sequence[Replicate], stages: Sequence[Stage]
) -> tuple[Artifact, str]:
    """The report over the database of this moment."""
    warehouse, _ = current_warehouse(context, store, replicates, stages)
    inputs = {"warehouse": warehouse.key}

    def render(folder: Path) -> None:
        import duckdb

        from warehouse.charts.report import render

        with duckdb.connect(str(warehouse.file(DATABASE)), read_only=True) as connection:
            render(connection, folder)

    return get_or_write(context, store, "report", stage_key("report", {}, inputs, CODE), CODE, inputs, render, {})


def report_asset(replicates: Sequence[Replicate], stages: Sequence[Stage], specs: str) -> dg.AssetsDefinition:
    """The asset `report`."""

    @dg.asset(
        key="report",
        deps=["charts"],
        group_name=GROUP,
        code_version=planned_version(replicates, stages, (*CODE, *WAREHOUSE_CODE)),
        description="What ran, the figures with the SQL behind each, and the claims, as one folder that travels alone.",
        kinds={"html", "altair"},
        owners=OWNERS,
    )
    def report(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult:
        refuse_changed_specs(context, specs)
        began = time.monotonic()
        opened = store.open()
        artifact, cache = current_report(context, opened, replicates, stages)
        exposed = opened.expose(artifact, "report")
        return report_result(context, artifact, cache, time.monotonic() - began, exposed / "index.html")

    return report
