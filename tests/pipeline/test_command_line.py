"""The commands a person types, in processes of their own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from assets.registry import STAGES
from assets.stage import Replicate
from pipeline.run import Ran, measured, prepare_instance, table, verdicts
from warehouse.store import Store

DAGSTER = [sys.executable, "-W", "ignore", "-m", "dagster", "job", "execute", "-m", "pipeline.definitions", "-j"]


@pytest.fixture
def environment(tmp_path, tiny_yaml) -> dict[str, str]:
    """Variables under which the commands find a tiny study, a store and a quiet Dagster home."""
    home = tmp_path / "store" / "dagster"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text(Path("pipeline/dagster.yaml").read_text())
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.yaml").write_text(tiny_yaml)
    return os.environ | {
        "DAGSTER_HOME": str(home),
        "ROPEWALK_STORE": str(tmp_path / "store"),
        "ROPEWALK_EXPERIMENTS": str(tmp_path / "studies"),
        "OMP_NUM_THREADS": "1",
    }


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(900)
def test_two_runs_at_once_share_the_work_and_a_third_computes_nothing(environment, tmp_path):
    # A home each: Dagster 1.13 itself fails when two processes create the tables of one new home ("table runs exists").
    homes = [environment["DAGSTER_HOME"], str(tmp_path / "second_home")]
    shutil.copytree(*homes)
    both = [start([*DAGSTER, "tiny"], environment | {"DAGSTER_HOME": home}) for home in homes]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said[0][1] + said[1][1]
    store = Store(tmp_path / "store")
    stages = [artifact.stage for artifact in store.artifacts()]
    for stage in ("dataset", "shortcuts", "checkpoints", "accuracy", "head_scores", "frequency_use"):
        assert stages.count(stage) == 2
        assert sum(err.count(f"{stage} of tiny_number, seed 0: computing") for _, err in said) == 1

    without = {name: value for name, value in environment.items() if name != "DAGSTER_HOME"}
    third = start([sys.executable, "-m", "pipeline.run", "tiny"], without)
    out, err = third.communicate()
    assert third.returncode == 0, err
    lines = out.strip().splitlines()
    assert lines[-1] == str(tmp_path / "store" / "report" / "index.html")
    assert lines[-2].startswith("tiny: everything was in the store, nothing was computed")
    assert re.fullmatch(r"claims: \d+ reproduced, \d+ not reproduced.*, \d+ not run", lines[-3])
    assert lines[0].split()[:2] == ["experiment", "seed"]
    assert [line.split()[0] for line in lines[1:3]] == ["tiny_letter", "tiny_number"]
    assert all(" hit " in line for line in lines[1:3])
    assert "Traceback" not in err


@pytest.mark.parametrize("module", ["pipeline.run", "pipeline.ui"])
def test_ctrl_c_while_a_command_starts_is_one_line(environment, module):
    """The signal comes at the import of Dagster, which takes long."""
    program = (
        "import os, runpy, signal, sys\n"
        "class Began:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'dagster': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Began())\n"
        "sys.argv[1:] = ['tiny']\n"
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)\n"
    )
    done = start([sys.executable, "-c", program], environment)
    out, err = done.communicate()
    assert (done.returncode, out, err) == (130, "", "stopped by SIGINT; what was finished is kept\n")


def test_dagster_gets_a_home_in_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_instance(tmp_path / "store")
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "store" / "dagster")
    assert (tmp_path / "store" / "dagster" / "dagster.yaml").read_text() == Path("pipeline/dagster.yaml").read_text()


def test_a_store_that_is_a_file_is_one_sentence_before_anything_runs(environment, tmp_path):
    (tmp_path / "file").write_text("kept")
    wrong = environment | {"ROPEWALK_STORE": str(tmp_path / "file")}
    done = start([sys.executable, "-m", "pipeline.run", "tiny"], wrong)
    out, err = done.communicate()
    assert (done.returncode, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"Error: cannot keep results in {tmp_path / 'file'}; set ROPEWALK_STORE: ")
    assert (tmp_path / "file").read_text() == "kept"


def test_an_unknown_study_is_named(environment):
    done = start([sys.executable, "-m", "pipeline.run", "nonesuch"], environment)
    _, err = done.communicate()
    assert done.returncode == 1
    assert err.count("\n") == 1
    assert err.startswith("Error: there is no study 'nonesuch'; declared are ")


def test_a_wrong_study_is_one_sentence_and_nothing_runs(environment, tmp_path):
    wrong = tmp_path / "studies" / "wrong.yaml"
    wrong.write_text("study: s\ndescription: d\nexperiments: {a: {task: {name: number, target_window: 0}}}\n")
    done = start([sys.executable, "-m", "pipeline.run", "results"], environment)
    out, err = done.communicate()
    assert (done.returncode, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith(f"Error: {wrong}: experiments.a.task.target_window: ")
    assert not (tmp_path / "store" / "artifacts").exists()


def test_the_table_says_what_did_not_finish(tiny):
    replicates = [Replicate(experiment, 0) for experiment in tiny.experiments]
    due = sum(stage.applies(tiny.experiments[0]) for stage in STAGES)
    did = {str(replicates[0]): Ran(due, 0, 1.0), str(replicates[1]): Ran(0, 1, 2.5)}
    found = {
        ("tiny_letter", 0): {"accuracy_by_hop": "1: 0.990", "n_positional": 0, "n_symbolic": 2},
    }
    lines = table(replicates, did, found).splitlines()
    assert lines[1].split() == ["tiny_letter", "0", "1:", "0.990", "0", "2", "hit", "1.0"]
    assert f"NOT FINISHED ({due - 1} of {due} stages missing)" in lines[2]


def test_no_warehouse_means_no_rows(tmp_path):
    assert measured(tmp_path / "warehouse.duckdb") == {}
    assert verdicts(tmp_path / "warehouse.duckdb") == "claims: not decided, there is no warehouse yet"


def test_claims_that_are_not_reproduced_are_named(tmp_path):
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute("CREATE TABLE claims (id VARCHAR, verdict VARCHAR)")
        connection.execute(
            "INSERT INTO claims VALUES ('a', 'reproduced'), ('b', 'not reproduced'), ('c', 'reproduced')"
        )
    assert verdicts(tmp_path / "warehouse.duckdb") == "claims: 2 reproduced, 1 not reproduced (b), 0 not run"
