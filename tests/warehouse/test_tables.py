"""Tables: schemas, comments, casts, refusals, equal bytes."""

import re
from pathlib import Path

import polars as pl
import pytest

import ops.tables
from assets.results import WAREHOUSE_CODE
from ops.tables.columns import COLUMNS, REAL, Column
from ops.tables.table import TableError, table
from ops.tables.tables import ALL_COLUMNS, TABLES, by_name, find, frame_for, write_table
from warehouse.catalog import build
from warehouse.code import definitions
from warehouse.reading import read_only

ROOMS = [path for path in Path(ops.tables.__file__).parent.glob("*.py") if "ROOM_TABLES = " in path.read_text()]
LOG = pl.DataFrame(
    {"grad_norm": [1.5, None], "step": [0, 10], "loss": [4.9, 3.0], "learning_rate": [0, 1], "steps_per_s": [7.0, 8.0]}
)


def test_every_table_begins_with_its_owner_and_explains_itself():
    for each in TABLES.values():
        assert [column.name for column in each.columns[:2]] == ["experiment", "seed"]
        assert each.comment.startswith("One row a")
        assert all(column.comment for column in each.columns)
        assert len(each.schema) == len(each.columns)
        assert each.empty().height == 0


def test_a_shared_column_is_in_several_tables_and_every_other_is_described_with_its_own():
    owners = {name: [t.name for t in TABLES.values() if name in t.schema] for name in ALL_COLUMNS}
    assert {name for name in owners if len(owners[name]) > 1} == set(COLUMNS)
    assert {name for t in TABLES.values() for name in t.schema} == set(ALL_COLUMNS)
    assert {name: owners[name] for t in TABLES.values() for name in t.own} == {
        name: [t.name] for t in TABLES.values() for name in t.own
    }


def test_a_table_says_of_each_column_what_it_needs_and_no_more():
    made = table("probe", "One row a probe.", "step gap n", gap=(REAL, "logit", "how far apart"), n="number of probes")
    assert list(made.schema) == ["experiment", "seed", "step", "gap", "n"]
    assert (made.columns[3], made.own) == (Column("gap", REAL, "logit", "how far apart"), {"gap"})
    assert (made.columns[4].dtype, made.columns[4].comment) == (COLUMNS["n"].dtype, "number of probes")
    for columns, said, message in (
        ("step gap", {}, r"probe: column gap is not shared; say gap=\(type, unit, comment\)"),
        ("step gap", {"gap": "how far"}, "probe: column gap is not shared"),
        ("step n", {"n": (REAL, "", "twice")}, "column n is one of ops/tables/columns.py; give its comment alone"),
        ("step n", {"gap": "how far"}, "probe: comments on columns that it does not have: gap"),
    ):
        with pytest.raises(TableError, match=message):
            table("probe", "One row a probe.", columns, **said)


def test_two_tables_have_neither_one_name_nor_one_column_of_their_own():
    one, two = (table(name, "One row a probe.", "gap", gap=(REAL, "", "how far")) for name in ("one", "two"))
    with pytest.raises(TableError, match="two: column gap is described in one already; move it to ops/tables/columns"):
        by_name([one, two])
    with pytest.raises(TableError, match="one: two tables have this name; rename one"):
        by_name([one, one])


def test_a_table_is_found_by_its_room_in_the_order_of_rooms(tmp_path, monkeypatch):
    (tmp_path / "probe_room.py").write_text(
        "from ops.tables.table import REAL, table\n\nORDER = 250\n"
        'ROOM_TABLES = (table("probe", "One row a probe.", "step gap", gap=(REAL, "", "how far")),)\n'
    )
    monkeypatch.setattr(ops.tables, "__path__", [*ops.tables.__path__, str(tmp_path)])
    names = list(find())
    assert [name for name in names if name != "probe"] == list(TABLES)
    assert names[names.index("probe") - 1 : names.index("probe") + 2] == ["training_log", "probe", "accuracy"]


def test_the_key_of_the_warehouse_covers_every_table():
    covered = set(definitions(WAREHOUSE_CODE))
    assert {f"ops/tables/{path.name}::ROOM_TABLES" for path in ROOMS} <= covered
    assert len(ROOMS) > 9


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
