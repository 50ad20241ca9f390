"""A task outside the project, named by $ROPEWALK_TASKS: it goes through the stages, and no other task's key moves."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

from assets.registry import STAGES
from assets.stage import Replicate, plan
from ops.tasks.registry import known_tasks, parse_study
from pipeline.studies import StudyError, declared_studies, declared_tasks
from warehouse.code import modules_of

OUTSIDE = Path(__file__).parents[1] / "outside_task" / "complement"
STUDY = """
study: outside
description: A task from outside, too small to learn anything.
executor: in_process
defaults:
  task: {target_window: 5, pre_target_window: 4, hops: [1, 2], n_train: 640, n_validation: 64, n_test: 128}
  model: {n_layers: 2, width: 16, dropout: 0.0}
  training: {steps: 4, warmup_steps: 2, batch_size: 16, checkpoint_every: 2, learning_rate: 1e-3, log_every: 2}
  accuracy: {n_test: 64}
  scoring: {n_inputs: 8, taus: [1e-4, 1e-2]}
  frequency_use: {n_inputs: 8}
  mixed_lengths: {shortest: 10, longest: 24}
  mechanism: {n_flow: 16, n_flow_examples: 2, n_patched: 16, n_plane_examples: 2, n_exclusion: 4, n_discrepancy: 8,
    discrepancy_lengths: [20]}
  length: {lengths: [10, 20, 40], n_prefixes: 2, n_sequences: 8, n_head_sequences: 4,
    active: {lengths: [10, 30], n_prefixes: 2, n_sequences: 4}}
experiments:
  outside_complement: {task: {name: complement}}
"""
KEYS = """
import json
from assets.registry import STAGES
from assets.stage import Replicate, plan
from pipeline.plans import replicates
from pipeline.studies import declared_studies
studies = [study for study in declared_studies() if study.study in ("quick", "outside")]
print(json.dumps({str(replicate): plan(replicate, STAGES) for replicate in replicates(studies)}))
"""


@pytest.fixture
def outside(tmp_path, monkeypatch) -> Path:
    """A folder outside the project with the task's package, from which Python imports and $ROPEWALK_TASKS names it."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(OUTSIDE, folder / "complement", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "outside.yaml").write_text(STUDY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(Path.cwd())]))
    monkeypatch.setenv("ROPEWALK_TASKS", "complement")
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", str(tmp_path / "studies"))
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return folder


def keys() -> dict[str, dict[str, str]]:
    """Every key of two studies' replicates, as a process of its own plans them."""
    done = subprocess.run([sys.executable, "-c", KEYS], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


TABLES = (
    "training_log", "accuracy", "head_scores", "frequency_use", "shortcut_accuracy", "answer_distances",
    "flow_agreement",
    "information_flow", "qk_plane", "discrepancy", "length_accuracy",
)  # fmt: skip


def test_it_goes_through_every_stage(outside, run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(outside))
    used: set[tuple[str, str]] = set()

    def imported(name: str):
        frame = sys._getframe()
        while frame := frame.f_back:
            stage = frame.f_globals["__name__"].removeprefix("assets.")
            if frame.f_code.co_name == "compute" and stage in {each.name for each in STAGES}:
                used.add((stage, name))
        return import_module(name)

    monkeypatch.setattr("ops.tasks.task.import_module", imported)
    study = parse_study(STUDY, "outside.yaml", declared_tasks())
    ran = run(study)
    assert ran.success
    # what a stage asks of the task while it computes is in its key
    assert {stage for stage, _ in used} >= {"dataset", "checkpoints", "shortcuts", "value_patching", "length"}
    covered = {
        stage.name: modules_of(stage.modules(study.experiments[0]))
        for stage in STAGES
        if stage.applies(study.experiments[0])
    }
    assert not {(stage, module) for stage, module in used if module not in covered[stage]}
    planned = plan(Replicate(study.experiments[0], 0), STAGES)
    assert {"dataset", "checkpoints", "head_scores", "value_patching", "length"} <= set(planned)
    assert {key: ran.metadata[f"outside_complement/{key}_s0"]["key"] for key in planned} == planned
    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        for table in TABLES:
            [(n,)] = connection.sql(f"SELECT count(*) FROM {table} WHERE experiment = 'outside_complement'").fetchall()
            assert n > 0, table
        kinds = connection.sql("SELECT DISTINCT token_kind FROM qk_plane ORDER BY ALL").fetchall()
        assert kinds == [("complement",), ("letter",)]
        assert connection.sql("SELECT task FROM experiments").fetchall() == [("complement",)]
    assert "outside_complement" in (tmp_path / "store" / "report" / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_step_processes_import_it(outside, tmp_path):
    (tmp_path / "studies" / "outside.yaml").write_text(STUDY.replace("in_process", "multiprocess"))
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.run", "outside"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "outside_complement" in done.stdout


def test_no_key_of_the_others_moves_and_its_own_follow_its_files(outside, monkeypatch):
    with_it = keys()
    own = with_it.pop("outside_complement, seed 0")
    monkeypatch.delenv("ROPEWALK_TASKS")
    (outside.parent / "studies" / "outside.yaml").unlink()
    assert keys() == with_it

    monkeypatch.setenv("ROPEWALK_TASKS", "complement")
    (outside.parent / "studies" / "outside.yaml").write_text(STUDY)

    def moved(file: str, old: str, new: str) -> set[str]:
        path = outside / "complement" / file
        before = path.read_text()
        assert old in before
        path.write_text(before.replace(old, new))
        after = keys()
        path.write_text(before)
        changed = after.pop("outside_complement, seed 0")
        assert after == with_it
        return {stage for stage in own if own[stage] != changed[stage]}

    assert moved("task.py", "rng.integers(0, task.n_letters,", "rng.integers(0, 2,") == set(own)
    assert moved("mechanism.py", "Another letter.", "Some other letter.") == set()
    assert moved("mechanism.py", "first + another", "another") == {"information_flow", "value_patching", "qk_plane"}
    assert moved("shortcuts.py", "there == positions", "there != positions") == {"shortcuts"}


PAIR = """
study: pair
description: Nothing is run.
defaults: {mechanism: {}, length: {}, mixed_lengths: {shortest: 17, longest: 64}}
experiments:
  a_number: {task: {name: number}}
  a_letter: {task: {name: letter}}
  a_letter_matched: {task: {name: letter_matched}}
"""


def test_a_key_covers_its_own_task_and_neither_another_nor_the_registry():
    packages = {spec.package() for spec in known_tasks().values()}
    for experiment in parse_study(PAIR, "pair.yaml").experiments:
        own = experiment.task.package()
        applied = [stage for stage in STAGES if stage.applies(experiment)]
        assert {"dataset", "checkpoints", "length", "value_patching", "discrepancy"} <= {s.name for s in applied}
        covered = {module for stage in applied for module in modules_of(stage.modules(experiment))}
        assert f"{own}.task" in covered
        assert f"{own}.lengthening" in covered
        assert not {module for module in covered for other in packages - {own} if f"{module}.".startswith(f"{other}.")}
        assert "ops.tasks.registry" not in covered
        assert "ops.spec.study" not in covered


def test_a_task_without_a_mechanism_lacks_the_stages_that_need_one(outside, monkeypatch):
    (outside / "complement" / "mechanism.py").unlink()
    (outside / "complement" / "lengthening.py").unlink()
    shutil.copytree(outside / "complement", outside / "bare")
    shutil.rmtree(outside / "complement")
    for path in (outside / "bare").glob("*.py"):
        path.write_text(path.read_text().replace("complement", "bare"))
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.setenv("ROPEWALK_TASKS", "bare")
    text = STUDY.replace("complement", "bare")
    (outside.parent / "studies" / "outside.yaml").write_text(text)
    with pytest.raises(
        StudyError, match=r"outside_bare: mixed_lengths needs longer inputs, but the bare task has none"
    ):
        declared_studies()
    short = "\n".join(line for line in text.splitlines() if "length" not in line and "active" not in line)
    (outside.parent / "studies" / "outside.yaml").write_text(short.replace("n_discrepancy: 8,", "n_discrepancy: 8}"))
    [study] = [study for study in declared_studies() if study.study == "outside"]
    planned = plan(Replicate(study.experiments[0], 0), STAGES)
    assert set(planned) == {
        "dataset", "shortcuts", "answer_distances", "checkpoints", "accuracy", "head_scores", "frequency_use",
        "exclusion",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (None, "the task package 'a_package' has no spec.py"),
        ({"task.py": ""}, "the task package 'a_package' has no spec.py"),
        ({"spec.py": "", "task.py": ""}, "a_package.spec must have exactly one class on top of ops.spec.task.TaskSpec"),
        (
            {
                "spec.py": "from typing import Literal\nfrom ops.spec.task import TaskSpec\n"
                "class A(TaskSpec):\n    name: Literal['letter'] = 'letter'\n",
                "task.py": "",
            },
            "the task 'letter' of a_package is declared in ops.tasks.letter.spec already; give it another name",
        ),
        (
            {
                "spec.py": "from typing import Literal\nfrom ops.spec.task import TaskSpec\n"
                "class A(TaskSpec):\n    name: Literal['fifth'] = 'fifth'\n",
            },
            "the task package 'a_package' has no task.py",
        ),
    ],
)
def test_what_is_no_task_gets_one_sentence(files, sentence, tmp_path, monkeypatch, request):
    name = f"a_package_{abs(hash(request.node.name))}"
    (tmp_path / name).mkdir()
    for file, text in ({} if files is None else {"__init__.py": "", **files}).items():
        (tmp_path / name / file).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ROPEWALK_TASKS", name)
    with pytest.raises(StudyError) as caught:
        declared_tasks()
    message = str(caught.value.message)
    assert message.startswith(f"ROPEWALK_TASKS: {sentence.replace('a_package', name)}")
    assert "\n" not in message


def test_a_package_that_is_not_there_gets_one_sentence(monkeypatch):
    monkeypatch.setenv("ROPEWALK_TASKS", "number, no_such_package.at_all")
    with pytest.raises(StudyError, match=r"^ROPEWALK_TASKS: the task package 'number' .*correct its name$"):
        declared_tasks()
