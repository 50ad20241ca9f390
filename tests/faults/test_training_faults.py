"""Real processes, really killed: the next fit() ends with the bytes of a training that was never interrupted."""

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("training_child.py")
ROOT = Path(__file__).parents[2]


class Trainings:
    """The fork server of training_child.py."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([sys.executable, str(CHILD)], env=environment, **pipes)
        assert self.server.stdout.readline() == "ready\n"

    def start(self, workdir: Path, fault: dict | None = None, slow_s: float = 0.0) -> int:
        """Begin a training; returns its process id."""
        self.server.stdin.write(json.dumps({"workdir": str(workdir), "fault": fault, "slow_s": slow_s}) + "\n")
        self.server.stdin.flush()
        pid = int(self.server.stdout.readline())
        assert pid > 1
        return pid

    def wait(self) -> int:
        """The exit status of the training that was begun last."""
        return int(self.server.stdout.readline())

    def run(self, workdir: Path, fault: dict | None = None) -> int:
        """Train to the end or the fault; returns the exit status."""
        self.start(workdir, fault)
        return self.wait()

    def stop(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


@pytest.fixture(scope="module")
def trainings():
    server = Trainings()
    yield server
    server.stop()


def outcome(workdir: Path) -> dict:
    return json.loads((workdir.parent / "result.json").read_text())


@pytest.fixture(scope="module")
def whole(trainings, tmp_path_factory) -> dict:
    """What an uninterrupted training gives."""
    workdir = tmp_path_factory.mktemp("whole") / "work"
    assert trainings.run(workdir) == 0
    return outcome(workdir)


def assert_resumes(trainings, workdir: Path, whole: dict, resumed_from: int | str | None = "any") -> None:
    assert not (workdir.parent / "result.json").exists()
    error = workdir.parent / "error.txt"
    assert trainings.run(workdir) == 0, error.read_text() if error.exists() else "killed"
    found = outcome(workdir)
    assert {key: found[key] for key in ("log", "files")} == {key: whole[key] for key in ("log", "files")}
    assert not list(workdir.rglob(".unfinished-*"))
    if resumed_from != "any":
        assert found["from"] == resumed_from


FAST = [
    ("half", "checkpoints/step_000008", 4),
    ("renamed", "checkpoints/step_000008", 4),
    ("half", "resume/step_000008", 4),
    ("renamed", "resume/step_000008", 8),
]
REST = [
    ("before", "checkpoints/step_000000", None),
    ("half", "checkpoints/step_000000", None),
    ("renamed", "checkpoints/step_000000", None),
    ("before", "checkpoints/step_000008", 4),
    ("written", "checkpoints/step_000008", 4),
    ("before", "resume/step_000008", 4),
    ("written", "resume/step_000008", 4),
    ("removing", "resume/step_000004", 12),
    ("before", "checkpoints/step_000012", 8),
    ("renamed", "checkpoints/step_000012", 8),
    ("half", "resume/step_000012", 8),
    ("renamed", "resume/step_000012", 12),
]


@pytest.mark.parametrize(
    ("point", "folder", "resumed_from"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in REST)]
)
def test_kill_9_at_a_named_point(trainings, whole, tmp_path, point, folder, resumed_from):
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"point": point, "folder": folder}) == -signal.SIGKILL
    assert_resumes(trainings, workdir, whole, resumed_from)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(10))
def test_kill_9_at_random_moments(trainings, whole, tmp_path, moment):
    """Killed again and again, each time a little later, until it gets through."""
    workdir, draw = tmp_path / "work", random.Random(moment)
    for attempt in range(3):
        pid = trainings.start(workdir, slow_s=0.02)
        time.sleep(draw.uniform(0.05, 0.4) * (1 + attempt / 2))
        with contextlib.suppress(ProcessLookupError):  # it was done before
            os.kill(pid, signal.SIGKILL)
        if trainings.wait() == 0:
            (workdir.parent / "result.json").unlink()
    assert_resumes(trainings, workdir, whole)


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGXCPU", 152)])
def test_an_interruption_stays_one_and_loses_no_step(trainings, whole, tmp_path, name, status):
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"signal_at": 6, "signal": name}) == status
    assert_resumes(trainings, workdir, whole, resumed_from=6)


def test_an_interruption_in_the_last_step_stays_one(trainings, whole, tmp_path):
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"signal_at": 12, "signal": "SIGINT"}) == 130
    assert_resumes(trainings, workdir, whole, resumed_from=12)


SLURM = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "ropewalk", "SLURM_NTASKS": "2", "SLURM_NNODES": "1"}
SLURM |= {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NODELIST": "node7"}


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
@pytest.mark.parametrize("environment", [SLURM, {}], ids=["slurm", "bare"])
def test_an_early_warning_has_the_state_saved_and_training_goes_on(trainings, whole, tmp_path, environment, name):
    """What a scheduler does: it warns in step 6, kills in step 7, and starts the job again."""
    workdir = tmp_path / "work"
    fault = {"environment": environment, "signal_at": 6, "signal": name}
    assert trainings.run(workdir, fault | {"kill_at": 7}) == -signal.SIGKILL
    assert not list(workdir.rglob("*.ckpt"))
    assert_resumes(trainings, workdir, whole, resumed_from=6)
    assert trainings.run(tmp_path / "other" / "work", fault) == 0
    assert outcome(tmp_path / "other" / "work")["files"] == whole["files"]


def test_a_signal_that_is_ignored_stays_ignored(trainings, whole, tmp_path):
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"ignored": ["SIGHUP"], "signal_at": 6, "signal": "SIGHUP"}) == 0
    assert outcome(workdir)["files"] == whole["files"]


def assert_one_clear_error(workdir: Path, reason: str) -> None:
    first, *_ = (workdir.parent / "error.txt").read_text().splitlines()
    assert first.startswith("TrainingWriteError: ")
    assert "cannot write" in first
    assert reason in first
    assert "make room or access and start again" in first
    assert not list(workdir.rglob(".unfinished-*"))


def test_a_file_that_may_not_grow_gives_one_error_and_a_resumable_state(trainings, whole, tmp_path):
    """The limit lets the snapshots through and stops the first state, which is three times as large."""
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"largest_file": 8_192}) == 1
    assert_one_clear_error(workdir, "File too large")
    assert (workdir / "checkpoints/step_000004/model.safetensors").exists()
    assert_resumes(trainings, workdir, whole)


FULL_DISK = [pytest.param(nth, code, marks=pytest.mark.slow) for nth in range(1, 15) for code in ("ENOSPC", "EIO")]


@pytest.mark.parametrize(("nth", "code"), [(8, "ENOSPC"), (13, "EACCES"), *FULL_DISK])
def test_a_failing_write_gives_one_error_and_a_resumable_state(trainings, whole, tmp_path, nth, code):
    """14 files are written in all: 4 snapshots and 3 states of 2 files each."""
    workdir = tmp_path / "work"
    assert trainings.run(workdir, {"fail_nth": nth, "errno": code}) == 1
    assert_one_clear_error(workdir, os.strerror(getattr(errno, code)))
    done = [state for state, last in ((4, 6), (8, 10), (12, 14)) if nth > last]
    assert_resumes(trainings, workdir, whole, resumed_from=done[-1] if done else None)


def test_two_processes_do_not_train_in_one_folder_at_once(trainings, whole, tmp_path):
    other, workdir = Trainings(), tmp_path / "work"
    trainings.start(workdir, slow_s=0.05)
    time.sleep(0.3)
    other.start(workdir)
    assert trainings.wait() == other.wait() == 0
    assert outcome(workdir)["files"] == whole["files"]
    assert outcome(workdir)["from"] == 12  # the second waited, and found all done
    other.stop()
