"""A disk that is really full: the libraries' own errors become one sentence, and the store stays readable."""

import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from ops.tables.tables import frame_for, write_table
from warehouse.catalog import build
from warehouse.store import Store, StoreError

DISK_BYTES = 3_000_000
MANIFEST = {"spec": {}, "inputs": {}, "provenance": {}, "summary": {}}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB, in memory. Only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        pytest.skip(f"no mount command: {error}")
    if done.returncode:
        pytest.skip(f"mounting a small file system is not allowed here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def write_parquet(folder: Path, n: int) -> None:
    noise = np.random.default_rng(n).random(30_000)
    rows = pl.DataFrame(
        {"step": range(30_000), "loss": noise, "learning_rate": noise, "steps_per_s": 1.0, "grad_norm": 1}
    )
    write_table(folder, "training_log", frame_for("training_log", rows, "e", n))


def write_safetensors(folder: Path, n: int) -> None:
    save_file({"w": np.full(100_000, n, dtype=np.float32)}, folder / "model.safetensors")


def write_database(folder: Path, n: int) -> None:
    build(folder / "warehouse.duckdb", [])


@pytest.mark.parametrize("write", [write_parquet, write_safetensors, write_database])
def test_a_full_disk_is_one_sentence(small_disk, write):
    store = Store(small_disk / "store")
    published = []

    def publish(n: int):
        published.append(store.publish("stage", f"{n:064}", lambda folder: write(folder, n), **MANIFEST))

    with pytest.raises(StoreError) as caught:
        any(publish(n) for n in range(30))
    assert str(caught.value).startswith(f"cannot publish stage {0:012} in {store.root}: the disk is full")
    assert "\n" not in str(caught.value)
    assert len(published) >= 1
    assert sorted(store.artifacts("all"), key=lambda a: a.key) == sorted(published, key=lambda a: a.key)
    assert store.get("stage", f"{len(published):064}") is None
    assert not list(store.root.glob("**/.partial-*"))
    (published[0].path / "manifest.json").unlink()
    assert store.get("stage", f"{0:064}") is None
    for path in (store.root / "quarantine").rglob("*"):
        path.unlink() if path.is_file() else None
    assert store.publish("stage", f"{0:064}", lambda folder: write(folder, 0), **MANIFEST).files == published[0].files
