"""Trains a small model in forked children, with a fault at a named point; driven over stdin by the tests.

A line in is a case: {"workdir", "fault": {...} or null, "slow_s"}. Out come the child's process id, then, when it has
ended, its exit status (negative: the signal). A child writes workdir/../result.json when its training ends well, and
the exception's name and message to error.txt when it raises. The server itself only imports, so that forks are clean.
"""

import builtins
import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch

from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training import durable
from ops.training import fit as fit_module
from ops.training.data import TrainingData

STEPS = 12
TRAINING = TrainingSpec(steps=STEPS, batch_size=4, learning_rate=3e-3, warmup_steps=2, checkpoint_every=4, log_every=3)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def strike_at(point: str, folder: str, action) -> None:
    """Call `action` before, during or after the durable write of the folder whose path ends in `folder`."""
    rename, write_file, rmtree = os.rename, durable._write_file, shutil.rmtree
    unfinished = folder.replace("/", "/.unfinished-")

    def faulty_rename(source, target):
        if point == "written" and str(target).endswith(folder):
            action()
        rename(source, target)
        if point == "renamed" and str(target).endswith(folder):
            action()

    def faulty_write_file(path, data):
        if str(path.parent).endswith(unfinished):
            if point == "before":
                action()
            if point == "half" and path.suffix == ".safetensors":
                write_file(path, data[: len(data) // 2])
                action()
        write_file(path, data)

    def faulty_rmtree(path, *arguments, **options):
        if point == "removing" and str(path).endswith(folder):
            next(Path(path).iterdir()).unlink()
            action()
        rmtree(path, *arguments, **options)

    os.rename, durable._write_file, shutil.rmtree = faulty_rename, faulty_write_file, faulty_rmtree


def fail_write(nth: int, code: int) -> None:
    """Make the nth file that is opened for writing fail with errno `code` once half of it is written."""
    write_file, count = durable._write_file, [0]

    def faulty_write_file(path, data):
        count[0] += 1
        if count[0] == nth:
            with builtins.open(path, "wb") as file:
                file.write(data[: len(data) // 2])
            raise OSError(code, os.strerror(code), str(path))
        write_file(path, data)

    durable._write_file = faulty_write_file


def train(case: dict) -> None:
    fault, workdir = case["fault"] or {}, Path(case["workdir"])
    if "point" in fault:
        strike_at(fault["point"], fault["folder"], kill)
    if "fail_nth" in fault:
        fail_write(fault["fail_nth"], getattr(errno, fault["errno"]))
    if "largest_file" in fault:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["largest_file"],) * 2)

    os.environ.update(fault.get("environment", {}))
    for name in fault.get("ignored", []):
        signal.signal(getattr(signal, name), signal.SIG_IGN)

    def report(progress):
        if fault.get("signal_at") == progress.step:
            os.kill(os.getpid(), getattr(signal, fault["signal"]))
        if fault.get("kill_at") == progress.step:
            kill()

    torch.set_num_threads(1)
    fit_module.STATE_REST_S = 0.0
    callbacks = []
    if fault.get("signal_at") or case.get("slow_s"):
        from ops.training.progress import ProgressReport

        pause = case.get("slow_s", 0.0)
        callbacks = [ProgressReport(lambda p: (time.sleep(pause), report(p)), STEPS, every_s=0.0)]
    ids = torch.randint(0, 7, (40, 5), generator=torch.Generator().manual_seed(0))
    hops = torch.ones(10, dtype=torch.int64)
    result = fit_module.fit(
        task_data=TrainingData(ids, ids[:, 2].contiguous(), ids[:10], ids[:10, 2].contiguous(), hops),
        vocabulary_size=7,
        model=ModelSpec(n_layers=1, width=8),
        training=TRAINING,
        seed=1,
        workdir=workdir,
        report=lambda progress: None,
        accelerator="cpu",
        callbacks=callbacks,
    )
    digests = {
        f"{step}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for step, folder in result.checkpoints.items()
        for file in sorted(folder.iterdir())
    }
    outcome = {"log": result.log.drop("steps_per_s").to_dicts(), "files": digests}
    (workdir.parent / "result.json").write_text(json.dumps({**outcome, "from": result.summary["resumed_from_step"]}))


def child(case: dict) -> None:
    sys.stdout = sys.stderr = builtins.open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stdout.fileno(), 1)
    status = 0
    try:
        train(case)
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException as error:  # noqa: BLE001
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
        text = f"{type(error).__name__}: {error}\n" + traceback.format_exc()
        with contextlib.suppress(OSError):
            Path(case["workdir"]).with_name("error.txt").write_text(text)
    os._exit(status)


def serve() -> None:
    warnings.simplefilter("error")
    print("ready", flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(case)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
