"""What a command line asks for is what is loaded, told and run."""

import subprocess
import sys

import pytest

from pipeline.asked import Asked, parse
from pipeline.studies import StudyError, declared_studies, listed, loaded_studies
from warehouse.store import Store


@pytest.fixture
def declared(tmp_path, monkeypatch, tiny_yaml):
    """A folder of studies with `tiny` (seeds 0 and 1, more seed 7) and `other`, in the environment."""
    folder = tmp_path / "studies"
    folder.mkdir()
    seeded = tiny_yaml.replace("defaults:", "defaults:\n  seeds: [0, 1]\n  more_seeds: [7]", 1)
    (folder / "tiny.yaml").write_text(seeded)
    (folder / "other.yaml").write_text(tiny_yaml.replace("tiny", "other"))
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", str(folder))
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / "store"))
    for name in ("ROPEWALK_STUDIES", "ROPEWALK_ONLY", "ROPEWALK_SEEDS", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def shown(asked: Asked) -> list[str]:
    return sorted(str(replicate) for replicate in asked.replicates())


def loaded() -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    return {study.study: [(e.name, e.seeds) for e in study.experiments] for study in loaded_studies()}


def test_words_become_what_is_asked():
    assert parse(["tiny"]) == Asked("tiny")
    words = ["tiny", "--only", "a", "--only", "b,c", "--seeds", "0, 1", "--dry-run"]
    assert parse(words) == Asked("tiny", ("a", "b", "c"), ("0", "1"), True)


@pytest.mark.parametrize("words", [[], ["results", "--only", "a"], ["tiny_more_seeds", "--seeds", "1"], ["a", "b"]])
def test_words_that_ask_for_nothing_are_one_sentence(words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("python -m pipeline.run: error: ")


def test_a_job_computes_its_seeds_and_more_of_them_where_asked(declared):
    own = [f"tiny_{task}, seed {seed}" for task in ("letter", "number") for seed in (0, 1)]
    assert shown(Asked("tiny")) == own
    assert shown(Asked("tiny_more_seeds")) == sorted([*own, "tiny_letter, seed 7", "tiny_number, seed 7"])
    assert shown(Asked("tiny", ("tiny_letter",), ("1", "7"))) == ["tiny_letter, seed 1", "tiny_letter, seed 7"]
    assert shown(Asked("results")) == []


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked("nothing"), r"no study 'nothing'; declared are .*other.*tiny"),
        (Asked("other_more_seeds"), r"'other' has no more_seeds"),
        (Asked("tiny", ("tiny_words",)), r"no experiment 'tiny_words' here; there are tiny_letter, tiny_number"),
        (Asked("tiny", (), ("3",)), r"seed '3' is declared by none of the experiments; their seeds are 0, 1, 7"),
        (Asked("tiny", (), ("one",)), r"seed 'one' is declared by none"),
    ],
)
def test_what_is_nobody_s_is_one_sentence(declared, asked, sentence):
    with pytest.raises(StudyError, match=sentence):
        asked.replicates()


def test_the_environment_of_a_run_loads_what_was_asked_and_no_more(declared, monkeypatch):
    for name, value in Asked("tiny", ("tiny_letter",), ("7",)).environment.items():
        monkeypatch.setenv(name, value)
    assert loaded() == {"tiny": [("tiny_letter", (7,))]}


def test_some_studies_are_loaded_and_a_faulty_file_elsewhere_stops_none(declared, monkeypatch):
    (declared / "faulty.yaml").write_text("study: faulty\nexperiments: 3\n")
    with pytest.raises(StudyError, match="faulty"):
        declared_studies()
    monkeypatch.setenv("ROPEWALK_STUDIES", "other, tiny")
    assert sorted(loaded()) == ["other", "tiny"]
    monkeypatch.setenv("ROPEWALK_STUDIES", "faulty")
    with pytest.raises(StudyError, match="faulty"):
        loaded_studies()
    assert listed("ROPEWALK_STUDIES") == ("faulty",)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
def test_only_what_is_asked_is_told_and_computed(declared, tmp_path):
    words = ("tiny", "--only", "tiny_letter", "--seeds", "7")
    before = run(*words, "--dry-run")
    assert before.returncode == 0, before.stderr
    assert "0 of 6 stages are in the store; 6 would be computed; nothing tells how long" in before.stdout
    assert not (tmp_path / "store").exists()

    done = run(*words)
    assert done.returncode == 0, done.stderr
    owners = {
        (artifact.manifest["spec"].get("experiment"), artifact.manifest["spec"].get("seed"))
        for artifact in Store(tmp_path / "store").artifacts()
        if artifact.manifest["spec"]
    }
    assert owners == {("tiny_letter", 7)}

    after = run(*words, "--dry-run")
    assert "all 6 stages are in the store; nothing would be computed" in after.stdout
    more = run("tiny", "--dry-run")
    assert "0 of 24 stages are in the store; 24 would be computed, about 0:00:" in more.stdout
    assert "guessed from other experiments" in more.stdout
