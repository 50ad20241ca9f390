"""Asset `report`: the report over all experiments, store/report/index.html, readable without a network.

Its figures are those of the asset `charts`. The claims that it opens with are its asset checks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from assets import charts
from assets.claims import claim_checks, claim_results, claims_table, json_rows
from assets.results import DATABASE, WAREHOUSE_CODE, Result, current_warehouse, get_or_write, result_asset
from assets.stage import Plans
from warehouse.keys import stage_key
from warehouse.store import Artifact, Store

CODE = ("warehouse.charts.report",)


def current_report(context: dg.AssetExecutionContext, store: Store, plans: Plans) -> tuple[Artifact, str]:
    """The report over the database and the figures of this moment."""
    warehouse, _ = current_warehouse(context, store, plans)
    drawn, _ = charts.current_charts(context, store, plans)
    inputs = {"warehouse": warehouse.key, "charts": drawn.key}

    def write(folder: Path) -> Mapping[str, Any]:
        from warehouse.charts.report import render
        from warehouse.charts.style import rows
        from warehouse.reading import read_only

        with read_only(warehouse.file(DATABASE)) as connection:
            render(connection, [drawn.file(name) for name in drawn.files], folder)
            return {"claims": json_rows(rows(connection, "FROM claims"))}

    return get_or_write(context, store, "report", stage_key("report", {}, inputs, CODE), CODE, inputs, write)


REPORT = Result(
    name="report",
    description="The verdict on every claim, what ran, and the figures with the SQL behind each, as one folder that "
    "travels alone. Every claim is a check: it warns when the claim is not reproduced, and stops nothing.",
    kinds=("html", "altair"),
    code=(*CODE, *charts.CODE, *WAREHOUSE_CODE),
    current=current_report,
    exposed="report",
    page="index.html",
    told=lambda artifact: claims_table(artifact.summary["claims"]),
    checks=claim_checks("report"),
    judged=lambda artifact: claim_results(artifact.summary["claims"]),
)


def report_asset(plans: Plans, specs: str) -> dg.AssetsDefinition:
    """The asset `report`, store/report/index.html."""
    return result_asset(REPORT, ["warehouse", "charts"], plans, specs)
