"""Run one study from the command line and end with a table: `python -m pipeline.run quick`.

Behind it stands `dagster job execute -m pipeline.definitions -j quick`. If that fails, the `results` job shows what the
other experiments gave, and the exit code is 1 all the same.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from assets.early_warnings import outlive_warnings
from assets.registry import STAGES
from assets.stage import Replicate, clock
from ops.spec.study import more_seeds
from pipeline.jobs import RESULTS
from pipeline.studies import MORE_SEEDS, StudyError, declared_studies
from warehouse.durable import StoreError, disk_errors
from warehouse.reading import read_only
from warehouse.store import Store

QUIET = ["-W", "ignore:Function `job_execute_command` is superseded"]
INVOCATION_TAG = "ropewalk/invocation"
SETTINGS = Path(__file__).with_name("dagster.yaml")


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
    """`dagster job execute` in a process of its own; returns its exit code.

    `invocation` is a tag by which the run is found again. Raises Stopped once the process ended after a Ctrl-C (which
    the terminal sends to both) or a SIGTERM (which is passed on).
    """
    command = [sys.executable, *QUIET, "-m", "dagster", "job", "execute", "-m", "pipeline.definitions", "-j", job]
    child = subprocess.Popen([*command, "--tags", json.dumps({INVOCATION_TAG: invocation})])
    received: list[int] = []

    def receive(number: int, frame: object) -> None:
        received.append(number)
        if number == signal.SIGTERM:
            child.send_signal(number)

    handlers = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = child.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        raise Stopped(received[0])
    return code


def prepare_instance(store: Path) -> None:
    """Make the store's folder and Dagster's home ($DAGSTER_HOME, or <store>/dagster) with its settings and tables.

    One process at a time: two at once in a new home fail in Dagster 1.13. Raises StoreError if a folder cannot be made.
    """
    with disk_errors(f"cannot keep results in {store}; set ROPEWALK_STORE"):
        store.mkdir(parents=True, exist_ok=True)
    home = Path(os.environ.get("DAGSTER_HOME") or store / "dagster").absolute()
    os.environ["DAGSTER_HOME"] = str(home)
    with disk_errors(f"cannot keep Dagster's records in {home}"):
        home.mkdir(parents=True, exist_ok=True)
        with open(home / ".ropewalk.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (home / SETTINGS.name).exists():
                shutil.copyfile(SETTINGS, home / SETTINGS.name)
            with dg.DagsterInstance.get():
                pass


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
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    numbers = {1, len(widths) - 1}
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i in numbers else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


def chosen(name: str) -> list[Replicate]:
    """What the job of that name computes: a study's name, or that with `_more_seeds`. Raises StudyError."""
    found: dict[str, list[Replicate]] = {}
    for study in declared_studies():
        own = [Replicate(experiment, seed) for experiment in study.experiments for seed in experiment.seeds]
        found[study.study] = own
        if more := [Replicate(e, seed) for e in study.experiments for seed in more_seeds(e)]:
            found[study.study + MORE_SEEDS] = own + more
    if name not in found:
        raise StudyError(f"there is no study {name!r}; declared are {', '.join(sorted(found))}")
    return found[name]


def main(name: str) -> int:
    """Run the study, print what came out, return the exit code."""
    try:
        replicates = chosen(name)
    except StudyError as error:
        error.show()
        return error.exit_code
    began = time.monotonic()
    invocation = secrets.token_hex(8)
    store = Store.from_environment()
    try:
        prepare_instance(store.root)
    except StoreError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    try:
        code = execute(name, invocation)
        if code:
            execute(RESULTS, invocation)
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
    if len(sys.argv) != 2:
        sys.exit("usage: python -m pipeline.run STUDY")
    with outlive_warnings():
        sys.exit(main(sys.argv[1]))
