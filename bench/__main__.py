"""Measure, print a table, write `bench/results.json`.

    python -m bench                      every benchmark, each in a process of its own
    python -m bench scoring generator    some of them; the other rows of results.json stay
    python -m bench --quick scoring      a few inputs only, to see that it works; keeps nothing without --results

A benchmark is a module bench/bench_<name>.py with `rows()`, which returns dicts with name, ours_s, theirs_s, ratio,
machine, command, bar and met (`bench.measure.row` makes them). `rows(quick=True)`, where there is one, is the quick
form, and its bars are not judged. Exit code 1 if a benchmark failed; a bar that is not met is only told.
"""

import argparse
import importlib
import inspect
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
FIELDS = ("name", "ours_s", "theirs_s", "ratio", "machine", "command")
Row = dict[str, Any]


def names() -> list[str]:
    """The benchmarks that exist."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def measured_here(name: str, quick: bool) -> list[Row]:
    """A benchmark's rows, measured in this process. Raises ValueError on a row without the fields that each has."""
    module = importlib.import_module(f"bench.bench_{name}")
    if quick and "quick" not in inspect.signature(module.rows).parameters:
        print(f"{name}: has no quick form, so it is left out", file=sys.stderr)
        return []
    rows = [{"bar": "", "met": None} | row for row in (module.rows(quick=True) if quick else module.rows())]
    for row in rows:
        row["met"] = None if quick else row["met"]
        if missing := [field for field in FIELDS if field not in row]:
            raise ValueError(f"bench_{name}: the row {row.get('name')!r} has no {', '.join(missing)}")
    return rows


def measured(name: str, quick: bool) -> list[Row] | None:
    """A benchmark's rows, measured in a process of its own; None if it failed, whose error is on the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "bench", name, "--rows-to", str(target), *(["--quick"] if quick else [])]
        done = subprocess.run(command, cwd=HERE.parent, check=False)
        return json.loads(target.read_text()) if done.returncode == 0 else None


def table(rows: list[Row]) -> str:
    """The rows as aligned text."""
    lines = [("benchmark", "ours s", "theirs s", "ratio", "bar", "")]
    for row in rows:
        verdict = {True: "met", False: "NOT MET"}.get(row["met"], "")
        numbers = (f"{row[field]:.4g}" for field in ("ours_s", "theirs_s", "ratio"))
        lines.append((row["name"], *numbers, str(row["bar"] or "-"), verdict))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def write(path: Path, rows: list[Row], keep_others: bool) -> None:
    """Write the rows; with `keep_others`, rows of other names that the file has stay in it."""
    new = {row["name"] for row in rows}
    old = json.loads(path.read_text()) if keep_others and path.exists() else []
    every = [row for row in old if row["name"] not in new] + rows
    path.write_text(json.dumps(every, indent=1, allow_nan=False) + "\n")


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}; default: all")
    parser.add_argument("--quick", action="store_true", help="a few inputs only")
    parser.add_argument("--results", type=Path, help="the file to write (default: bench/results.json)")
    parser.add_argument("--rows-to", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.names) - set(names())):
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(names())}")
    if asked.rows_to:
        rows = [row for name in asked.names for row in measured_here(name, asked.quick)]
        asked.rows_to.write_text(json.dumps(rows))
        return 0
    rows, failed = [], []
    for name in asked.names or names():
        began = time.monotonic()
        found = measured(name, asked.quick)
        print(f"{name}: {'FAILED' if found is None else 'measured'} in {time.monotonic() - began:.0f} s", flush=True)
        rows += found or []
        failed += [name] if found is None else []
    print("\n" + table(rows))
    if asked.results or not asked.quick:
        write(asked.results or RESULTS, rows, keep_others=bool(asked.names or failed))
        print(f"\n{asked.results or RESULTS}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
