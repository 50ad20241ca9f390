"""kill -9 and disk errors at every system call of a publish: before or after, never between."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from ops.tables.tables import frame_for, write_table
from warehouse.catalog import build

DRIVER = Path(__file__).with_name("store_driver.py")
FORMATS = ("parquet", "safetensors", "warehouse")


def write_format(folder: Path, kind: str, value: float) -> None:
    """One file of a format; files with different values differ."""
    rows = pl.DataFrame(
        {"step": range(50), "loss": value, "learning_rate": 0.1, "steps_per_s": 1.0, "grad_norm": value}
    )
    if kind == "parquet":
        write_table(folder, "training_log", frame_for("training_log", rows, "e", 0))
    elif kind == "safetensors":
        save_file({"w": np.full((20, 10), value, dtype=np.float32)}, folder / "model.safetensors")
    else:
        row = {"experiment": "e", "seed": int(value), "task": "number", "study": "quick", "n_layers": 1, "n_heads": 1}
        row |= {"width": 8, "sequence_length": 17, "hops": [1], "frequencies": [1], "n_parameters": 1, "spec": "{}"}
        build(folder / "warehouse.duckdb", [], [row | {"key": None}])


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> dict[str, Path]:
    """format → a folder with an old and a new version of one file."""
    folders = {}
    for kind in FORMATS:
        folders[kind] = tmp_path_factory.mktemp(kind)
        for value, age in enumerate(("old", "new")):
            (folders[kind] / age).mkdir()
            write_format(folders[kind] / age, kind, float(value))
    return folders


def drive(mode: str, store: Path, source: Path, number: int = 0) -> dict:
    done = subprocess.run(
        [sys.executable, str(DRIVER), mode, str(store), str(source), str(number)],
        cwd=DRIVER.parents[2],
        env=os.environ | {"PYTHONPATH": str(DRIVER.parents[2]), "POLARS_MAX_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["warehouse", *(pytest.param(kind, marks=pytest.mark.slow) for kind in FORMATS[:2])])
def test_kill_at_every_call(tmp_path, sources, kind):
    result = drive("kill", tmp_path / "store", sources[kind])
    assert result["ends"]["before"] >= 15
    assert result["ends"]["after"] >= 10


DISK = [
    (mode, kind, number)
    for kind in FORMATS
    for mode in ("once", "from")
    for number in (errno.ENOSPC, errno.EIO, errno.EACCES)
]
FAST = {("once", "parquet", errno.EIO), ("from", "safetensors", errno.EACCES)}


@pytest.mark.parametrize(
    ("mode", "kind", "number"), [case if case in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in DISK]
)
def test_disk_error_at_every_call(tmp_path, sources, mode, kind, number):
    result = drive(mode, tmp_path / "store", sources[kind], number)
    assert result["ends"]["before"] >= 10
    assert result["ends"]["after"] >= 3
    assert {"fsync", "mkdir", "open", "rename", "replace", "symlink", "write"} <= set(result["calls"])
    assert {"cannot publish stage <key> in <store>", "cannot expose <store>/report"} <= set(result["sentences"])
