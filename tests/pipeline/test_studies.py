"""Studies from files: found in several folders, and fifty ways to get one wrong, each told in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import studies
from pipeline.studies import StudyError, declared_studies

GOOD = "study: {study}\ndescription: d\nexperiments:\n  {name}:\n    task: {{name: letter}}\n"
LETTER = "task: {name: letter}"


def body(text: str) -> str:
    return f"study: s\ndescription: d\nexperiments: {{a: {{{text}}}}}\n"


def letter(text: str) -> str:
    return body(f"{LETTER}, {text}")


MALFORMED: dict[str, str | bytes] = {
    "empty": "",
    "comment only": "# nothing\n",
    "a number": "42\n",
    "a list": "- study: s\n",
    "unclosed bracket": "study: [\n",
    "tab indentation": "study: s\n\tdescription: d\n",
    "unclosed quote": 'study: "s\n',
    "two documents": "study: s\n---\nstudy: t\n",
    "python object": "study: !!python/object/apply:os.system ['true']\n",
    "unknown tag": "study: !secret s\n",
    "latin-1": "study: s\ndescription: caf\xe9\n".encode("latin-1"),
    "utf-16": GOOD.format(study="s", name="a").encode("utf-16"),
    "binary": bytes(range(256)),
    "NUL": b"study: s\x00\n",
    "billion laughs": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
    "self reference": "a: &a [*a]\n",
    "merge key": "base: &b {study: s}\n<<: *b\n",
    "deep nesting": "[" * 20_000,
    "deep mappings": "{a: " * 3_000 + "1" + "}" * 3_000,
    "repeated key": "study: s\nstudy: s\n",
    "repeated experiment": "study: s\ndescription: d\nexperiments: {a: {}, a: {}}\n",
    "key is a number": "study: s\ndescription: d\nexperiments: {1: {}}\n",
    "key is a list": "? [a, b]\n: c\n",
    "no study": f"description: d\nexperiments: {{a: {{{LETTER}}}}}\n",
    "no description": f"study: s\nexperiments: {{a: {{{LETTER}}}}}\n",
    "no experiments": "study: s\ndescription: d\n",
    "experiments a list": f"study: s\ndescription: d\nexperiments: [{{{LETTER}}}]\n",
    "experiments empty": "study: s\ndescription: d\nexperiments: {}\n",
    "experiment null": "study: s\ndescription: d\nexperiments: {a: }\n",
    "defaults a list": f"study: s\ndescription: d\ndefaults: [1]\nexperiments: {{a: {{{LETTER}}}}}\n",
    "unknown executor": f"study: s\ndescription: d\nexecutor: cloud\nexperiments: {{a: {{{LETTER}}}}}\n",
    "unknown top field": f"study: s\ndescription: d\nnotes: n\nexperiments: {{a: {{{LETTER}}}}}\n",
    "bad study name": f"study: My Study\ndescription: d\nexperiments: {{a: {{{LETTER}}}}}\n",
    "path as a study name": f"study: ../s\ndescription: d\nexperiments: {{a: {{{LETTER}}}}}\n",
    "reserved study name": f"study: report\ndescription: d\nexperiments: {{a: {{{LETTER}}}}}\n",
    "bad experiment name": f"study: s\ndescription: d\nexperiments: {{A-1: {{{LETTER}}}}}\n",
    "reserved experiment name": f"study: s\ndescription: d\nexperiments: {{results: {{{LETTER}}}}}\n",
    "no task": body("seeds: [0]"),
    "unknown task": body("task: {name: words}"),
    "task without name": body("task: {target_window: 8}"),
    "target window 0": body("task: {name: number, target_window: 0}"),
    "window is a date": body("task: {name: number, target_window: 2024-01-01}"),
    "hops longer than the window": body("task: {name: number, pre_target_window: 2, hops: [1, 4]}"),
    "no hops": body("task: {name: number, hops: []}"),
    "hops is text": body("task: {name: number, hops: 1-4}"),
    "too few letters": body("task: {name: letter, n_letters: 3}"),
    "negative size": body("task: {name: letter, n_train: -1}"),
    "a huge number": body("task: {name: letter, n_train: " + "9" * 5_000 + "}"),
    "unknown model field": letter("model: {layers: 3}"),
    "fractional layers": letter("model: {n_layers: 2.5}"),
    "boolean width": letter("model: {width: yes}"),
    "unknown frequency": letter("model: {frequencies_rotating: [1, 65]}"),
    "learning rate is NaN": letter("training: {learning_rate: .nan}"),
    "learning rate is infinite": letter("training: {learning_rate: .inf}"),
    "late checkpoint": letter("training: {checkpoint_steps: [9999]}"),
    "warm-up longer than the run": letter("training: {steps: 10}"),
    "unknown precision": letter("training: {precision: fp8}"),
    "no seeds": letter("seeds: []"),
    "a seed twice": letter("seeds: [1, 1]"),
    "a negative seed": letter("seeds: [-1]"),
    "no tau": letter("scoring: {taus: []}"),
    "tau 0": letter("scoring: {taus: [0]}"),
    "more inputs than sequences": letter("scoring: {n_inputs: 1000000}"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_gets_one_sentence(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = MALFORMED[kind]
    Path("mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StudyError) as caught:
        declared_studies([Path()])
    message = caught.value.format_message()
    assert message.startswith("mine.yaml")
    assert "\n" not in message
    assert 20 < len(message) < 400
    assert caught.value.exit_code == 1


def test_studies_of_all_folders_are_found(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.yaml").write_text(GOOD.format(study=folder, name=f"letter_{folder}"))
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")]))
    names = [study.study for study in declared_studies()]
    assert names[-2:] == ["one", "two"]
    assert {"quick", "paper"} <= set(names[:-2])


def test_names_are_unique_over_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(GOOD.format(study="one", name="mine"))
    Path("b.yaml").write_text(GOOD.format(study="two", name="mine"))
    with pytest.raises(StudyError, match=r"^b.yaml: experiments.mine: .* a.yaml already; rename one"):
        declared_studies([Path()])
    Path("b.yaml").write_text(GOOD.format(study="one", name="yours"))
    with pytest.raises(StudyError, match=r"^b.yaml: study: .* a.yaml already; rename one"):
        declared_studies([Path()])


def test_a_missing_folder_and_an_unreadable_file_are_named(tmp_path):
    with pytest.raises(StudyError, match=r"nowhere: no such folder; correct ROPEWALK_EXPERIMENTS"):
        declared_studies([tmp_path / "nowhere"])
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(StudyError, match=r"folder.yaml: cannot be read"):
        declared_studies([tmp_path])


def test_the_digest_follows_content_and_not_layout(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.format(study="one", name="mine"))
    before = studies.digest(declared_studies([tmp_path]))
    path.write_text("# a comment\n" + path.read_text())
    assert studies.digest(declared_studies([tmp_path])) == before
    path.write_text(path.read_text() + "    seeds: [3]\n")
    assert studies.digest(declared_studies([tmp_path])) != before


SLOW_TO_LOAD = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("utf-16", "billion laughs")]


@pytest.mark.parametrize("kind", ["target window 0", *SLOW_TO_LOAD])
def test_the_command_line_shows_the_sentence_alone(kind, tmp_path):
    text = MALFORMED[kind]
    (tmp_path / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = os.environ | {
        "DAGSTER_HOME": str(home),
        "ROPEWALK_STORE": str(tmp_path / "store"),
        "ROPEWALK_EXPERIMENTS": str(tmp_path),
    }
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "job", "execute", "-m", "pipeline.definitions"]
    done = subprocess.run([*command, "-j", "quick"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"Error: {tmp_path / 'mine.yaml'}")
    assert not (tmp_path / "store").exists()
