"""Tables: schemas, comments, casts, refusals, equal bytes."""

import re

import polars as pl
import pytest

from ops.tables.columns import COLUMNS
from ops.tables.tables import TABLES, TableError, frame_for, write_table
from warehouse.catalog import build
from warehouse.reading import read_only

LOG = pl.DataFrame(
    {"grad_norm": [1.5, None], "step": [0, 10], "loss": [4.9, 3.0], "learning_rate": [0, 1], "steps_per_s": [7.0, 8.0]}
)


def test_every_table_begins_with_its_owner_and_explains_itself():
    for table in TABLES.values():
        assert [column.name for column in table.columns[:2]] == ["experiment", "seed"]
        assert table.comment.startswith("One row a")
        assert all(column.comment for column in table.columns)
        assert len(table.schema) == len(table.columns)
        assert table.empty().height == 0


def test_every_shared_column_is_used():
    assert set(COLUMNS) == {column.name for table in TABLES.values() for column in table.columns}


def test_rows_are_ordered_and_cast():
    frame = frame_for("training_log", LOG, "quick_number", 1)
    assert frame.schema == TABLES["training_log"].schema
    assert frame.row(0) == ("quick_number", 1, 0, 4.9, 0.0, 7.0, 1.5)
    assert frame_for("training_log", LOG.clear(), "quick_number", 1).height == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("loss"), "training_log: column loss is missing; add it, NULL where it is not defined"),
        (lambda f: f.with_columns(x=1), "training_log: unknown column x; its columns are step, loss"),
        (lambda f: f.with_columns(step=pl.lit("a")), "training_log: column step does not fit Int32"),
        (lambda f: f.with_columns(step=pl.lit(2**40)), "training_log: column step does not fit Int32"),
        (
            lambda f: f.with_columns(loss=float("nan")),
            "training_log: column loss has 2 values that are NaN or infinite",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(change, message):
    with pytest.raises(TableError, match=re.escape(message)):
        frame_for("training_log", change(LOG), "quick_number", 1)


def test_an_unknown_table_is_refused():
    with pytest.raises(TableError, match="no_such: no such table; the tables are experiments"):
        frame_for("no_such", LOG, "quick_number", 1)


def test_equal_rows_give_equal_bytes(tmp_path):
    contents = []
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        frame = pl.concat([frame_for("training_log", LOG[:1], "e", 0), frame_for("training_log", LOG[1:], "e", 0)])
        contents.append(write_table(tmp_path / part, "training_log", frame).read_bytes())
    assert contents[0] == contents[1]
    with pytest.raises(FileExistsError):
        write_table(tmp_path / "a", "training_log", frame_for("training_log", LOG, "e", 0))
    with pytest.raises(TableError, match="pass the rows through frame_for"):
        write_table(tmp_path, "training_log", LOG)


def test_every_column_of_every_relation_works_without_quotes(tmp_path):
    build(tmp_path / "names.duckdb", [])
    with read_only(tmp_path / "names.duckdb") as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main' ORDER BY ALL"
        ).fetchall()
        assert len({table for table, _ in columns}) > 90
        for table, column in columns:
            connection.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {column}")
            connection.execute(f"SELECT min({column}) FROM {table}")
            connection.execute(f"SELECT {column}, count(*) FROM {table} GROUP BY {column}")
            connection.execute(f"SELECT t.{column} AS {column} FROM {table} AS t")
