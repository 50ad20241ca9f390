"""The results database: one DuckDB file with every table, view and comment, which travels alone."""

import csv
import graphlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl

from ops.spec.study import KINDS, Experiment, ExperimentSpec, canonical_json
from ops.tables.columns import VIEW_COLUMNS
from ops.tables.table import Table
from ops.tables.tables import ALL_COLUMNS, TABLES, frame_for
from warehouse.reading import read_only
from warehouse.store import Artifact

SQL = files("warehouse") / "sql"
PAPER = files("warehouse") / "paper"

_DUCKDB_TYPES = {
    pl.String: "VARCHAR",
    pl.Int32: "INTEGER",
    pl.Int64: "BIGINT",
    pl.Float64: "DOUBLE",
    pl.Boolean: "BOOLEAN",
    pl.List(pl.String): "VARCHAR[]",
    pl.List(pl.Int32): "INTEGER[]",
    pl.List(pl.Float64): "DOUBLE[]",
}


SCHEMA_VERSION = 2  # raised when a column of a table or view is renamed or goes; `warehouse_version` says it
FIRST_EDITION = "first_edition"
RENAMED = {  # (relation, or "" for all, and column) -> its name in schema version 1
    ("", "positional_score"): "positional",
    ("", "symbolic_score"): "symbolic",
    ("", "place_in_source"): "where",
    ("experiments", "study"): "profile",
}
RENAMED_VIEWS = {  # likewise, of whole views
    "score_variant_changes": "score_definitions",
    "canonical_plane_points": "canonical_geometry",
}


class CatalogError(RuntimeError):
    """A database that cannot be built. One sentence with the file or table and the remedy."""


class View(NamedTuple):
    """A view: its file's name, one SELECT statement, and the lines of the comment at the file's head."""

    name: str
    select: str
    comment: tuple[str, ...]


def experiment_row(spec: Experiment, seed: int, *, key: str | None, n_parameters: int | None) -> dict[str, Any]:
    """A row of `experiments`. `key` is that of the newest stage that all results depend on, `n_parameters` the size.

    What an experiment without a task of ours lacks (layers, hops, …) is NULL.
    """
    row: dict[str, Any] = dict.fromkeys(TABLES["experiments"].schema)
    row |= {"experiment": spec.name, "seed": seed, "study": spec.study, "n_parameters": n_parameters, "key": key}
    row["spec"] = canonical_json(spec.model_dump(mode="json"))
    if not isinstance(spec, ExperimentSpec):
        return row | {"task": next(field for field, kind in KINDS.items() if isinstance(spec, kind))}
    model = spec.model
    return row | {
        "task": spec.task.name,
        "n_layers": model.n_layers,
        "n_heads": model.n_heads,
        "width": model.width,
        "sequence_length": spec.task.sequence_length,
        "hops": list(spec.task.hops),
        "frequencies": list(model.frequencies_rotating),
    }


def build(
    path: Path,
    artifacts: Iterable[Artifact],
    experiments: Sequence[Mapping[str, Any]] = (),
    sql: Traversable = SQL,
) -> Path:
    """Build the database at `path`, which must not exist, and return it.

    `experiments` are rows of that table (`experiment_row`). Every table of `ops.tables.tables` exists afterwards, empty
    if nothing ran; rows come from the artifacts' Parquet files and stand in the order of experiment, seed, stage and
    file. Then every file of `sql` becomes a view. Equal artifacts give equal tables.
    Raises CatalogError on a faulty SQL file, FileExistsError, and StoreError on a damaged artifact.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists; build beside it and let the store swap it in")
    ordered = sorted({(a.stage, a.key): a for a in artifacts}.values(), key=_order)
    connection = duckdb.connect(str(path))
    try:
        connection.execute("SET enable_progress_bar = false")  # it would go to stdout, in the middle of a run's log
        connection.begin()
        for table in TABLES.values():
            _create(connection, table)
        for name, frame in _rows(ordered, experiments):
            _insert(connection, TABLES[name], frame)
        for view in in_dependency_order(views(sql)):
            _create_view(connection, view)
        _create_first_edition(connection)
        connection.commit()
        connection.execute("CHECKPOINT")
    except BaseException:
        connection.close()
        path.unlink(missing_ok=True)
        raise
    connection.close()
    return path


def rows_by_table(path: Path) -> dict[str, int]:
    """The number of rows of every table (not view) of a database."""
    with read_only(path) as connection:
        return {name: connection.sql(f'FROM "{name}"').count("*").fetchall()[0][0] for name in TABLES}


def views(folder: Traversable = SQL) -> list[View]:
    """The views of a folder, by name; each *.sql file is one.

    A file begins with a comment that says what a row is and becomes the view's; a line `-- column: what it means` in it
    becomes the column's. One SELECT follows.
    """
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_parse(name.removesuffix(".sql"), (folder / name).read_text(encoding="utf-8")) for name in names]


def in_dependency_order(declared: Sequence[View]) -> list[View]:
    """The views with those that others read first. Raises CatalogError if some read each other in a circle."""
    by_name = {view.name: view for view in sorted(declared)}
    reads: dict[str, list[str]] = {}
    with duckdb.connect() as parser:
        for name, view in by_name.items():
            reads[name] = sorted(_tables_read(parser, view) & (set(by_name) - {name}))
    try:
        return [by_name[name] for name in graphlib.TopologicalSorter(reads).static_order()]
    except graphlib.CycleError as error:
        raise CatalogError(f"views read each other in a circle: {' → '.join(error.args[1])}; cut it") from None


def _tables_read(connection: duckdb.DuckDBPyConnection, view: View) -> set[str]:
    """Names of tables, views and common table expressions that a SELECT reads, by DuckDB's own parser."""
    (serialised,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [view.select]).fetchone() or ("",)
    tree = json.loads(serialised)
    if tree["error"] or len(tree["statements"]) != 1:
        reason = " ".join(tree.get("error_message", "several statements").split())
        raise CatalogError(f"sql/{view.name}.sql: {reason}; write one SELECT")
    names: set[str] = set()
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                names.add(node["table_name"])
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return names


def _parse(name: str, text: str) -> View:
    if name in TABLES or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise CatalogError(f"sql/{name}.sql: {name} is a base table or not a plain name; rename the file")
    lines = text.splitlines()
    n_head = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    head = [line.removeprefix("--").strip() for line in lines[:n_head]]
    select = "\n".join(lines[n_head:]).strip().rstrip(";")
    if not head or not select:
        raise CatalogError(f"sql/{name}.sql: must begin with a comment that explains a row and go on with a SELECT")
    return View(name, select, tuple(head))


def _explained(view: View, present: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The comment on a view, and those on its columns that its file has."""
    comment: list[str] = []
    columns: dict[str, str] = {}
    for line in view.comment:
        name, colon, text = line.partition(": ")
        if colon and name in present and comment:
            columns[name] = text
        else:
            comment.append(line)
    return " ".join(comment), columns


def _create(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    columns = ", ".join(f'"{column.name}" {_DUCKDB_TYPES[column.dtype]}' for column in table.columns)
    connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
    connection.execute(f'COMMENT ON TABLE "{table.name}" IS {_quoted(table.comment)}')
    for column in table.columns:
        _comment_on_column(connection, table.name, column.name, column.description)


def _create_view(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    try:
        connection.execute(f'CREATE VIEW "{view.name}" AS {view.select}')
    except duckdb.Error as error:
        raise CatalogError(f"sql/{view.name}.sql: {' '.join(str(error).split())}; correct the query") from None
    present = [row[0] for row in connection.execute(f'DESCRIBE "{view.name}"').fetchall()]
    comment, explained = _explained(view, present)
    connection.execute(f'COMMENT ON VIEW "{view.name}" IS {_quoted(comment)}')
    for column in present:
        text = explained.get(column) or VIEW_COLUMNS.get(column)
        if text is None and column in ALL_COLUMNS:
            text = ALL_COLUMNS[column].description
        if text is not None:
            _comment_on_column(connection, view.name, column, text)


def _create_first_edition(connection: duckdb.DuckDBPyConnection) -> None:
    """Schema `first_edition`: the relations that were renamed since, or their columns, under the old names.

    `SET search_path = 'first_edition,main'` makes them answer. It is kept for one release.
    """
    connection.execute(f"CREATE SCHEMA {FIRST_EDITION}")
    found = connection.execute(
        "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
        "WHERE schema_name = 'main' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for relation, columns in found:
        old = {new: old for (owner, new), old in RENAMED.items() if owner in ("", relation) and new in columns}
        if old or relation in RENAMED_VIEWS:
            before = RENAMED_VIEWS.get(relation, relation)
            named = ", ".join(f'"{column}" AS "{old.get(column, column)}"' for column in columns)
            connection.execute(f'CREATE VIEW {FIRST_EDITION}."{before}" AS SELECT {named} FROM main."{relation}"')


def _comment_on_column(connection: duckdb.DuckDBPyConnection, owner: str, column: str, text: str) -> None:
    connection.execute(f'COMMENT ON COLUMN "{owner}"."{column}" IS {_quoted(text)}')


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, frame: pl.DataFrame) -> None:
    if frame.height:
        connection.register("new_rows", frame.to_arrow())
        connection.execute(f'INSERT INTO "{table.name}" SELECT * FROM new_rows')
        connection.unregister("new_rows")


def _rows(ordered: Sequence[Artifact], experiments: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, pl.DataFrame]]:
    """(table, rows) of everything that goes into the database, in a fixed order."""
    for row in sorted(experiments, key=lambda row: (row["experiment"], row["seed"])):
        yield "experiments", _single("experiments", row)
    for artifact in ordered:
        yield "artifacts", _single("artifacts", _artifact_row(artifact))
        for name in artifact.files:
            table = name.removesuffix(".parquet")
            if name.endswith(".parquet") and table in TABLES:
                yield table, artifact.table(table).select(list(TABLES[table].schema))
    yield "paper_values", paper_values()
    yield "claim_statements", claim_statements()


def _single(table: str, row: Mapping[str, Any]) -> pl.DataFrame:
    schema = TABLES[table].schema
    values = {name: [value] for name, value in row.items() if name not in ("experiment", "seed")}
    frame = pl.DataFrame({name: pl.Series(name, value, dtype=schema.get(name)) for name, value in values.items()})
    return frame_for(table, frame, row["experiment"], row["seed"])


def _artifact_row(artifact: Artifact) -> dict[str, Any]:
    """A row of `artifacts`. Experiment and seed stand in the manifest's spec or provenance, or are NULL."""
    provenance = artifact.manifest["provenance"]
    return {
        "experiment": _owner(artifact)[0],
        "seed": _owner(artifact)[1],
        "stage": artifact.stage,
        "key": artifact.key,
        "bytes": artifact.n_bytes,
        **{name: provenance.get(name) for name in ("wall_s", "created_at", "device", "torch_version", "git_revision")},
        "inputs": sorted(artifact.manifest["inputs"].values()),
    }


def _owner(artifact: Artifact) -> tuple[str | None, int | None]:
    for part in (artifact.manifest["spec"], artifact.manifest["provenance"]):
        if isinstance(part.get("experiment"), str):
            return part["experiment"], part.get("seed")
    return None, None


def _order(artifact: Artifact) -> tuple[str, int, str, str]:
    experiment, seed = _owner(artifact)
    return experiment or "", -1 if seed is None else seed, artifact.stage, artifact.key


def paper_values() -> pl.DataFrame:
    """The papers' figures as rows of `paper_values`; `item` is `<task>_frequency_id`, `<task>_theta` or
    `<task>_accuracy_mean/<model>`, `<task>_accuracy_std/<model>`."""
    rows: list[dict[str, Any]] = []
    for row in _csv("frequency_use.csv"):
        for item in ("number_frequency_id", "number_theta", "letter_frequency_id", "letter_theta"):
            value = float(row[item])
            rows.append({"source": "PVS Table 1", "item": item, "layer": int(row["layer"]), "value": value})
    for row in _csv("llm_length_accuracy.csv"):
        for statistic in ("mean", "std"):
            item, length = f"{row['task']}_accuracy_{statistic}/{row['model']}", int(row["length"])
            rows.append({"source": "PVS Table 3", "item": item, "length": length, "value": float(row[statistic])})
    schema = {
        name: dtype for name, dtype in TABLES["paper_values"].schema.items() if name not in ("experiment", "seed")
    }
    return frame_for("paper_values", pl.DataFrame(rows, schema=schema), None, None)


def claim_statements() -> pl.DataFrame:
    """The papers' claims as rows of `claim_statements`; an empty paper_value is NULL."""
    rows = [{name: value or None for name, value in row.items()} for row in _csv("claims.csv")]
    return frame_for("claim_statements", pl.DataFrame(rows, infer_schema_length=None), None, None)


def _csv(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((PAPER / name).read_text(encoding="utf-8").splitlines()))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
