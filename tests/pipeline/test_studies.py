"""Studies from files: found in several folders, and fifty ways to get one wrong, each told in one sentence."""

import keyword
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets.builder import StoreResource
from pipeline import studies
from pipeline.factory import OVER_ALL, build_assets
from pipeline.jobs import build_jobs
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


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(studies.LARGEST + 1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "cannot be read"),
        (os.mkfifo, "it is no file"),
        (dangling, "No such file"),
        (circle, "symbolic links"),
        (lambda path: path.symlink_to("/dev/zero"), "it is no file"),
        (sparse, "4,000,001 bytes"),
        (lambda path: path.write_text("a: [\n"), "line 2"),
    ],
)
def test_what_is_no_study_blocks_with_one_sentence_that_names_it(make, words, tmp_path):
    (tmp_path / "good.yaml").write_text(GOOD.format(study="one", name="mine"))
    make(tmp_path / "odd\n\udcff.yaml")
    with pytest.raises(StudyError, match=words) as caught:
        declared_studies([tmp_path])
    message = caught.value.format_message()
    assert message.startswith(f"{tmp_path}/odd\\n\\udcff.yaml")
    assert "\n" not in message
    assert len(message) < 400


def test_what_editors_and_systems_leave_in_a_folder_is_no_study(tmp_path):
    (tmp_path / "good.yaml").write_text(GOOD.format(study="one", name="mine"))
    (tmp_path / "LOUD.YML").write_text(GOOD.format(study="two", name="yours"))
    (tmp_path / "._good.yaml").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        \xb0\xff")
    (tmp_path / ".#good.yaml").symlink_to("someone@host.1234:1700000000")
    os.mkfifo(tmp_path / ".pipe.yaml")
    (tmp_path / ".cache.yaml").mkdir()
    for name in (".good.yaml", "~$good.yaml", "#good.yaml", "#good.yaml#", "good.yaml~", "good.yaml.swp", "good.txt"):
        (tmp_path / name).write_text((tmp_path / "good.yaml").read_text())
    assert [study.study for study in declared_studies([tmp_path])] == ["two", "one"]


def test_a_folder_that_is_named_twice_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "a.yaml").write_text(GOOD.format(study="one", name="mine"))
    (tmp_path / "link").symlink_to(tmp_path)
    listed = os.pathsep.join([str(tmp_path), f"{tmp_path}/", str(tmp_path / "link"), str(studies.OWN)])
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", listed)
    names = [study.study for study in declared_studies()]
    assert names.count("one") == names.count("quick") == 1


@pytest.mark.parametrize(("folder", "words"), [("~nobody_here/x", "no such folder"), ("f" * 300, "too long")])
def test_a_folder_that_cannot_be_read_is_one_sentence(folder, words, monkeypatch):
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", folder)
    with pytest.raises(StudyError, match=rf"^{folder[:9]}.*{words}.*correct.*ROPEWALK_EXPERIMENTS$"):
        declared_studies()


DAGSTERS = ["config", "context", "conf", "meta", "dict", "arg_dict", "int", "str", "float", "bool", "input", "output"]


@pytest.mark.parametrize("name", [*DAGSTERS, "type", *(word for word in keyword.kwlist if word.islower())])
def test_a_study_cannot_have_a_name_that_dagster_keeps(name, tmp_path):
    (tmp_path / "mine.yaml").write_text(GOOD.format(study=f"'{name}'", name="a"))
    with pytest.raises(StudyError, match=rf"mine.yaml: study: '{name}' is a word that Dagster .* e.g. {name}_study$"):
        declared_studies([tmp_path])


@pytest.mark.parametrize("name", [*OVER_ALL, "results", "a__b", "a_more_seeds"])
def test_a_study_cannot_have_a_name_that_the_pipeline_keeps(name, tmp_path):
    (tmp_path / "mine.yaml").write_text(GOOD.format(study=name, name="a"))
    with pytest.raises(StudyError, match=rf"mine.yaml: study: '{name}' is the pipeline's own name; choose another"):
        declared_studies([tmp_path])


def test_whatever_name_is_accepted_dagster_loads(tmp_path):
    longest = "s" * studies.LONGEST_STUDY
    for i, name in enumerate(["match", "job", "ops", "all", "null", "default", longest]):
        (tmp_path / f"{i}.yaml").write_text(GOOD.format(study=f"'{name}'", name=f"e{i}") + "    more_seeds: [1]\n")
    odd = [*DAGSTERS, "import", "none", "true", "warehouse", "report", "default", "charts", "e" * 64]
    body = "".join(f"  '{name}': {{{LETTER}}}\n" for name in odd)
    (tmp_path / "odd.yaml").write_text(f"study: odd\ndescription: d\nexperiments:\n{body}")
    declared = declared_studies([tmp_path])
    definitions = dg.Definitions(
        assets=build_assets(declared), jobs=build_jobs(declared), resources={"store": StoreResource()}
    )
    dg.Definitions.validate_loadable(definitions)
    for study in declared:
        selected = definitions.resolve_job_def(study.study).asset_layer.selected_asset_keys
        names = {key.path[0] for key in selected if len(key.path) == 2}
        assert names == {experiment.name for experiment in study.experiments}
    (tmp_path / "0.yaml").write_text(GOOD.format(study=longest + "s", name="e0"))
    with pytest.raises(StudyError, match=r"0.yaml: study: has 64 characters, 63 at most; shorten it"):
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
