"""Medians of interleaved runs, and the row that a benchmark hands in."""

import functools
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

REPEATS = 5


class Seconds(NamedTuple):
    """Median seconds of one run: by the clock, and of all this process's CPUs."""

    wall: float
    cpu: float


def interleaved(runs: Mapping[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, Seconds]:
    """The medians of each run. All take turns, so that whatever else the machine does hits all; one round warms up."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {name: Seconds(*map(statistics.median, zip(*pairs[1:], strict=True))) for name, pairs in taken.items()}


def row(
    name: str, command: str, ours_s: float, theirs_s: float, bars: Mapping[str, float] | None = None, **notes: Any
) -> dict[str, Any]:
    """A row of `bench/results.json`; `ratio` is ours / theirs, below 1 where ours is faster.

    `bars` names fields with the most that each may be, such as {"ratio": 0.8}; `met` says whether all are kept, and is
    None without bars. `notes` are further fields (bytes, inputs, what theirs is).
    """
    found = {"name": name, "ours_s": ours_s, "theirs_s": theirs_s, "ratio": ours_s / theirs_s}
    found |= {"machine": machine(), "command": command, **notes}
    kept = all(found[field] <= most for field, most in bars.items()) if bars else None
    return found | {"bar": ", ".join(f"{field} <= {most:g}" for field, most in (bars or {}).items()), "met": kept}


@functools.cache
def machine() -> str:
    """Processor, threads that torch uses, and torch's version."""
    import torch

    names = [line for line in _processor_lines() if line.startswith("model name")]
    processor = names[0].partition(":")[2].strip() if names else platform.machine()
    return f"{processor}, {torch.get_num_threads()} threads, torch {torch.__version__}, {platform.system()}"


def _processor_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
