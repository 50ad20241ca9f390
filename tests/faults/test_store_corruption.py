"""Damaged bytes in every format: found on read, quarantined with a message, and mended by computing again."""

import logging
import random
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from ops.tables.tables import frame_for, write_table
from warehouse.catalog import build
from warehouse.store import Store

FILES = {
    "parquet": "accuracy.parquet",
    "safetensors": "model.safetensors",
    "warehouse": "warehouse.duckdb",
    "manifest": "manifest.json",
}
LENGTHS = ("0", "1", "n/2", "n-1")
N_FAST = 6
N_FLIPS = 64


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """One file of each format."""
    folder = tmp_path_factory.mktemp("source")
    rows = pl.DataFrame({"step": range(200), "split": "test", "hop": 1, "accuracy": 0.5, "loss": 0.25, "n": 8})
    write_table(folder, "accuracy", frame_for("accuracy", rows, "e", 0))
    save_file({"w": np.arange(600, dtype=np.float32)}, folder / "model.safetensors")
    build(folder / "warehouse.duckdb", [])
    return folder


def damages(content: bytes, n_flips: int) -> dict[str, bytes]:
    """name → damaged content: shortened, or with one random bit flipped."""
    n = len(content)
    damaged = {name: content[: eval_length(name, n)] for name in LENGTHS}
    rng = random.Random(n_flips)
    for _ in range(n_flips):
        place, bit = rng.randrange(n), rng.randrange(8)
        flipped = bytearray(content)
        flipped[place] ^= 1 << bit
        damaged[f"byte {place} bit {bit}"] = bytes(flipped)
    return damaged


def eval_length(name: str, n: int) -> int:
    return {"0": 0, "1": 1, "n/2": n // 2, "n-1": n - 1}[name]


def publish(store: Store, source: Path, names):
    def write(folder: Path):
        for name in names:
            (folder / name).write_bytes((source / name).read_bytes())

    return store.publish("stage", "a" * 64, write, spec={}, inputs={}, provenance={}, summary={"accuracy": 0.125})


@pytest.mark.parametrize("n_flips", [N_FAST, pytest.param(N_FLIPS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", FILES)
def test_damage_is_found_and_mended(tmp_path, source, caplog, kind, n_flips):
    store = Store(tmp_path / "store")
    names = ["accuracy.parquet"] if kind == "manifest" else [FILES[kind]]
    artifact = publish(store, source, names)
    whole = (artifact.path / FILES[kind]).read_bytes()
    for n, (name, content) in enumerate(damages(whole, n_flips).items(), start=1):
        time.sleep(0.01)  # another tick of the file system's clock: else an unread file cannot be told from a read one
        (artifact.path / FILES[kind]).write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="ropewalk"):
            assert store.get("stage", "a" * 64) is None, name
        (record,) = caplog.records
        assert "will be computed anew" in record.getMessage()
        quarantined = store.root / "quarantine" / f"stage-{'a' * 64}-{n}"
        assert (quarantined / FILES[kind]).read_bytes() == content
        assert (publish(store, source, names).path / FILES[kind]).read_bytes() == whole
        assert store.get("stage", "a" * 64) == artifact


@pytest.mark.parametrize("n_flips", [N_FAST, pytest.param(N_FLIPS, marks=pytest.mark.slow)])
def test_a_damaged_exposed_database_is_replaced(tmp_path, source, n_flips):
    store = Store(tmp_path / "store")
    artifact = publish(store, source, ["warehouse.duckdb"])
    target = store.expose(artifact, "warehouse.duckdb")
    whole = target.read_bytes()
    for content in damages(whole, n_flips).values():
        target.write_bytes(content)
        store.expose(artifact, "warehouse.duckdb")
        assert target.read_bytes() == whole
    assert store.get("stage", "a" * 64) == artifact
