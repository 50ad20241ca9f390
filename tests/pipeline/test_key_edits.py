"""Which keys an edit moves, shown on a copy of the tree: what decides a result moves it and what follows, nothing else.

The copy is edited in one place, and a process of its own plans every stage of the study `quick`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PLAN = """
import json
from pipeline.plans import planned
keys = {f"{each.experiment}/{each.stage}": each.key for each in planned() if each.experiment.startswith("quick_")}
print(json.dumps(keys))
"""
Keys = dict[str, str]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for package in ("ops", "assets", "pipeline", "warehouse"):
        shutil.copytree(PROJECT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "pipeline" / "experiments").glob("*.yaml"):
        if path.name != "quick.yaml":
            path.unlink()
    return folder


def planned(tree: Path) -> Keys:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")}
    done = subprocess.run(
        [sys.executable, "-c", PLAN],
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def keys(tree) -> Keys:
    return planned(tree)


def moved(tree: Path, keys: Keys, file: str, old: str, new: str) -> set[str]:
    """The artifacts whose key another text in one place moves; the place must be there once."""
    path = tree / file
    text = path.read_text()
    assert text.count(old) == 1, f"{file} has {text.count(old)} times {old!r}"
    try:
        path.write_text(text.replace(old, new))
        after = planned(tree)
    finally:
        path.write_text(text)
    assert after.keys() == keys.keys()
    return {name for name in keys if after[name] != keys[name]}


def stages(names: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        experiment, stage = name.split("/")
        found.setdefault(experiment, set()).add(stage)
    return found


TELLS_PROTECTS_OR_IS_UNSET = {
    "progress bar": ("ops/training/progress.py", '"█" * filled', '"#" * filled'),
    "lock": ("ops/training/workdir_lock.py", "poll_s: float = 0.5", "poll_s: float = 0.7"),
    "signals": ("ops/training/interruption.py", "logger = logging.getLogger(__name__)", "logger = None"),
    "store": ("warehouse/store.py", "FORSAKEN_S = 86_400.0", "FORSAKEN_S = 90_000.0"),
    "docstring": ("ops/model/rope.py", '"""Rotary position embedding as data', '"""RoPE, as data'),
    "registry": ("ops/tasks/registry.py", "OWN = (", "MORE = 1\nOWN = ("),
    "field of a model": ("ops/spec/model.py", "    n_layers: ", "    new_field: int | None = None\n    n_layers: "),
    "field of training": ("ops/spec/training.py", "    steps: ", "    new_field: float | None = None\n    steps: "),
    "field of a task": ("ops/tasks/number/spec.py", "    n_letters: ", "    new: int | None = None\n    n_letters: "),
    "part of an experiment": (
        "ops/spec/study.py",
        "    mechanism: MechanismSpec | None = None",
        "    mechanism: MechanismSpec | None = None\n    new_part: MechanismSpec | None = None",
    ),
}


@pytest.mark.parametrize("what", TELLS_PROTECTS_OR_IS_UNSET)
def test_what_tells_protects_or_is_unset_moves_no_key(tree, keys, what):
    assert moved(tree, keys, *TELLS_PROTECTS_OR_IS_UNSET[what]) == set()


def test_the_generator_of_a_task_moves_what_draws_from_it_and_no_other_task(tree, keys):
    edit = ("ops/tasks/letter/task.py", "row = np.arange(n_rows)", "row = np.arange(0, n_rows)")
    found = stages(moved(tree, keys, *edit))
    assert set(found) == {"quick_letter", "quick_theory"}  # the theory's inputs are the tasks' own
    assert found["quick_letter"] == {name.split("/")[1] for name in keys if name.startswith("quick_letter/")}


def test_the_optimiser_moves_training_and_what_follows(tree, keys):
    found = moved(tree, keys, "ops/training/optimiser.py", "weight_decay=", "weight_decay=2 * ")
    tasks = ("quick_number", "quick_letter")
    assert set(stages(found)) == set(tasks)
    before = {"dataset", "shortcuts", "answer_distances"}
    for task in tasks:
        own = {name.split("/")[1] for name in keys if name.startswith(f"{task}/")}
        assert stages(found)[task] == own - before


def test_a_score_s_formula_moves_the_stages_whose_tables_hold_scores(tree, keys):
    from assets.registry import STAGES
    from ops.tables.tables import TABLES

    found = moved(tree, keys, "ops/scores/closed_form.py", "x.mul_(0.5).tanh_()", "x.tanh_()")
    hold = {
        stage.name
        for stage in STAGES
        if any({"positional_score", "symbolic_score"} & set(TABLES[name].schema) for name in stage.tables)
    }
    expected = {name for name in keys if name.split("/")[1] in hold}
    assert found == expected != set()
