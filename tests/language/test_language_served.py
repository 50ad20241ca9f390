"""SmolLM2 served by a process of its own over HTTP on loopback, asked by the stage through the openai client."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import dagster as dg
import duckdb
import pytest

from assets.builder import StoreResource
from ops.tasks.registry import parse_study
from pipeline.factory import build_assets

STUDY = """
study: served
description: A small real model behind an OpenAI-compatible server on this machine.
executor: in_process
experiments:
  served_smollm2:
    prompting:
      cost_cap_usd: 0.0
      lengths: [12, 16]
      n_runs: 1
      n_items: 2
      n_shots: 2
      ask_unscreened: true
      model: {{kind: endpoint, model: smollm2, base_url: {url}, input_price: 0.0, output_price: 0.0, timeout_s: 120.0}}
"""


@pytest.fixture
def server():
    """The address of a running server; it ends with the test."""
    script = Path(__file__).with_name("smollm2_server.py")
    root = str(script.parents[2])
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": root}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            port = int(process.stdout.readline())  # printed once the weights are loaded
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def run(text, store):
    """Execute the study without the figures; whether it succeeded, and cache hit or miss by asset."""
    assets = build_assets([parse_study(text, "served.yaml")])
    chosen = [asset for asset in assets if not asset.keys & {dg.AssetKey("charts"), dg.AssetKey("report")}]
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(chosen, instance=instance, resources={"store": StoreResource(root=str(store))})
    events = result.get_asset_materialization_events()
    return result.success, {e.asset_key.to_user_string(): e.materialization.metadata["cache"].value for e in events}


def requests_seen(server):
    """How many questions the server has answered."""
    with urlopen(f"{server}/seen") as reply:
        return json.load(reply)


@pytest.mark.slow
def test_a_served_model_is_asked_once_and_a_second_run_sends_nothing(server, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    text = STUDY.format(url=f"{server}/v1")
    success, cache = run(text, tmp_path / "store")
    assert success
    assert cache["served_smollm2/prompting_s0"] == "miss"
    assert requests_seen(server) == 2 * 2 * 2  # tasks, lengths, items
    success, cache = run(text, tmp_path / "store")
    assert success
    assert cache["served_smollm2/prompting_s0"] == "hit"
    assert requests_seen(server) == 8

    longer = text.replace("[12, 16]", "[12, 16, 24]")  # another stage key; only the new length is sent
    assert run(longer, tmp_path / "store")[1]["served_smollm2/prompting_s0"] == "miss"
    assert requests_seen(server) == 12

    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        raw = [text for (text,) in connection.sql("SELECT raw FROM lm_answers").fetchall()]
        verdict = connection.sql("SELECT verdict FROM claims WHERE id = 'llm-letter-beats-number'").fetchall()
        screened = connection.sql("SELECT bool_or(screened) FROM lm_length_accuracy").fetchall()
    assert len(raw) == 12
    assert any(text.strip() for text in raw)
    assert screened == [(False,)]
    assert verdict == [("not run",)]  # no model above chance
