"""Runs whole studies in forked children, with a fault at a named point; driven over stdin by the tests.

A line in is a case: {"store", "study" (YAML) or "file" (an experiments folder), "fault": {...} or null, "result"}. Out
comes the child's process id. The line "wait" brings its exit status (negative: the signal) once it has ended; until
then nobody has waited for it, so its id stays its own and a signal meets nobody else. A case with "study"
executes it without charts and report, and writes what happened to `result`; a case with "file" is the command line
`python -m pipeline.run quick`, what it says goes to `result`. The server itself only imports, so that forks are clean.
"""

import contextlib
import json
import logging
import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import dagster as dg
import lightning  # noqa: F401 (so that no child has to)
import polars  # noqa: F401
import torch

from assets import builder
from assets.builder import StoreResource
from assets.checkpoints import Reporter
from ops.tasks.registry import parse_study
from pipeline import run as command_line
from pipeline.asked import Asked
from pipeline.factory import build_assets
from pipeline.jobs import build_jobs


def strike(fault: dict) -> None:
    """Put the fault in its place: {"point": before|computed|published, "stage", "do"} or {"training": "do"}."""

    def act(stage: str, point: str) -> None:
        if (fault.get("stage"), fault.get("point")) == (stage, point):
            ACTIONS[fault["do"]]()

    compute, publish = builder.get_or_compute, builder.publish

    def faulty_compute(context, store, stage, *rest):
        act(stage.name, "before")
        found = compute(context, store, stage, *rest)
        act(stage.name, "published")
        return found

    def faulty_publish(store, stage, *rest):
        act(stage.name, "computed")
        return publish(store, stage, *rest)

    builder.get_or_compute, builder.publish = faulty_compute, faulty_publish
    if "training" in fault:
        report = Reporter.__call__

        def faulty_report(self, progress):
            report(self, progress)
            ACTIONS[fault["training"]]()

        Reporter.__call__ = faulty_report


def raise_memory_error() -> None:
    raise MemoryError("injected")


def allow_no_more_memory() -> None:
    """From now on the process gets at most 4 MB of address space more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 4 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


ACTIONS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory error": raise_memory_error,
    "no more memory": allow_no_more_memory,
}


class Heard(logging.Handler):
    """Collects what the store says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def execute(case: dict) -> None:
    """Run the study but for charts and report."""
    heard = Heard()
    logging.getLogger("ropewalk").addHandler(heard)
    strike(case["fault"] or {})
    torch.set_num_threads(1)
    study = parse_study(case["study"], "study.yaml")
    definitions = dg.Definitions(
        assets=build_assets([study]),
        jobs=build_jobs([study]),
        resources={"store": StoreResource(root=case["store"])},
    )
    job = definitions.resolve_job_def(study.study)
    wanted = [key for key in job.asset_layer.executable_asset_keys if key.path[0] not in ("charts", "report")]
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance, asset_selection=wanted, raise_on_error=False)
    computed = sorted(
        event.asset_key.to_user_string()
        for event in done.get_asset_materialization_events()
        if event.asset_key and event.materialization.metadata["cache"].value == "miss"
    )
    errors = [
        error.to_string()
        for event in done.all_events
        if event.is_step_failure
        if (error := event.step_failure_data.error)
    ]
    found = {"success": done.success, "computed": computed, "said": heard.said, "errors": errors}
    Path(case["result"]).write_text(json.dumps(found))


def type_command(case: dict) -> int:
    """`python -m pipeline.run results`, which loads every study, with those of a folder beside our own."""
    os.environ |= {"ROPEWALK_EXPERIMENTS": case["file"], "ROPEWALK_STORE": case["store"]}
    with Path(case["result"]).open("w") as said, contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        return command_line.main(Asked("results"))


def child(case: dict) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stdout.fileno(), 1)  # a library's own print (DuckDB's progress bar) must not reach the server's pipe
    status = 0
    try:
        status = type_command(case) if "file" in case else execute(case) or 0
    except BaseException:  # noqa: BLE001 (the test looks at it)
        status = 1
        with contextlib.suppress(OSError, MemoryError):
            Path(case["result"]).write_text(json.dumps({"success": False, "raised": traceback.format_exc()}))
    os._exit(status)


def serve() -> None:
    print("ready", flush=True)
    pid = 0
    for line in sys.stdin:
        if line == "wait\n":
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
