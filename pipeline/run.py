"""Run one study from the command line and end with a table: `python -m pipeline.run quick`.

Behind it stands `dagster job execute -m pipeline.definitions -j quick` with ROPEWALK_STUDIES=quick. If that fails, the
`results` job shows what the other experiments gave, and the exit code is 1 all the same.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pipeline.stopping import end_quietly_on_ctrl_c

if __name__ == "__main__":
    end_quietly_on_ctrl_c()

import dagster as dg

from assets.early_warnings import outlive_warnings
from assets.registry import STAGES
from assets.stage import Replicate
from ops.training.pace import clock
from pipeline.aligned import aligned
from pipeline.asked import RESULTS, Asked, parse
from pipeline.dry_run import told
from pipeline.instance import prepare_instance
from pipeline.studies import StudyError
from pipeline.surroundings import (
    print_whatever_comes,
    refuse_little_address_space,
    refuse_without_shared_memory,
    supply_account,
    temporary_folder_fit_for_sockets,
)
from warehouse.durable import StoreError
from warehouse.reading import read_only
from warehouse.source import CodeError
from warehouse.store import Store

QUIET = ["-W", "ignore:Function `job_execute_command` is superseded"]
AGAIN_S = 3.0  # a training takes less to end its step and write its state
INVOCATION_TAG = "ropewalk/invocation"


@dataclass(frozen=True)
class Ran:
    """What the last run of a job says of one replicate: stages taken from the store, computed, and seconds."""

    hits: int
    misses: int
    seconds: float


class Stopped(Exception):
    """The person at the terminal, or the system, ended the run."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


def execute(job: str, invocation: str) -> int:
    """`dagster job execute` in a process group of its own; returns its exit code.

    `invocation` is a tag by which the run is found again. Raises Stopped once all its processes ended after a Ctrl-C, a
    SIGTERM or a hang-up, which it gets from us alone; what it says after that is not shown. A second signal kills it.
    """
    command = [sys.executable, *QUIET, "-m", "dagster", "job", "execute", "-m", "pipeline.definitions", "-j", job]
    received: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN  # as under nohup
    }
    child = subprocess.Popen(
        [*command, "--tags", json.dumps({INVOCATION_TAG: invocation})],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, lambda number, frame: pause(child))
    try:
        told = threading.Thread(target=pass_on, args=(child.stderr, received), daemon=True)
        told.start()
        code = ended(child, received)
        told.join(2)  # a process that outlives its run may hold the pipe open
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        raise Stopped(received[0])
    return code


def pass_on(said: IO[bytes], received: Sequence[int]) -> None:
    """Copy what a process says to our own stderr until a signal was received; whatever comes after is dropped."""
    while piece := os.read(said.fileno(), 65536):
        while piece and not received:
            try:
                piece = piece[os.write(2, piece) :]
            except OSError:  # nobody reads us any more; the run goes on, and its pipe must not fill
                break


def ended(child: subprocess.Popen[bytes], received: Sequence[int]) -> int:
    """The exit code of a process, which is told to end at the first signal received and killed at the second.

    It is told again every AGAIN_S seconds: an extension that is just being loaded (torch's) swallows what the signal
    raised.
    """
    next_time, killed = 0.0, False
    while child.poll() is None:
        if len(received) > 1 and not killed:
            group(child, signal.SIGKILL)
            killed = True
        elif received and time.monotonic() >= next_time:
            child.terminate()
            next_time = time.monotonic() + AGAIN_S
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
    if received:
        group(child, signal.SIGKILL)
    return child.returncode


def pause(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-Z: stop the run and ourselves until we are continued."""
    group(child, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    group(child, signal.SIGCONT)


def group(child: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to every process of a child's group that is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def ran(instance: dg.DagsterInstance, invocation: str, replicates: Sequence[Replicate]) -> tuple[dict[str, Ran], Ran]:
    """What the run of that invocation did, by replicate and for the assets over all experiments."""
    records = instance.get_run_records(dg.RunsFilter(tags={INVOCATION_TAG: invocation}))
    told: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in records:
        for entry in instance.all_logs(record.dagster_run.run_id):
            event = entry.dagster_event
            if event is not None and event.is_step_materialization:
                materialization = event.step_materialization_data.materialization
                told[tuple(materialization.asset_key.path)] = {k: v.value for k, v in materialization.metadata.items()}

    def counted(paths: Sequence[tuple[str, ...]]) -> Ran:
        found = [told[path] for path in paths if path in told]
        hits = sum(metadata["cache"] == "hit" for metadata in found)
        return Ran(hits, len(found) - hits, sum(float(metadata["seconds"]) for metadata in found))

    each = {
        str(replicate): counted([(replicate.experiment.name, f"{stage.name}_s{replicate.seed}") for stage in STAGES])
        for replicate in replicates
    }
    return each, counted([path for path in told if len(path) == 1])


def measured(warehouse: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The view `overview` of a warehouse file, by experiment and seed; empty if there is no file."""
    if not warehouse.is_file():
        return {}
    with read_only(warehouse) as connection:
        rows = connection.sql("FROM overview").pl().to_dicts()
    return {(row["experiment"], row["seed"]): row for row in rows}


def verdicts(warehouse: Path) -> str:
    """One line: how many of the papers' claims have which verdict, those that are not reproduced by name."""
    if not warehouse.is_file():
        return "claims: not decided, there is no warehouse yet"
    with read_only(warehouse) as connection:
        found = connection.sql("SELECT verdict, id FROM claims").fetchall()
    parts = []
    for verdict in ("reproduced", "not reproduced", "not run"):
        claims = [claim for given, claim in found if given == verdict]
        named = f" ({', '.join(claims)})" if claims and verdict == "not reproduced" else ""
        parts.append(f"{len(claims)} {verdict}{named}")
    return "claims: " + ", ".join(parts)


def table(replicates: Sequence[Replicate], did: dict[str, Ran], found: dict[tuple[str, int], dict[str, Any]]) -> str:
    """The table that a run ends with: one line an experiment and seed."""
    lines = [["experiment", "seed", "accuracy by hops", "pure positional", "pure symbolic", "cache", "seconds"]]
    for replicate in replicates:
        ran, row = did[str(replicate)], found.get((replicate.experiment.name, replicate.seed), {})
        due = sum(stage.applies(replicate.experiment) for stage in STAGES)
        short = due - ran.hits - ran.misses
        cache = "hit" if ran.hits == due else "miss" if ran.misses == due else f"{ran.hits} hits, {ran.misses} misses"
        lines.append(
            [
                replicate.experiment.name,
                str(replicate.seed),
                *(_cell(row.get(name)) for name in ("accuracy_by_hop", "n_positional", "n_symbolic")),
                f"NOT FINISHED ({short} of {due} stages missing)" if short else cache,
                f"{ran.seconds:.1f}",
            ]
        )
    return aligned(lines, {1, len(lines[0]) - 1})


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


def main(asked: Asked) -> int:
    """Run what is asked, print what came out, return the exit code."""
    print_whatever_comes()
    began = time.monotonic()
    invocation, name = secrets.token_hex(8), asked.job
    try:
        studies, replicates = asked.studies(), asked.replicates()
        store = Store.from_environment()
        if asked.dry_run:
            print(told(store, replicates, STAGES))
            return 0
        os.environ.update(asked.environment)
        for study in studies:
            refuse_without_shared_memory(study)
        refuse_little_address_space()
        prepare_instance(store.root)
        supply_account(store.root / "home")
        with temporary_folder_fit_for_sockets():
            code = execute(name, invocation)
            if code and name != RESULTS:
                execute(RESULTS, invocation)
    except StudyError as error:
        error.show()
        return error.exit_code
    except (StoreError, CodeError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print(f"\n{name}: {stopped}; finished stages are kept, and the next run goes on from where this one was.")
        return stopped.exit_code
    with dg.DagsterInstance.get() as instance:
        each, over_all = ran(instance, invocation, replicates)
    misses = sum(did.misses for did in each.values())
    print()
    database = store.root / "warehouse.duckdb"
    try:
        rows, claims = measured(database), verdicts(database)
    except StoreError as error:
        rows, claims = {}, f"claims: not read: {error}"
    if replicates:
        print(table(replicates, each, rows))
        print()
    print(claims)
    if code:
        print(f"{name}: failed; finished stages are kept, and the next run goes on from there.")
    elif not misses and not over_all.misses:
        print(f"{name}: everything was in the store, nothing was computed ({clock(time.monotonic() - began)}).")
    elif not misses:
        print(f"{name}: every stage was in the store; the report was renewed in {clock(time.monotonic() - began)}.")
    else:
        print(f"{name}: {misses} stages computed in {clock(time.monotonic() - began)}.")
    report = store.root / "report" / "index.html"
    print(report if report.is_file() else f"{report} does not exist yet")
    return code


if __name__ == "__main__":
    with outlive_warnings():
        sys.exit(main(parse(sys.argv[1:])))
