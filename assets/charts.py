"""Asset `charts`: every figure as a file of its own, fed by one SQL view."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from assets.results import DATABASE, WAREHOUSE_CODE, Result, current_warehouse, get_or_write, result_asset
from assets.stage import Plans
from warehouse.keys import stage_key
from warehouse.store import Artifact, Store

CODE = ("warehouse.charts.figures",)


def current_charts(context: dg.AssetExecutionContext, store: Store, plans: Plans) -> tuple[Artifact, str]:
    """The figures over the database of this moment."""
    warehouse, _ = current_warehouse(context, store, plans)
    inputs = {"warehouse": warehouse.key}

    def write(folder: Path) -> Mapping[str, Any]:
        from warehouse.charts.figures import save_all
        from warehouse.reading import read_only

        with read_only(warehouse.file(DATABASE)) as connection:
            drawn = save_all(connection, folder)
        return {"figures": [{"file": f"{d.stem}.svg", "study": d.study or "", "title": d.title} for d in drawn]}

    return get_or_write(context, store, "charts", stage_key("charts", {}, inputs, CODE), CODE, inputs, write)


def listed(artifact: Artifact) -> dict[str, Any]:
    """Metadata: how many figures there are, and which."""
    drawn = artifact.summary["figures"]
    schema = dg.TableSchema([dg.TableColumn(name, "string") for name in ("file", "study", "title")])
    return {"n_figures": len(drawn), "figures": dg.MetadataValue.table([dg.TableRecord(d) for d in drawn], schema)}


CHARTS = Result(
    name="charts",
    description="Every figure as SVG, PNG and Vega-Lite, each drawn from SQL views.",
    kinds=("altair", "sql"),
    code=(*CODE, *WAREHOUSE_CODE),
    current=current_charts,
    exposed="charts",
    told=listed,
)


def charts_asset(plans: Plans, specs: str) -> dg.AssetsDefinition:
    """The asset `charts`, store/charts/*.svg, *.png and *.vl.json."""
    return result_asset(CHARTS, ["warehouse"], plans, specs)
