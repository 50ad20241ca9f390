"""Assets over all experiments: what they share, and the warehouse; the charts and the report have their own modules.

Each makes sure of what it is made from, so that they never mix two states of the store, whoever else publishes.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg

from assets.builder import OWNERS, StoreResource, asset_key, figures, get_or_build, refuse_changed_specs
from assets.held import Held
from assets.provenance import provenance
from assets.stage import Plans
from warehouse.code import modules_that_define, refuse_edited_code
from warehouse.durable import move
from warehouse.keys import code_of, stage_key
from warehouse.store import Artifact, Store

GROUP = "results"
WAREHOUSE_CODE = ("warehouse.catalog", *modules_that_define("ops.tables", ("ORDER", "ROOM_TABLES")))
DATABASE = "warehouse.duckdb"

Current = Callable[[dg.AssetExecutionContext, Store, Plans], tuple[Artifact, str]]


@dataclass(frozen=True)
class Result:
    """An asset over all experiments.

    `current` brings it up to date with the store and returns the artifact and "hit" or "miss"; `exposed` is the name
    under which readers find it in the store's folder, and `page` the file in there that a person opens. `told` is more
    metadata, `judged` the outcome of `checks`, both from the artifact's manifest, so that a hit has them too.
    """

    name: str
    description: str
    kinds: tuple[str, ...]
    code: tuple[str, ...]
    current: Current
    exposed: str
    page: str = ""
    told: Callable[[Artifact], Mapping[str, Any]] = lambda artifact: {}
    checks: tuple[dg.AssetCheckSpec, ...] = ()
    judged: Callable[[Artifact], Sequence[dg.AssetCheckResult]] = lambda artifact: ()


def digest_of_files(*folders: str) -> str:
    """One hash over the SQL and CSV files of folders of the package `warehouse`."""
    digest = hashlib.sha256()
    for folder in folders:
        for entry in sorted((files("warehouse") / folder).iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith((".sql", ".csv")):
                digest.update(f"{folder}/{entry.name}\0".encode() + entry.read_bytes() + b"\0")
    return digest.hexdigest()


def get_or_write(
    context: dg.AssetExecutionContext,
    store: Store,
    name: str,
    key: str,
    code: Sequence[str],
    inputs: Mapping[str, str],
    write: Callable[[Path], Mapping[str, Any]],
) -> tuple[Artifact, str]:
    """The artifact and "hit" or "miss"; `write(folder)` fills the folder that is published and returns its summary."""

    def build(work: Path, _: None) -> Artifact:
        refuse_edited_code(code)
        context.log.info(f"{name}: computing ({key[:12]})")
        began = time.monotonic()
        made = work / "made"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        summary = write(made)
        wall_s = time.monotonic() - began

        def fill(folder: Path) -> None:
            for path in made.iterdir():
                move(path, folder / path.name)

        return store.publish(
            name,
            key,
            fill,
            spec={},
            inputs=inputs,
            code=code_of(code),
            provenance=provenance(wall_s),
            summary=summary,
        )

    return get_or_build(store, name, key, lambda: store.get(name, key), build, lambda: None)


def current_warehouse(context: dg.AssetExecutionContext, store: Store, plans: Plans) -> tuple[Artifact, str]:
    """The database over everything that the store holds now."""
    from warehouse.catalog import build, rows_by_table

    held = Held(store, plans)
    reads = {"files": digest_of_files("sql", "paper"), "experiments": held.rows}

    def write(folder: Path) -> dict[str, Any]:
        rows = rows_by_table(build(folder / DATABASE, held.artifacts.values(), held.rows))
        return {"n_artifacts": len(held.artifacts), "missing": held.missing, "rows": rows}

    return get_or_write(
        context,
        store,
        "warehouse",
        stage_key("warehouse", reads, held.keys, WAREHOUSE_CODE),
        WAREHOUSE_CODE,
        held.keys,
        write,
    )


def planned_version(plans: Plans, code: Sequence[str]) -> str:
    """The code version of an asset over all experiments: its own code, SQL and the keys of all that is declared."""
    keys = {
        f"{replicate.experiment.name}/{stage}_s{replicate.seed}": key
        for replicate, planned in plans.keys.items()
        for stage, key in planned.items()
    }
    return stage_key("results", {"files": digest_of_files("sql", "paper")}, keys, code)


def result_asset(result: Result, deps: Sequence[Any], plans: Plans, specs: str) -> dg.AssetsDefinition:
    """The Dagster asset of a result. `specs` is the digest of all declared studies."""

    @dg.asset(
        key=result.name,
        deps=deps,
        group_name=GROUP,
        code_version=planned_version(plans, result.code),
        description=result.description,
        kinds=set(result.kinds),
        owners=OWNERS,
        check_specs=result.checks,
    )
    def compute(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult:
        refuse_changed_specs(context, specs)
        began = time.monotonic()
        opened = store.open()
        artifact, cache = result.current(context, opened, plans)
        shown = opened.expose(artifact, result.exposed) / result.page
        said = "in the store, nothing computed" if cache == "hit" else "computed"
        context.log.info(f"{result.name}: {said}; {shown}")
        return dg.MaterializeResult(
            data_version=dg.DataVersion(artifact.key),
            metadata={**result.told(artifact), **figures(artifact, cache, time.monotonic() - began, shown)},
            check_results=result.judged(artifact),
        )

    return compute


def cleaned_warehouse(context: dg.AssetExecutionContext, store: Store, plans: Plans) -> tuple[Artifact, str]:
    """`current_warehouse`, after the left-overs of dead writers are removed; says what the store lacks."""
    for path in store.clean():
        context.log.info(f"removed a dead writer's left-over {path}")
    artifact, cache = current_warehouse(context, store, plans)
    if missing := artifact.summary["missing"]:
        context.log.info(
            f"{len(missing)} declared artifacts of all studies are not in the store, so not in the warehouse "
            "(the asset's metadata names them)"
        )
    return artifact, cache


def tables(artifact: Artifact) -> dict[str, Any]:
    """Metadata of the warehouse: rows of every table that has some, and what of the declared was not there."""
    rows = artifact.summary["rows"]
    records = [dg.TableRecord({"table": name, "rows": n}) for name, n in sorted(rows.items()) if n]
    schema = dg.TableSchema([dg.TableColumn("table", "string"), dg.TableColumn("rows", "int")])
    return {
        "dagster/row_count": sum(rows.values()),
        "artifacts": artifact.summary["n_artifacts"],
        "tables": dg.MetadataValue.table(records, schema),
        "not yet computed": dg.MetadataValue.json(artifact.summary["missing"]),
    }


WAREHOUSE = Result(
    name="warehouse",
    description="Every table and view in one DuckDB file over all that the store holds, open to readers any time.",
    kinds=("duckdb", "sql"),
    code=WAREHOUSE_CODE,
    current=cleaned_warehouse,
    exposed=DATABASE,
    told=tables,
)


def warehouse_asset(plans: Plans, specs: str) -> dg.AssetsDefinition:
    """The asset `warehouse`: one DuckDB file with every table and view, swapped in as store/warehouse.duckdb."""
    deps = [asset_key(replicate, stage) for replicate, planned in plans.keys.items() for stage in planned]
    return result_asset(WAREHOUSE, deps, plans, specs)
