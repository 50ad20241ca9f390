"""Dagster's home: ours gets settings, another's is used as it is, and a path that cannot serve is one sentence."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.instance import SETTINGS, prepare_instance
from warehouse.durable import StoreError

ROOT = Path(__file__).parents[2]


def stamps(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of every file of a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def lab(tmp_path, monkeypatch) -> Path:
    """$DAGSTER_HOME of somebody else, with settings of their own, records elsewhere."""
    home = tmp_path / "lab"
    home.mkdir()
    base = tmp_path / "records"
    (home / "dagster.yaml").write_text(f"run_retries: {{enabled: true}}\nstorage: {{sqlite: {{base_dir: {base}}}}}\n")
    os.utime(home / "dagster.yaml", (1, 1))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


def test_a_home_with_its_own_settings_is_used_as_it_is(lab, tmp_path):
    before = stamps(lab)
    assert prepare_instance(tmp_path / "store") == lab
    assert stamps(lab) == before
    assert (tmp_path / "records").is_dir()
    assert not (tmp_path / "store" / "dagster").exists()


def test_make_leaves_a_home_alone_wherever_the_clone_lies(lab, tmp_path):
    """make itself, with a stand-in for the environment that says how it was called."""
    clone = tmp_path / 'it\'s a "clone" $HOME ü'
    (clone / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", clone)
    for name in ("requirements.lock", "pyproject.toml", ".venv/installed"):
        (clone / name).touch()
    python = clone / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@ | $ROPEWALK_STORE | $DAGSTER_HOME"\n')
    python.chmod(0o755)
    before, files = stamps(lab), sorted(clone.rglob("*"))
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    for target, called in {"run": "-m pipeline.run quick", "ui": "-m pipeline.ui"}.items():
        for store in ("~/a b", "$HOME/'x'", '/n"o', ""):
            environment = outside | {"ROPEWALK_STORE": store, "DAGSTER_HOME": str(lab)}
            done = subprocess.run(["make", target], cwd=clone, env=environment, capture_output=True, text=True)
            assert (done.stdout, done.stderr) == (f"{called} | {store} | {lab}\n", "")
    assert stamps(lab) == before
    assert sorted(clone.rglob("*")) == files


@pytest.mark.parametrize("place", ["home", "store/home"])
def test_a_home_that_holds_anything_gets_no_file_of_settings(place, tmp_path, monkeypatch):
    home = tmp_path / place
    home.mkdir(parents=True)
    (home / "history").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    prepare_instance(tmp_path / "store")
    assert not (home / "dagster.yaml").exists()


def test_a_new_or_empty_home_gets_ours(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/er"):
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / name))
        prepare_instance(tmp_path / "store")
        assert (tmp_path / name / "dagster.yaml").read_bytes() == SETTINGS.read_bytes()


def test_a_home_that_dagster_cannot_use_is_one_sentence(lab, tmp_path):
    (lab / "dagster.yaml").write_text("no_such_setting: 1\n")
    with pytest.raises(StoreError) as caught:
        prepare_instance(tmp_path / "store")
    assert str(caught.value).startswith(f"Dagster cannot use {lab} (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "part"), [("what?", "?"), ("a%20b", "%20")])
def test_a_path_that_databases_misread_is_refused_before_anything_is_written(name, part, tmp_path, monkeypatch):
    """They would write beside the store: Dagster's into a folder `a b`, DuckDB's log into `what.wal?`."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    with pytest.raises(StoreError, match=f"misreads? the {re.escape(part)} in "):
        prepare_instance(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["it's", 'a "b"', "$HOME ~", "ü 語", "[1] {a}*", "100% #&;", "n" * 200])
def test_any_other_path_will_do(name, tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    prepare_instance(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / name / "dagster")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file", "a file or link stands there already; choose another path"),
        ("file/below", "a part of the path is no folder; choose another path"),
        ("nowhere", "a file or link stands there already; choose another path"),
        ("circle/below", "a part of the path is a link to itself; choose another path"),
    ],
)
@pytest.mark.parametrize("variable", ["ROPEWALK_STORE", "DAGSTER_HOME"])
def test_a_place_that_can_be_no_folder_is_one_sentence(variable, name, said, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "unmounted")
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / name) if variable == "DAGSTER_HOME" else "")
    with pytest.raises(StoreError, match=rf"; set {variable}: {said}"):
        prepare_instance(tmp_path / (name if variable == "ROPEWALK_STORE" else "store"))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_part_of_the_store_that_is_a_link_to_nothing(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "artifacts").symlink_to(tmp_path / "unmounted")
    with pytest.raises(StoreError, match=r"artifacts is a link to .*unmounted, which is no folder; mount it"):
        prepare_instance(tmp_path / "store")
