"""How long the project takes to load, to find that nothing is to be done, and to show its first page.

All in processes of their own, in CPU seconds of all their children (the first page: by the clock). The yardstick is
`python -c "import dagster, torch"` on the same machine, in turns with ours.
"""

import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.measure import row
from pipeline.studies import OWN

COMMAND = "python -m bench loading"
REPEATS = 5
MORE_REPLICATES = 5_000
LIBRARIES = [sys.executable, "-c", "import dagster, torch"]
DEFINITIONS = [sys.executable, "-c", "import pipeline.definitions"]
PAGE = json.dumps({"query": "{ assetNodes { assetKey { path } groupName } }"}).encode()


def cpu_s(command: list[str], environment: Mapping[str, str]) -> float:
    """CPU seconds of a command and of all that it started. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turns(runs: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """The median of each run; one round more warms up, unless there is only one."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    warming = int(repeats > 1)
    for _ in range(repeats + warming):
        for name, run in runs.items():
            taken[name].append(run())
    return {name: statistics.median(values[warming:]) for name, values in taken.items()}


def quick_in_small() -> str:
    """The study `quick` with as many stages, checkpoints and bytes of weights, after 16 steps on few inputs."""
    study = yaml.safe_load((OWN / "quick.yaml").read_text())
    del study["study"]
    shared = study["defaults"]
    shared["task"] |= {"n_train": 1_280, "n_validation": 120, "n_test": 240}
    shared["training"] |= {"steps": 16, "warmup_steps": 2, "checkpoint_every": 1}
    shared["accuracy"] = {"n_test": 120}
    shared["scoring"] = shared["frequency_use"] = {"n_inputs": 24}
    shared["ablation"] |= {"n_inputs": 24, "n_score_inputs": 12}
    shared["mechanism"] |= {"n_flow": 24, "n_patched": 24, "n_exclusion": 8, "n_permutations": 8, "n_discrepancy": 8}
    experiments = {name: body for name, body in study["experiments"].items() if "task" in body}
    study["experiments"] = {name.replace("quick_", "small_"): body for name, body in experiments.items()}
    return "study: small\n" + yaml.safe_dump(json.loads(json.dumps(study)))


def elsewhere() -> str:
    """A study of 50 experiments with 100 seeds each."""
    experiments = {f"elsewhere_{i}": {"task": {"name": "number"}, "seeds": list(range(100))} for i in range(50)}
    return "study: elsewhere\n" + yaml.safe_dump({"description": "Many.", "experiments": experiments})


def first_page_s(environment: Mapping[str, str]) -> float:
    """Seconds from starting the web server to the list of all assets."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster_webserver", "-m", "pipeline.definitions", "-h", "127.0.0.1", "-p"]
    began = time.perf_counter()
    server = subprocess.Popen(
        [*command, str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", data=PAGE, headers={"Content-Type": "application/json"}
    )
    try:
        while time.perf_counter() - began < 180:
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    if json.load(answer)["data"]["assetNodes"]:
                        return time.perf_counter() - began
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the web server did not list its assets within 180 s")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`load_one_study`, `load_beside_5000_replicates`, `warm_run`, `first_page_1200_assets`."""
    repeats = 1 if quick else REPEATS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small").mkdir()
        (folder / "small" / "small.yaml").write_text(quick_in_small())
        (folder / "more").mkdir()
        (folder / "more" / "elsewhere.yaml").write_text(elsewhere())
        (folder / "home").mkdir()
        base = {key: value for key, value in os.environ.items() if not key.startswith(("ROPEWALK_", "DAGSTER_"))}
        base |= {"ROPEWALK_STORE": str(folder / "store"), "ROPEWALK_EXPERIMENTS": str(folder / "small")}
        crowded = base | {"ROPEWALK_EXPERIMENTS": f"{folder / 'small'}{os.pathsep}{folder / 'more'}"}
        one = {"ROPEWALK_STUDIES": "quick"}
        run = [sys.executable, "-m", "pipeline.run", "small"]
        cpu_s(run, base)  # fills the store
        taken = in_turns(
            {
                "libraries": lambda: cpu_s(LIBRARIES, base),
                "definitions": lambda: cpu_s(DEFINITIONS, base | one),
                "definitions, crowded": lambda: cpu_s(DEFINITIONS, crowded | one),
                "warm": lambda: cpu_s(run, base),
                "warm, crowded": lambda: cpu_s(run, crowded),
            },
            repeats,
        )
        home = base | {"DAGSTER_HOME": str(folder / "home")}
        pages = in_turns(
            {
                "all": lambda: first_page_s(home),
                "few": lambda: first_page_s(home | one),
            },
            1 if quick else 3,
        )
    libraries, what = taken["libraries"], "import dagster, torch (CPU s)"
    return [
        row("load_one_study", COMMAND, taken["definitions"], libraries, {"ratio": 1.4}, theirs=what),
        row(
            "load_beside_5000_replicates",
            COMMAND,
            taken["definitions, crowded"],
            taken["definitions"],
            {"ratio": 1.2},
            theirs="the same without 5,000 replicates of another study",
        ),
        row("warm_run", COMMAND, taken["warm"], libraries, {"ratio": 4.0}, theirs=what),
        row(
            "warm_run_beside_5000_replicates",
            COMMAND,
            taken["warm, crowded"],
            taken["warm"],
            {"ratio": 1.2},
            theirs="the same without 5,000 replicates of another study",
        ),
        row(
            "first_page_1200_assets",
            COMMAND,
            pages["all"],
            pages["few"],
            {"ratio": 3.0},
            theirs="the first page with the assets of quick (by the clock)",
        ),
    ]
