"""What a path in the environment means, and what is refused in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.studies import StudyError, folders
from warehouse.durable import StoreError
from warehouse.places import place, places
from warehouse.store import Store

LITERAL = ["it's", 'a "b" c', "a $HOME b", "a/$USER", "a~b", "ü 語", "[1] {a} *", "100% #&;", "n" * 200]


@pytest.mark.parametrize("name", LITERAL)
def test_letters_mean_themselves(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / name))
    assert Store.from_environment().root == tmp_path / name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROPEWALK_STORE", name)
    assert Store.from_environment().root == tmp_path / name
    assert list(tmp_path.iterdir()) == []


def test_a_home_sign_means_home_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROPEWALK_STORE", "~/results")
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", f"~/studies{os.pathsep}{os.pathsep}./~/odd")
    assert Store.from_environment().root == tmp_path / "results"
    assert folders()[1:] == [tmp_path / "studies", Path("~/odd").absolute()]


def test_unset_and_empty_are_the_default(tmp_path, monkeypatch):
    for name in ("ROPEWALK_STORE", "ROPEWALK_EXPERIMENTS"):
        monkeypatch.setenv(name, "")
    assert Store.from_environment().root == Path("store").absolute()
    assert places("ROPEWALK_EXPERIMENTS") == []
    monkeypatch.delenv("ROPEWALK_STORE")
    assert place("ROPEWALK_STORE", tmp_path) == tmp_path


REFUSED = {
    "$HOME/results": "no shell replaced $HOME; write the path out",
    "${SCRATCH}": "no shell replaced ${SCRATCH}; write the path out",
    "'/data/results'": "the quotes are part of the path",
    '"~/results"': "the quotes are part of the path",
    "/data/results\r": "take away the line ends",
    "/data/results ": "take away the line ends, control characters and blanks",
    "/data/re\nsults": "take away the line ends",
    "~nobody-of-that-name/x": "~nobody-of-that-name is nobody's home here; write the path out",
    "/data/\udcff": "which is not UTF-8 here",
    "/data/" + "ü" * 128: "a name in /data/",
    "/data/back\\slash": "databases misread the \\ in /data/back\\slash; choose",
    "/data/what?": "databases misread the ? in /data/what?; choose",
    "/data" + "/0123456789" * 50: "has 555 bytes; choose a path of at most 400",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_nobody_can_have_meant_is_one_sentence(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROPEWALK_STORE", text)
    with pytest.raises(StoreError) as caught:
        Store.from_environment()
    assert str(caught.value).startswith("ROPEWALK_STORE")
    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_folder_of_studies_is_a_study_error(monkeypatch):
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", "$HOME/studies")
    with pytest.raises(StudyError, match="no shell replaced"):
        folders()


def test_the_readers_commands_say_it_too(tmp_path):
    for module in ("warehouse.cookbook", "warehouse.verify"):
        done = subprocess.run(
            [sys.executable, "-m", module],
            env=os.environ | {"ROPEWALK_STORE": "$HOME/results"},
            capture_output=True,
            text=True,
        )
        assert done.returncode in (1, 2)
        assert done.stderr == "ROPEWALK_STORE is '$HOME/results', and no shell replaced $HOME; write the path out\n"


@pytest.mark.parametrize(
    ("folder", "said"), [(b"new\nline", "without line ends and control"), (b"latin-\xe9", "which is not UTF-8 here")]
)
@pytest.mark.parametrize("given", [None, "results"])
def test_the_current_folders_name_counts_too(given, folder, said, tmp_path, monkeypatch):
    """A database fails on such a path after everything is computed."""
    work = os.path.join(os.fsencode(tmp_path), folder)
    os.mkdir(work)
    monkeypatch.chdir(os.fsdecode(work))
    if given:
        monkeypatch.setenv("ROPEWALK_STORE", given)
    else:
        monkeypatch.delenv("ROPEWALK_STORE", raising=False)
    with pytest.raises(StoreError, match=f"^ROPEWALK_STORE means .*{said}") as caught:
        Store.from_environment()
    assert "\n" not in str(caught.value)
    assert os.listdir(work) == []
