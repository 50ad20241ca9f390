"""`warehouse.explain` and `warehouse.prune` on a store that was filled under other specs and other code."""

import pytest

from pipeline.plans import planned
from warehouse import explain, prune
from warehouse.keys import key_of
from warehouse.store import Store

STUDY = """
study: small
description: Two trainings that nothing runs.
defaults: {task: {n_train: 640, n_validation: 64, n_test: 128}, accuracy: {n_test: 64},
           scoring: {n_inputs: 8}, frequency_use: {n_inputs: 8}}
experiments:
  small_number: {task: {name: number}, training: {steps: 40, warmup_steps: 2, batch_size: 16, checkpoint_every: 20}}
  small_letter: {task: {name: letter}}
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The study's file, declared through the environment; the store is below tmp_path too."""
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "small.yaml").write_text(STUDY)
    monkeypatch.setenv("ROPEWALK_EXPERIMENTS", str(folder))
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / "store"))
    return folder / "small.yaml"


def plan(experiment="small_number"):
    return {each.stage: each for each in planned(experiment)}


def fill(experiment="small_number", **code):
    """Publish every stage as planned now, with `code` (definition: digest) in place of the real digest."""
    store, keys = Store.from_environment(), {}
    for each in planned(experiment):
        changed = {name: code.get(name, digest) for name, digest in each.parts["code"].items()}
        inputs = {name: keys[name] for name in each.parts["inputs"]}
        key = key_of(each.parts | {"code": changed, "inputs": inputs})
        keys[each.stage] = key
        store.publish(
            each.stage,
            key,
            lambda folder: (folder / "result.txt").write_text("a result"),
            spec=each.parts["reads"],
            inputs=inputs,
            code={"roots": [], "definitions": changed},
            provenance={"created_at": f"2026-01-01T00:00:{len(keys):02d}+00:00"},
            summary={},
        )
    return keys


def said(capsys, *arguments):
    code = explain.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_same_key_says_so(study, capsys):
    keys = fill()
    code, text = said(capsys, "small_number/accuracy_s0", "now")
    assert code == 0
    assert "the same key: nothing differs" in text
    assert said(capsys, keys["accuracy"][:8], keys["accuracy"])[0] == 0


def test_a_changed_field_is_named_with_both_values_also_behind_an_input(study, capsys):
    fill()
    study.write_text(STUDY.replace("steps: 40", "steps: 60"))
    code, text = said(capsys, "small_number/head_scores_s0", "now")
    assert code == 1
    assert "training.steps: 40 -> 60" in text
    assert "input  its checkpoints (" in text
    assert len(text.splitlines()) < 24


def test_a_changed_function_is_named(study, capsys):
    rotate = next(name for name in plan()["checkpoints"].parts["code"] if name.startswith("ops/model/rope.py::"))
    fill(**{rotate: "0" * 16})
    code, text = said(capsys, "small_number/checkpoints_s0", "now")
    assert code == 1
    assert f"code   `{rotate}` changed" in text


def test_computed_again_names_what_changed_and_is_silent_for_a_first_time(study):
    store = Store.from_environment()
    assert explain.computed_again(store, plan()["checkpoints"].parts) is None
    optimiser = next(name for name in plan()["checkpoints"].parts["code"] if name.startswith("ops/training/optimiser"))
    fill(**{optimiser: "0" * 16})
    assert explain.computed_again(store, plan()["checkpoints"].parts) == f"`{optimiser}` changed"
    assert str(explain.computed_again(store, plan()["accuracy"].parts)).startswith("its checkpoints (")
    assert explain.computed_again(store, plan("small_letter")["checkpoints"].parts) is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["abc", "now"], "neither a key"),
        (["0" * 8, "now"], "0 artifacts of"),
        (["nothing/accuracy_s0", "now"], "has no such result"),
        (["now", "now"], "the same as now"),
        (["small_number/accuracy_s0", "small_number/head_scores_s0"], "are two stages"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(study, capsys, arguments, sentence):
    fill()
    code, text = said(capsys, *arguments)
    assert code == 2
    assert sentence in text
    assert text.count("\n") == 1


def test_an_experiment_that_is_no_longer_declared_is_one_sentence(study, capsys):
    fill()
    study.write_text(STUDY.replace("small_number", "other"))
    code, text = said(capsys, "small_number/accuracy_s0", "now")
    assert code == 2
    assert "no declared study has small_number/accuracy_s0 any more" in text


def test_prune_lists_and_removes_exactly_what_nothing_reaches(study, capsys):
    fill()
    kept = fill("small_letter")
    old = set(Store.from_environment().root.glob("artifacts/*/*"))
    study.write_text(STUDY.replace("steps: 40", "steps: 60"))
    assert prune.main(["--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "small_number, seed 0" in text
    assert "small_letter" not in text
    assert set(Store.from_environment().root.glob("artifacts/*/*")) == old
    assert prune.main(["--remove"]) == 0
    left = {(path.parent.name, path.name) for path in Store.from_environment().root.glob("artifacts/*/*")}
    still = {(each.stage, each.key) for each in planned()} & {(path.parent.name, path.name) for path in old}
    assert left == still
    assert {("checkpoints", kept["checkpoints"]), ("dataset", plan()["dataset"].key)} <= left
    assert ("checkpoints", plan()["checkpoints"].key) not in left


def test_prune_takes_no_folder_that_is_not_named_as_ours(study, capsys):
    """A store that lies in somebody's project, beside their own folders called work and quarantine."""
    fill()
    root = Store.from_environment().root
    theirs = [root / name for name in ("work/project/src", "refused/x/y", "quarantine/patients", "artifacts/ci/build")]
    for folder in theirs:
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine")
    ours = [root / "work" / "checkpoints" / ("0" * 64), root / "quarantine" / f"accuracy-{'0' * 64}-1"]
    for folder in ours:
        folder.mkdir(parents=True)
    assert prune.main(["--remove"]) == 0
    assert all((folder / "mine").is_file() for folder in theirs)
    assert not any(folder.exists() for folder in ours)


def test_prune_removes_nothing_when_a_study_cannot_be_read(study, capsys):
    fill()
    before = set(Store.from_environment().root.glob("artifacts/*/*"))
    study.write_text("study: [")
    assert prune.main(["--remove"]) == 2
    assert "small.yaml" in capsys.readouterr().err
    assert before == set(Store.from_environment().root.glob("artifacts/*/*")) != set()


def test_prune_leaves_what_a_process_builds_just_now(study):
    store, key = Store.from_environment(), "a" * 64
    with store.building("checkpoints", key) as folder:
        (folder / "resume").write_text("half a training")
        assert prune.unreached(store, ()) == []
        assert prune.main(["--remove"]) == 0
        assert (folder / "resume").exists()
    assert [each.folder for each in prune.unreached(store, ())] == [folder]


def test_prune_refuses_unknown_options_and_an_empty_store_is_no_error(study, capsys):
    assert prune.main(["--all"]) == 2
    assert prune.main([]) == 0
    assert "0.0 MB  in 0 folders" in capsys.readouterr().out
