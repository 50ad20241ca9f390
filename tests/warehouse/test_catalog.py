"""The database: every table and view, explained, equal from equal artifacts, readable while it is swapped."""

import re
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest

from ops.spec.study import ExperimentSpec
from ops.tables.tables import TABLES, frame_for, write_table
from ops.tasks.number import NumberTaskSpec
from ops.tasks.registry import known_tasks
from warehouse.catalog import CatalogError, View, build, experiment_row, in_dependency_order, views
from warehouse.store import Store, StoreError


def publish_accuracy(store: Store, experiment: str, seed: int):
    rows = pl.DataFrame({"step": [0, 50], "split": "test", "hop": [None, 1], "accuracy": [0.1, 0.9], "loss": 1, "n": 8})
    frame = frame_for("accuracy", rows, experiment, seed)
    return store.publish(
        "accuracy",
        f"{experiment}-{seed}",
        lambda folder: write_table(folder, "accuracy", frame),
        spec={"experiment": experiment, "seed": seed},
        inputs={"dataset": "d" * 64, "checkpoints": "c" * 64},
        provenance={"wall_s": 0.25, "device": "cpu", "created_at": "2026-01-01T00:00:00+00:00"},
        summary={},
    )


def publish_four(root: Path):
    store = Store(root)
    return [publish_accuracy(store, experiment, seed) for experiment in ("b", "a") for seed in (1, 0)]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    return publish_four(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def experiments():
    spec = ExperimentSpec(name="a", study="quick", task=NumberTaskSpec())
    return [experiment_row(spec, seed, key=f"a-{seed}", n_parameters=2_400_000) for seed in (1, 0)]


@pytest.fixture(scope="module")
def database(tmp_path_factory, artifacts, experiments):
    path = build(tmp_path_factory.mktemp("database") / "warehouse.duckdb", artifacts, experiments)
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def test_rows_come_from_the_artifacts_in_order(database, artifacts):
    assert database.sql("SELECT experiment, seed, step, hop, accuracy FROM accuracy").fetchall()[:3] == [
        ("a", 0, 0, None, 0.1),
        ("a", 0, 50, 1, 0.9),
        ("a", 1, 0, None, 0.1),
    ]
    assert database.sql("SELECT * FROM artifacts WHERE experiment = 'b' AND seed = 1").fetchall() == [
        ("b", 1, "accuracy", "b-1", artifacts[0].n_bytes, 0.25)
        + ("2026-01-01T00:00:00+00:00", "cpu", None, None, ["c" * 64, "d" * 64])
    ]


def test_experiments_are_those_declared(database):
    row = database.sql("SELECT * EXCLUDE (frequencies, spec) FROM experiments").fetchall()[0]
    assert row == ("a", 0, "number", "quick", 12, 1, 128, 17, [1, 2, 3, 4], 2_400_000, "a-0")
    spec, frequencies = database.sql("SELECT spec, frequencies FROM experiments").fetchall()[0]
    assert frequencies == list(range(1, 65))
    assert ExperimentSpec.model_validate_json(spec, context={"tasks": known_tasks()}).name == "a"


def test_papers_and_claims_are_there(database):
    assert database.sql(
        "SELECT value FROM paper_values WHERE item = 'letter_frequency_id' AND layer = 2"
    ).fetchall() == [(42.0,)]
    assert database.sql(
        "SELECT value FROM paper_values WHERE item = 'letter_accuracy_mean/gpt-5.4' AND length = 300"
    ).fetchall() == [(0.4,)]
    assert database.sql("SELECT count(*), count(paper_value) FROM claim_statements").fetchall() == [(41, 32)]


def test_every_table_exists_without_artifacts_and_everything_is_explained(tmp_path):
    with duckdb.connect(str(build(tmp_path / "empty.duckdb", [])), read_only=True) as connection:
        tables = dict(connection.sql("SELECT table_name, comment FROM duckdb_tables()").fetchall())
        assert tables == {name: table.comment for name, table in TABLES.items()}
        views_of_main = "SELECT view_name, comment FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
        found = dict(connection.sql(views_of_main).fetchall())
        assert set(found) == {view.name for view in views()}
        assert all(found.values())
        unexplained = connection.sql(
            "SELECT table_name || '.' || column_name FROM duckdb_columns() "
            "WHERE schema_name = 'main' AND NOT internal AND comment IS NULL"
        ).fetchall()
        assert unexplained == [], "add `-- column: meaning` to the head of the view's file, or to VIEW_COLUMNS"
        for name in found:
            connection.sql(f'SELECT * FROM "{name}"').fetchall()
    assert [path.name for path in tmp_path.iterdir()] == ["empty.duckdb"]


def test_two_builds_have_equal_tables(tmp_path, artifacts, experiments):
    one = build(tmp_path / "one.duckdb", artifacts, experiments)
    two = build(tmp_path / "two.duckdb", [*reversed(artifacts), artifacts[0]], list(reversed(experiments)))
    with duckdb.connect(str(one)) as first, duckdb.connect(str(two)) as second:
        for name in [*TABLES, *(view.name for view in views())]:
            ordered = "SELECT * FROM" if name in TABLES else "SELECT * FROM (FROM"
            query = f'{ordered} "{name}"' + ("" if name in TABLES else ") ORDER BY ALL")
            assert first.sql(query).fetchall() == second.sql(query).fetchall(), name


def test_a_database_moves_without_the_store(tmp_path):
    path = build(tmp_path / "warehouse.duckdb", publish_four(tmp_path / "store"))
    shutil.rmtree(tmp_path / "store")
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM accuracy").fetchall() == [(8,)]


def test_an_existing_file_and_a_damaged_artifact_are_refused(tmp_path):
    artifacts = publish_four(tmp_path / "store")
    path = build(tmp_path / "warehouse.duckdb", artifacts)
    with pytest.raises(FileExistsError, match="build beside it"):
        build(path, artifacts)
    (artifacts[0].path / "accuracy.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match="run again and it is computed anew"):
        build(tmp_path / "other.duckdb", artifacts)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store", "warehouse.duckdb"]


def sql_folder(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def test_views_may_stand_in_any_order_and_explain_their_columns(tmp_path):
    folder = sql_folder(
        tmp_path,
        a_last="""-- One row a thing.
-- note: not a column.
-- doubled: twice
-- the step.
SELECT 2 * step AS doubled FROM b_first;
""",
        b_first="""-- One row a step.
WITH a AS (SELECT step, 'FROM a_last' AS t FROM accuracy) -- a_last
SELECT * FROM a
""",
    )
    assert [view.name for view in in_dependency_order(views(folder))] == ["b_first", "a_last"]
    with duckdb.connect(str(build(tmp_path / "x.duckdb", [], sql=folder))) as connection:
        assert connection.sql("SELECT comment FROM duckdb_views() WHERE view_name = 'a_last'").fetchall() == [
            ("One row a thing. note: not a column. the step.",)
        ]
        assert connection.sql("SELECT comment FROM duckdb_columns() WHERE table_name = 'a_last'").fetchall() == [
            ("twice",)
        ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"a": "SELECT 1"}, "sql/a.sql: must begin with a comment"),
        ({"a": "-- One row.\n"}, "sql/a.sql: must begin with a comment"),
        ({"accuracy": "-- One row.\nSELECT 1"}, "sql/accuracy.sql: accuracy is a base table"),
        ({"a": "-- One row.\nSELEC 1"}, "sql/a.sql: syntax error"),
        ({"a": "-- One row.\nSELECT 1; SELECT 2"}, "sql/a.sql: several statements; write one SELECT"),
        ({"a": "-- One row.\nDROP TABLE accuracy"}, "sql/a.sql: Only SELECT"),
        ({"a": "-- One row.\nFROM b", "b": "-- One row.\nFROM a"}, "circle: "),
        ({"a": "-- One row.\nSELECT no_such FROM accuracy"}, "sql/a.sql: Binder Error"),
    ],
)
def test_faulty_views_are_refused_by_name(tmp_path, texts, message):
    folder = sql_folder(tmp_path, **texts)
    with pytest.raises(CatalogError, match=re.escape(message)) as caught:
        build(tmp_path / "x.duckdb", [], sql=folder)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "x.duckdb").exists()


def test_a_view_that_reads_itself_is_no_circle():
    assert in_dependency_order([View("a", "SELECT * FROM a", ("One row.",))])[0].name == "a"
