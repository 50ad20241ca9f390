"""Whole runs, really killed, starved and damaged: the next run ends with what an undisturbed one gives."""

import importlib.util
import json
import os
import pickle
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest
import torch
from safetensors.torch import load_file, save_file

from warehouse.store import Store

CHILD = Path(__file__).with_name("study_child.py")
ROOT = Path(__file__).parents[2]
STUDY = """
study: faulty
description: One task, too small to learn anything.
executor: in_process
defaults:
  task: {hops: [1, 2], n_train: 640, n_validation: 64, n_test: 128}
  model: {n_layers: 2, width: 16, dropout: 0.1}
  training: {steps: 4, warmup_steps: 2, batch_size: 16, checkpoint_every: 2, learning_rate: 1e-3, log_every: 2}
  accuracy: {n_test: 64}
  scoring: {n_inputs: 8, taus: [1e-4, 1e-2]}
  frequency_use: {n_inputs: 8}
experiments:
  faulty_letter: {task: {name: letter}}
"""
ABSURD = STUDY.replace("steps: 4,", "steps: 200, gradient_clip: null,").replace("1e-3", "10")
LONG = STUDY.replace("steps: 4,", "steps: 900,").replace("checkpoint_every: 2", "checkpoint_every: 300")
TIMES = {"training_log": ["steps_per_s"], "artifacts": ["wall_s", "created_at", "git_revision", "bytes"]}

pytestmark = pytest.mark.timeout(900)


class Studies:
    """The fork server of study_child.py."""

    def __init__(self, folder: Path, hash_seed: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": str(hash_seed)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([sys.executable, str(CHILD)], env=environment, cwd=ROOT, **pipes)
        self.result = folder / "result.json"
        self.pid, self.begun = 0, False
        assert self.server.stdout.readline() == "ready\n"

    def start(self, store: Path, study: str = STUDY, fault: dict | None = None, **more: str) -> int:
        """Begin a run; returns its process id, its own until `wait`. A run that a failed test left is ended first."""
        if self.begun:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        self.result.unlink(missing_ok=True)
        case = {"store": str(store), "study": study, "fault": fault, "result": str(self.result), **more}
        self.server.stdin.write(json.dumps(case) + "\n")
        self.server.stdin.flush()
        self.pid, self.begun = int(self.server.stdout.readline()), True
        return self.pid

    def wait(self) -> int:
        """The exit status of the run that was begun last."""
        self.server.stdin.write("wait\n")
        self.server.stdin.flush()
        self.begun = False
        return int(self.server.stdout.readline())

    def run(self, store: Path, study: str = STUDY, fault: dict | None = None) -> dict:
        """Run to the end; what happened, or {"success": False} where the process died."""
        self.start(store, study, fault)
        self.wait()
        return json.loads(self.result.read_text()) if self.result.exists() else {"success": False, "errors": []}

    def stop(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    server = Studies(tmp_path_factory.mktemp("studies"), 1)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The store of an undisturbed run, by another process with another hash seed."""
    folder = tmp_path_factory.mktemp("whole")
    server = Studies(folder, 2)
    done = server.run(folder / "store")
    server.stop()
    assert done["success"], done
    return folder / "store"


def files(store: Path) -> dict[str, object]:
    """stage/key/file → digest, or rows where a column is a time. Charts, report and database are left out."""
    found: dict[str, object] = {}
    for artifact in Store(store).artifacts("all"):
        if artifact.stage in ("warehouse", "charts", "report"):
            continue
        for name, entry in artifact.manifest["files"].items():
            table = name.removesuffix(".parquet")
            rows = artifact.table(table).drop(TIMES[table]).to_dicts() if table in TIMES else None
            found[f"{artifact.stage}/{artifact.key}/{name}"] = rows or entry["sha256"]
    return found


def tables(store: Path) -> dict[str, pl.DataFrame]:
    """Every table of the database without its times."""
    with duckdb.connect(str(store / "warehouse.duckdb"), read_only=True) as connection:
        names = connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()
        return {name: connection.sql(f'FROM "{name}"').pl().drop(TIMES.get(name, [])) for (name,) in names}


def assert_same(store: Path, whole: Path) -> None:
    assert files(store) == files(whole)
    assert not list(store.glob("**/.partial-*"))
    assert not list(store.glob("work/*/[!.]*"))
    found, expected = tables(store), tables(whole)
    assert found.keys() == expected.keys()
    assert [name for name in expected if not found[name].equals(expected[name])] == []


def stages(store: Path) -> set[str]:
    return {artifact.stage for artifact in Store(store).artifacts("all")}


def test_two_runs_in_two_stores_give_equal_keys_and_bytes(studies, whole, tmp_path):
    assert studies.run(tmp_path / "store")["success"]
    assert_same(tmp_path / "store", whole)
    assert {"dataset", "checkpoints", "accuracy", "head_scores", "frequency_use", "warehouse"} <= stages(whole)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_kill_9_at_random_moments(studies, whole, tmp_path, seed):
    """The moments are shares of an undisturbed run's time, which the first attempt takes from the second on."""
    draw, store = random.Random(seed), tmp_path / "store"
    began = time.monotonic()
    assert studies.run(tmp_path / "timed")["success"]
    took = time.monotonic() - began
    for _ in range(3):
        pid = studies.start(store)
        time.sleep(draw.uniform(0.1, 0.7) * took)
        os.kill(pid, signal.SIGKILL)  # where it was quicker than the first, this changes nothing
        studies.wait()
    assert studies.run(store)["success"]
    assert_same(store, whole)


POINTS = [(stage, point) for stage in ("dataset", "accuracy", "head_scores") for point in ("computed", "published")]


@pytest.mark.parametrize(
    ("stage", "point"),
    [("checkpoints", "computed"), *(pytest.param(*case, marks=pytest.mark.slow) for case in POINTS)],
)
def test_kill_9_beside_a_publish(studies, whole, tmp_path, stage, point):
    store = tmp_path / "store"
    studies.start(store, fault={"stage": stage, "point": point, "do": "kill"})
    assert studies.wait() == -signal.SIGKILL
    assert (stage in stages(store)) == (point == "published")
    assert studies.run(store)["success"]
    assert_same(store, whole)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    path.write_bytes(content)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {"flip": flip, "shorten": shorten, "empty": lambda path: path.write_bytes(b""), "remove": Path.unlink}


def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "store", symlinks=True))


@pytest.mark.parametrize(
    ("target", "damage"),
    [
        ("data", "flip"),
        *(
            pytest.param(target, damage, marks=pytest.mark.slow)
            for target in ("data", "manifest")
            for damage in DAMAGES
            if (target, damage) != ("data", "flip")
        ),
    ],
)
def test_damage_in_every_artifact_is_found_told_and_mended(studies, whole, tmp_path, target, damage):
    store = copied(whole, tmp_path)
    harmed = list(Store(store).artifacts())
    for artifact in harmed:
        names = [n for n in artifact.files if n.endswith((".safetensors", ".parquet", ".duckdb"))] or artifact.files
        DAMAGES[damage](artifact.path / (names[-1] if target == "data" else "manifest.json"))
    shorten(store / "warehouse.duckdb")
    done = studies.run(store)
    assert done["success"], done["errors"]
    assert len(done["computed"]) == len(harmed)
    told = [line for line in done["said"] if "is damaged" in line and "will be computed anew" in line]
    assert sorted(line.split()[0] for line in told) == sorted(artifact.stage for artifact in harmed)
    assert len(list((store / "quarantine").iterdir())) == len(harmed)
    assert_same(store, whole)


@pytest.mark.parametrize(
    "fault",
    [
        {"training": "memory error"},
        {"stage": "checkpoints", "point": "before", "do": "no more memory"},
        pytest.param({"stage": "head_scores", "point": "computed", "do": "memory error"}, marks=pytest.mark.slow),
    ],
    ids=["MemoryError in training", "RLIMIT_AS in training", "MemoryError in scoring"],
)
def test_out_of_memory_is_not_kept(studies, whole, tmp_path, fault):
    store = tmp_path / "store"
    assert not studies.run(store, fault=fault)["success"]
    assert not {"warehouse", fault.get("stage", "checkpoints")} & stages(store)
    assert studies.run(store)["success"]
    assert_same(store, whole)


def test_a_diverging_training_is_one_clear_error_and_is_not_kept(studies, tmp_path):
    store = tmp_path / "store"
    for attempt in range(2):
        done = studies.run(store, study=ABSURD)
        assert not done["success"]
        assert any("TrainingDiverged: " in error and "lower learning_rate" in error for error in done["errors"])
        assert ("faulty_letter/dataset_s0" in done["computed"]) == (attempt == 0)
        assert "checkpoints" not in stages(store)
        assert not [path for path in store.glob("work/checkpoints/*/*") if path.name in ("checkpoints", "resume")]


def command_environment(tmp_path: Path, study: str) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(ROOT / "pipeline" / "dagster.yaml", home)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "faulty.yaml").write_text(study)
    places = {"ROPEWALK_STORE": str(tmp_path / "store"), "ROPEWALK_EXPERIMENTS": str(tmp_path / "studies")}
    return {**os.environ, **places, "DAGSTER_HOME": str(home), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_an_interrupted_command_keeps_what_was_done_and_nothing_else(studies, tmp_path, number, status):
    """Ctrl-C goes to the whole group as a terminal sends it, SIGTERM to the command alone."""
    command = [sys.executable, "-m", "pipeline.run", "faulty"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(command, env=command_environment(tmp_path, LONG), cwd=ROOT, **pipes)
    for line in process.stderr:
        if "checkpoints of faulty_letter, seed 0: computing" in line:
            break
    time.sleep(1)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == status
    assert out.strip().splitlines() == [
        f"faulty: stopped by {number.name}; finished stages are kept, and the next run goes on from where this one was."
    ]
    assert "Traceback" not in err
    assert "interrupted" not in err
    assert "dataset" in stages(tmp_path / "store")
    assert not {"checkpoints", "accuracy", "warehouse"} & stages(tmp_path / "store")
    done = studies.run(tmp_path / "store", study=LONG)
    assert done["success"], done
    assert "faulty_letter/dataset_s0" not in done["computed"]
    assert "faulty_letter/checkpoints_s0" in done["computed"]


class Bomb:
    """A pickle of it makes a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def rewrite(path: Path, change) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


HOSTILE = {
    "a pickle": (lambda path, mark: path.write_bytes(pickle.dumps(Bomb(mark))), "never loaded"),
    "../ in a name": (
        lambda path, mark: rewrite(path, lambda tensors: tensors.update({f"../../{mark.name}": torch.ones(1)})),
        "unknown tensor",
    ),
    "oversized header": (
        lambda path, mark: path.write_bytes(struct.pack("<Q", 50_000_000) + bytes(60_000_000)),
        "header",
    ),
    "wrong shape": (
        lambda path, mark: rewrite(path, lambda tensors: tensors.update({"lm_head.bias": torch.ones(7)})),
        "shape",
    ),
    "NaN": (lambda path, mark: rewrite(path, lambda tensors: tensors["lm_head.bias"].fill_(torch.nan)), "NaN"),
}


@pytest.mark.parametrize(
    "kind", ["a pickle", *(pytest.param(kind, marks=pytest.mark.slow) for kind in HOSTILE if kind != "a pickle")]
)
def test_hostile_weights_under_a_valid_manifest_stop_the_run(studies, whole, tmp_path, kind):
    """As in a store that came from elsewhere: every digest is right, and what it protects is hostile."""
    store, mark = copied(whole, tmp_path), tmp_path / "mark"
    harm, words = HOSTILE[kind]
    opened = Store(store)
    for artifact in list(opened.artifacts()):
        if artifact.stage not in ("dataset", "checkpoints"):
            shutil.rmtree(artifact.path)
        if artifact.stage == "checkpoints":
            away = tmp_path / "checkpoints"
            artifact.path.rename(away)
            (away / "manifest.json").unlink()
            for path in away.glob("checkpoints/*/model.safetensors"):
                harm(path, mark)
            parts = {part: artifact.manifest[part] for part in ("spec", "inputs", "provenance", "summary")}
            publish = lambda folder, away=away: shutil.copytree(away, folder, dirs_exist_ok=True)  # noqa: E731
            opened.publish("checkpoints", artifact.key, publish, **parts)
    done = studies.run(store)
    assert not done["success"]
    sentences = [line for error in done["errors"] for line in error.splitlines() if "CheckpointError: " in line]
    assert any(words in line for line in sentences), done["errors"]
    assert not mark.exists()
    assert not {"accuracy", "head_scores", "frequency_use", "warehouse"} & stages(store)


def malformed() -> dict[str, str | bytes]:
    """The malformed studies of tests/pipeline/test_studies.py, and a bomb of 10^6 aliases."""
    path = ROOT / "tests" / "pipeline" / "test_studies.py"
    spec = importlib.util.spec_from_file_location("malformed_studies", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 6)]
    return {"a million aliases": "\n".join(levels) + "\n", **module.MALFORMED}


def test_malformed_studies_through_the_command(studies, tmp_path):
    """One sentence, exit code 1, no traceback, nothing computed: all of them, each in a process of its own."""
    cases = malformed()
    assert len(cases) >= 50
    folder, store = tmp_path / "studies", tmp_path / "store"
    folder.mkdir()
    for kind, text in cases.items():
        (folder / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        studies.start(store, file=str(folder))
        assert studies.wait() == 1, kind
        said = studies.result.read_text()
        assert said.startswith(f"Error: {folder / 'mine.yaml'}"), (kind, said)
        assert said.count("\n") == 1, (kind, said)
        assert not store.exists(), kind


def test_a_name_declared_in_two_files_through_the_command(studies, tmp_path):
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "a.yaml").write_text(STUDY)
    (folder / "b.yaml").write_text(STUDY.replace("study: faulty", "study: another"))
    studies.start(tmp_path / "store", file=str(folder))
    assert studies.wait() == 1
    said = studies.result.read_text()
    assert said.count("\n") == 1
    assert f"Error: {folder / 'b.yaml'}: experiments.faulty_letter: " in said
    assert f"is declared in {folder / 'a.yaml'} already; rename one" in said
