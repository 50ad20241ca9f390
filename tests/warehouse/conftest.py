"""A results database over made-up results, built as the pipeline builds it: artifacts in a store, then the catalog."""

import importlib.util
from pathlib import Path

import duckdb
import polars as pl
import pytest

from ops.tables.tables import TABLES, frame_for, write_table
from warehouse.catalog import build
from warehouse.store import Store

_spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).with_name("synthetic.py"))
assert _spec is not None
assert _spec.loader is not None
synthetic = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(synthetic)


def _build_database(root: Path, frames: dict[str, pl.DataFrame]) -> Path:
    """A database with `frames` (columns of the warehouse's tables, experiment and seed among them)."""
    store = Store(root / "store")
    experiments = frames.get("experiments", TABLES["experiments"].empty()).to_dicts()
    owners = {(row["experiment"], row["seed"]) for row in experiments}
    artifacts = []
    for number, (experiment, seed) in enumerate(sorted(owners)):
        own = {
            name: frame.filter((pl.col("experiment") == experiment) & (pl.col("seed") == seed)).drop(
                "experiment", "seed"
            )
            for name, frame in frames.items()
            if name not in ("experiments", "artifacts")
        }

        def write(folder, own=own, experiment=experiment, seed=seed):
            for name, frame in own.items():
                write_table(folder, name, frame_for(name, frame, experiment, seed))

        artifacts.append(
            store.publish(
                "synthetic",
                f"run-{number}",
                write,
                spec={"experiment": experiment, "seed": seed},
                inputs={},
                provenance={"wall_s": 12.5, "device": "cpu", "created_at": "2026-01-01T00:00:00+00:00"},
                summary={},
            )
        )
    return build(root / "warehouse.duckdb", artifacts, experiments)


@pytest.fixture(scope="session")
def build_database():
    """The function that builds a database from frames, in a folder."""
    return _build_database


@pytest.fixture
def database(tmp_path):
    """A function from frames to an open, read-only database."""
    opened = []

    def build_and_open(frames: dict[str, pl.DataFrame]) -> duckdb.DuckDBPyConnection:
        folder = tmp_path / f"database{len(opened)}"
        folder.mkdir()
        opened.append(duckdb.connect(str(_build_database(folder, frames)), read_only=True))
        return opened[-1]

    yield build_and_open
    for connection in opened:
        connection.close()


@pytest.fixture(scope="session")
def made_up_frames() -> dict[str, pl.DataFrame]:
    """Two studies, both tasks, two or three seeds each."""
    return synthetic.results()


@pytest.fixture(scope="session")
def made_up(tmp_path_factory, made_up_frames):
    """An open database over `made_up_frames`."""
    path = _build_database(tmp_path_factory.mktemp("made_up"), made_up_frames)
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def nothing_ran(tmp_path_factory):
    """An open database without a single result."""
    path = _build_database(tmp_path_factory.mktemp("nothing"), {})
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection
