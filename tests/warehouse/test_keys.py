"""Keys: what changes one and what does not, in a copied project tree with real processes."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.code import CodeError, definitions, modules_of
from warehouse.keys import stage_key

PROJECT = Path(__file__).parents[2]

ROOT = '''
"""The root's docstring."""
from typing import TYPE_CHECKING

from ops.probe.leaf import double

if TYPE_CHECKING:
    from ops.probe.only_for_types import Thing


def compute(x: "Thing") -> int:
    """Compute."""
    # a comment
    from ops.probe.lazily import late

    return double(x) + late(x)
'''
FILES = {
    "__init__.py": "from ops.probe.unrelated import nothing\n",
    "root.py": ROOT,
    "leaf.py": "import json\n\n\ndef double(x):\n    return json.loads(str(2 * x))\n",
    "lazily.py": "from .relative import early\n\n\ndef late(x):\n    return early(x)\n",
    "relative/__init__.py": "from .inner import early\n",
    "relative/inner.py": "def early(x):\n    return x\n",
    "only_for_types.py": "class Thing: ...\n",
    "unrelated.py": "nothing = 0\n",
}
PRINT_KEY = (
    "import sys, json; from warehouse.keys import stage_key; "
    "print(stage_key('probe', json.loads(sys.argv[1]), json.loads(sys.argv[2]), ['ops.probe.root'])); "
    "assert not {'torch', 'ops.probe'} & set(sys.modules)"
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the project's ops and warehouse, with a small stage `ops.probe`."""
    folder = tmp_path_factory.mktemp("project")
    for package in ("ops", "warehouse"):
        shutil.copytree(PROJECT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        path = folder / "ops" / "probe" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def key_in(tree: Path, reads=None, inputs=None, cwd: Path | None = None, **environment: str) -> str:
    arguments = [json.dumps(reads or {"steps": 10, "rate": 0.1}), json.dumps(inputs or {"dataset": "ab"})]
    done = subprocess.run(
        [sys.executable, "-c", PRINT_KEY, *arguments],
        cwd=cwd or tree,
        env=os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def key(tree) -> str:
    return key_in(tree)


def edited(tree: Path, name: str, old: str, new: str) -> str:
    """The key after one edit, which is undone."""
    path = tree / "ops" / "probe" / name
    before = path.read_text()
    assert old in before
    try:
        path.write_text(before.replace(old, new))
        return key_in(tree)
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("root.py", "+ late(x)", "- late(x)"),
        ("leaf.py", "2 * x", "3 * x"),
        ("relative/inner.py", "return x", "return -x"),
    ],
    ids=["root", "import", "lazy relative import"],
)
def test_an_edited_function_changes_the_key(tree, key, name, old, new):
    assert edited(tree, name, old, new) != key


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("root.py", "# a comment", "#  another comment\n"),
        ("root.py", '"""Compute."""', '"""Say what it computes,\n\n    at length.\n    """'),
        ("leaf.py", "return json.loads(str(2 * x))", "return json.loads(\n        str(2*x),\n    )"),
        ("unrelated.py", "nothing = 0", "nothing = 1"),
        ("only_for_types.py", "...", "x: int"),
    ],
    ids=["comment", "docstring", "formatting", "package __init__ not imported by name", "type checking only"],
)
def test_an_edit_that_computes_nothing_else_keeps_the_key(tree, key, name, old, new):
    assert edited(tree, name, old, new) == key


def test_place_and_hash_seed_keep_the_key(tree, key, tmp_path):
    moved = tmp_path / "another machine"
    shutil.copytree(tree, moved)
    assert key_in(moved, cwd=Path("/"), PYTHONHASHSEED="7", LANG="C", TZ="Asia/Tokyo") == key


def test_rewriting_every_file_without_comments_keeps_the_hash_of_everything(tree, tmp_path):
    rewritten = tmp_path / "rewritten"
    shutil.copytree(tree, rewritten)
    for path in rewritten.rglob("*.py"):
        path.write_text("# rewritten\n" + ast.unparse(ast.parse(path.read_text())))
    roots = [".".join(path.relative_to(tree).with_suffix("").parts) for path in sorted(tree.glob("ops/**/*.py"))]
    roots = [root.removesuffix(".__init__") for root in roots]
    script = "import sys; from warehouse.code import definitions; print(dict(definitions(sys.argv[1:])))"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script, *roots], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        for folder in (tree, rewritten)
    }
    assert len(roots) > 30
    assert len(hashes) == 1


def test_a_spec_field_and_an_input_change_the_key(tree, key):
    keys = {
        key,
        key_in(tree, reads={"steps": 11, "rate": 0.1}),
        key_in(tree, inputs={"dataset": "ac"}),
        key_in(tree, reads={"rate": 0.1}),
    }
    assert len(keys) == 4
    assert key_in(tree, reads={"rate": 0.1, "steps": 10}) == key


def test_the_closure_follows_imports_and_stops_at_what_is_not_read():
    covered = modules_of(["ops.spec.training"])
    assert covered == ("ops.spec.part", "ops.spec.training")
    assert "ops.spec.study" not in covered
    assert definitions(["ops.spec.training"]) != definitions(["ops.spec.task"])
    assert definitions(["ops.spec.task", "ops.spec.model"]) == definitions(["ops.spec.model", "ops.spec.task"])


def test_stage_names_and_roots_are_part_of_the_key():
    assert len({stage_key(s, {}, {}, [c]) for s in "ab" for c in ("ops.spec.training", "ops.spec.model")}) == 4


@pytest.mark.parametrize("root", ["ops.no_such_module", "numpy", "ops.spec.model.ModelSpec", "ops.spec.model::NoSuch"])
def test_an_unknown_root_is_refused(root):
    with pytest.raises(CodeError, match=re.escape(root)):
        definitions([root])


def test_values_that_are_not_json_are_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        stage_key("stage", {"rate": float("nan")}, {}, ["ops.spec.task"])
    with pytest.raises(TypeError):
        stage_key("stage", {"path": Path()}, {}, ["ops.spec.task"])


def test_code_edited_after_it_was_hashed_is_refused(tree):
    script = (
        "import pathlib; from warehouse.code import CodeError, definitions, refuse_edited_code; "
        "path = pathlib.Path('ops/probe/leaf.py'); text = path.read_text(); definitions(['ops.probe.root']); "
        "path.write_text('# a comment\\n' + text); refuse_edited_code(['ops.probe.root']); "
        "path.write_text(text.replace('2 * x', '5 * x'))\n"
        "try: refuse_edited_code(['ops.probe.root'])\n"
        "except CodeError as error: print(error)\n"
        "finally: path.write_text(text)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tree, capture_output=True, text=True, check=True)
    assert "leaf.py: edited after this run began; start the run again" in done.stdout
