"""The stages are found in their package, inputs first."""

import subprocess
import sys
from dataclasses import replace

import pytest

from assets.registry import STAGES, StageError, find, inputs_first

MODULE = """
from assets.stage import Computed, Stage

{constant} = Stage(
    name="{name}",
    order={order},
    description="d",
    code=(),
    reads=lambda _: {{}},
    compute=lambda _: Computed(),
    inputs={inputs},
)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package `probe_stages` of one's own, and a function that writes a stage's module into it."""
    package = tmp_path / "probe_stages"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "no_stage.py").write_text("raise ImportError('only modules that declare a stage are imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(module, name="", order=100, inputs=()):
        text = MODULE.format(constant=module.upper(), name=name or module, order=order, inputs=tuple(inputs))
        (package / f"{module}.py").write_text(text)
        return package

    yield write
    for name in [name for name in sys.modules if name.startswith("probe_stages")]:
        del sys.modules[name]


def test_the_order_that_tables_and_pages_rely_on():
    known = ("dataset", "shortcuts", "checkpoints", "accuracy", "head_scores", "ablation", "canonical", "theory")
    assert tuple(stage.name for stage in STAGES if stage.name in known) == known
    assert list(STAGES) == sorted(STAGES, key=lambda stage: stage.order)
    assert len({stage.order for stage in STAGES}) == len(STAGES)


def test_a_module_that_declares_a_stage_is_found_inputs_first_then_by_order(folder):
    folder("late", order=900)
    folder("early", order=300, inputs=("late",))
    folder("between", order=500)
    package = folder("also_between", order=500)
    assert [s.name for s in find("probe_stages", package)] == ["also_between", "between", "late", "early"]


def test_a_stage_has_its_modules_name(folder):
    package = folder("one", name="another")
    with pytest.raises(StageError, match=r"one\.py: declares another; one module declares one stage"):
        find("probe_stages", package)


def test_inputs_that_are_no_stage_or_form_a_circle_are_refused():
    dataset, shortcuts = STAGES[:2]
    with pytest.raises(StageError, match="stage shortcuts needs dataset, which is no stage; they are shortcuts"):
        inputs_first([shortcuts])
    with pytest.raises(StageError, match="dataset, shortcuts need each other in a circle"):
        inputs_first([replace(dataset, inputs=("shortcuts",)), shortcuts])


def test_finding_the_stages_loads_neither_dagster_nor_torch():
    script = "import sys, assets.registry as r; print(len(r.STAGES), {'dagster', 'torch', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(STAGES)), "set()"]
