"""Claims as checks of the report: they warn in the instance that a person looks at, and the run succeeds."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from assets.claims import claim_results, declared_claims, json_rows
from ops.tasks.registry import parse_study

THEORY = """
study: bounds
description: The theory alone, at a few lengths.
executor: in_process
experiments:
  bounds_theory:
    theory: {longest: 24, construction_lengths: [2, 4], n_random: 50, n_per_length: 20, n_chained: 50}
"""


def verdicts(events) -> dict[str, tuple[bool, str, dict]]:
    """Check of the report → passed, severity, metadata."""
    found = {}
    for event in events:
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            if check.asset_key == dg.AssetKey("report"):
                values = {name: value.value for name, value in check.metadata.items()}
                found[check.check_name] = (check.passed, check.severity.value, values)
    return found


@pytest.mark.timeout(600)
def test_a_run_with_a_claim_that_is_not_reproduced_succeeds_and_warns(tmp_path, run):
    store, home = tmp_path / "store", tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(Path("pipeline/dagster.yaml").read_text())
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "bounds.yaml").write_text(THEORY)
    environment = os.environ | {
        "DAGSTER_HOME": str(home),
        "ROPEWALK_STORE": str(store),
        "ROPEWALK_EXPERIMENTS": str(tmp_path / "studies"),
    }
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "job", "execute", "-m", "pipeline.definitions"]
    done = subprocess.run([*command, "-j", "bounds"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with dg.DagsterInstance.from_config(str(home)) as instance:
        (record,) = instance.get_run_records()
        assert record.dagster_run.status == dg.DagsterRunStatus.SUCCESS
        entries = instance.all_logs(record.dagster_run.run_id)
    told = verdicts(entry.dagster_event for entry in entries if entry.dagster_event is not None)
    assert len(told) == len(declared_claims())

    passed, severity, details = told["index_discrepancy"]
    assert (passed, severity, details["verdict"]) == (False, "WARN", "not reproduced")
    assert 0 < details["measured"] < 1
    assert (details["criterion"], details["paper"], details["study"]) == ("= 1", "1.0", "bounds")
    assert details["runs"] == "bounds_theory"
    assert told["index_construction"][0] is True
    assert told["index_construction"][2]["verdict"] == "reproduced"
    assert told["number_solved"][:2] == (True, "WARN")
    assert told["number_solved"][2]["verdict"] == "not run"

    again = run(parse_study(THEORY, "bounds.yaml"))
    assert again.success
    assert again.computed == []
    assert verdicts(again.result.all_events) == told


def test_rows_of_other_claims_are_refused_with_a_sentence():
    with pytest.raises(dg.Failure, match=r"claims.csv changed while this run was on; start the run again"):
        claim_results([{"id": "another-claim"}])


def test_a_number_that_is_not_finite_becomes_null():
    with duckdb.connect() as connection:
        row = connection.sql("SELECT 'nan'::DOUBLE AS measured, 'inf'::DOUBLE AS high, 0.5 AS low, 'a' AS id").pl()
    assert json_rows(row.to_dicts()) == [{"measured": None, "high": None, "low": 0.5, "id": "a"}]
