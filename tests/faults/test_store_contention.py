"""Many processes on one store: one artifact a key, no lock error, readers at any time."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from warehouse.catalog import build
from warehouse.store import Store

HERE = Path(__file__).parent
N_PROCESSES = 8

HOLD = """
import sys, time
from warehouse.store import Store
with Store(sys.argv[1]).building("stage", "a" * 64) as folder:
    (folder / "resume").write_text("half")
    print("held", flush=True)
    time.sleep(600)
"""
BUILD = """
import sys
from warehouse.store import Store
store, me = Store(sys.argv[1]), sys.argv[2]
with store.building("stage", "a" * 64) as folder:
    if store.get("stage", "a" * 64) is None:
        log = folder / "log"
        assert not log.exists(), "two processes build one key at once"
        log.write_text(me)
        store.publish("stage", "a" * 64, lambda f: (f / "built_by").write_text(me), spec={}, inputs={}, provenance={},
                      summary={})
        print("built")
    else:
        print("found")
"""
POLL = """
import sys
import duckdb
path, n, seen = sys.argv[1], 0, set()
print("polling", flush=True)
while not {0, int(sys.argv[2])} <= seen or n < 10:
    with duckdb.connect(path, read_only=True) as connection:
        (version, rows), = connection.sql("SELECT max(seed), count(*) FROM experiments").fetchall()
        assert rows == version + 1, (version, rows)
    seen.add(version)
    n += 1
print(n)
"""


BUILD_DATABASE = """
import sys
from warehouse.catalog import build
from warehouse.store import Store
store = Store(sys.argv[1])
artifact = store.publish("warehouse", sys.argv[2], lambda folder: build(folder / "warehouse.duckdb", []), spec={},
                         inputs={}, provenance={}, summary={})
store.expose(artifact, "warehouse.duckdb")
print("done")
"""


def start(*arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=HERE.parents[1],
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1]), "POLARS_MAX_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def outputs(processes: list[subprocess.Popen]) -> list[str]:
    said = [process.communicate(timeout=240)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return said


@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_the_same_and_different_keys(tmp_path, rounds):
    root = str(tmp_path / "store")
    driver = str(HERE / "contention_driver.py")
    seen = [
        json.loads(text) for text in outputs([start(driver, root, str(rounds), str(me)) for me in range(N_PROCESSES)])
    ]
    assert all(digests == seen[0] for digests in seen)
    store = Store(root)
    assert len(list(store.artifacts("all"))) == rounds * (N_PROCESSES + 1)
    assert not list(store.root.glob("**/.partial-*"))
    assert not (store.root / "quarantine").exists()


def test_a_second_builder_waits_and_finds_the_artifact(tmp_path):
    root = str(tmp_path / "store")
    said = outputs([start("-c", BUILD, root, str(me)) for me in range(4)])
    assert sorted(said) == ["built", "found", "found", "found"]
    assert list((tmp_path / "store" / "work" / "stage").iterdir()) == []


def test_the_lock_of_a_killed_builder_is_free_and_its_work_is_kept(tmp_path):
    root = str(tmp_path / "store")
    holder = start("-c", HOLD, root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waiting = start("-c", BUILD, root, "second")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=2)
    assert (Store(root).workdir("stage", "a" * 64) / "resume").read_text() == "half"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert outputs([waiting]) == ["built"]


def publish_database(store: Store, n: int, views: Path) -> None:
    rows = [
        {"experiment": "e", "seed": seed, "task": "number", "study": "quick", "n_layers": 1, "n_heads": 1, "width": 8}
        | {"sequence_length": 17, "hops": [1], "frequencies": [1], "n_parameters": 1, "spec": "{}", "key": None}
        for seed in range(n + 1)
    ]
    artifact = store.publish(
        "warehouse",
        f"version-{n}",
        lambda folder: build(folder / "warehouse.duckdb", [], rows, sql=views),
        spec={},
        inputs={},
        provenance={},
        summary={},
    )
    store.expose(artifact, "warehouse.duckdb")


def test_readers_poll_while_the_database_is_swapped(tmp_path):
    store = Store(tmp_path / "store")
    publish_database(store, 0, tmp_path)
    path = str(store.root / "warehouse.duckdb")
    with duckdb.connect(path, read_only=True) as held_open:
        readers = [start("-c", POLL, path, "3") for _ in range(4)]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "polling\n"
        for n in range(1, 4):
            publish_database(store, n, tmp_path)
        assert held_open.sql("SELECT max(seed) FROM experiments").fetchall() == [(0,)]
    assert all(int(text) >= 10 for text in outputs(readers))


@pytest.mark.slow
def test_kill_a_database_builder_at_any_moment(tmp_path):
    store = Store(tmp_path / "store")
    publish_database(store, 0, tmp_path)
    path = store.root / "warehouse.duckdb"
    whole = time.monotonic()
    assert outputs([start("-c", BUILD_DATABASE, str(store.root), "whole")]) == ["done"]
    whole = time.monotonic() - whole
    for n in range(20):
        builder = start("-c", BUILD_DATABASE, str(store.root), f"version-{n + 1}")
        time.sleep(whole * (n + 1) / 20)
        builder.kill()
        builder.communicate()
        with duckdb.connect(str(path), read_only=True) as connection:
            assert connection.sql("SELECT count(*) > 100 FROM paper_values").fetchall() == [(True,)]
        store.clean()
        assert not list(store.root.glob("**/.partial-*"))
        assert all(artifact.files == ("warehouse.duckdb",) for artifact in store.artifacts("all"))
    assert not (store.root / "quarantine").exists()
