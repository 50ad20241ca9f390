"""`dagster dev` with no arguments: loads the project, shows every asset and its staleness, or what is wrong.

Asked over GraphQL, which is all that the pages themselves ask.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ASSETS = """{ assetNodes { assetKey { path } groupName kinds staleStatus jobNames
    assetChecksOrError { ... on AssetChecks { checks { name blocking description } } } } }"""
ERRORS = """{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
    __typename ... on PythonError { message causes { message } } } } } } }"""


@contextmanager
def dagster_dev(home: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a running `dagster dev`, stopped at the end with all its processes."""
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text(Path("pipeline/dagster.yaml").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(port)],
        env=os.environ | environment | {"DAGSTER_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield f"http://127.0.0.1:{port}/graphql"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(address: str, query: str, patience_s: float = 120) -> dict[str, Any]:
    """The data of a GraphQL answer, once the server answers and has tried to load the project."""
    request = urllib.request.Request(
        address, json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
    )
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def test_every_declared_asset_is_shown(tmp_path):
    with dagster_dev(tmp_path / "home", {"ROPEWALK_STORE": str(tmp_path / "store")}) as address:
        nodes = ask(address, ASSETS)["assetNodes"]
    by_key = {"/".join(node["assetKey"]["path"]): node for node in nodes}
    assert {"warehouse", "charts", "report"} < set(by_key)
    for experiment in ("quick_number", "quick_letter"):
        for seed in (0, 1):
            node = by_key[f"{experiment}/head_scores_s{seed}"]
            assert node["groupName"] == experiment
            assert node["staleStatus"] == "MISSING"
            assert "quick" in node["jobNames"]
            assert "paper" not in node["jobNames"]
    assert {"paper", "quick", "results"} <= set(by_key["report"]["jobNames"])
    claims = {check["name"]: check for check in by_key["report"]["assetChecksOrError"]["checks"]}
    assert "near-perfect accuracy" in claims["number_solved"]["description"]
    assert not any(check["blocking"] for check in claims.values())


@pytest.mark.slow
def test_a_wrong_study_is_one_sentence(tmp_path):
    (tmp_path / "studies").mkdir()
    wrong = tmp_path / "studies" / "mine.yaml"
    wrong.write_text("study: s\ndescription: d\nexperiments: {a: {task: {name: number, target_window: 0}}}\n")
    with dagster_dev(tmp_path / "home", {"ROPEWALK_EXPERIMENTS": str(wrong.parent)}) as address:
        entries = ask(address, ERRORS)["workspaceOrError"]["locationEntries"]
    error = entries[0]["locationOrLoadError"]
    assert error["__typename"] == "PythonError"
    assert (
        error["message"].strip().startswith(f"pipeline.studies.StudyError: {wrong}: experiments.a.task.target_window: ")
    )
    assert error["message"].strip().count("\n") == 0
    assert error["causes"] == []
