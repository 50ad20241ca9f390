"""An artifact whose blocking check fails is no result: kept apart, told of, computed again on request alone."""

import dataclasses
import json
import shutil
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from assets import checkpoints
from assets.builder import StoreResource
from assets.refusal import RETRY, RETRY_TAG
from assets.registry import STAGES
from assets.stage import Check, Replicate, plan
from ops.spec.training import TrainingSpec
from ops.tasks.registry import parse_study
from pipeline.factory import build_assets
from pipeline.jobs import build_jobs
from warehouse.store import Store

TEXT = """
study: tiny
description: One task, too small to learn anything.
executor: in_process
defaults:
  task: {hops: [1, 2], n_train: 640, n_validation: 64, n_test: 128}
  model: {n_layers: 2, width: 16, dropout: 0.0}
  training: {steps: 4, warmup_steps: 2, batch_size: 16, checkpoint_every: 2, learning_rate: 1e-3, log_every: 2}
  accuracy: {n_test: 64}
  scoring: {n_inputs: 8, taus: [1e-4, 1e-2]}
  frequency_use: {n_inputs: 8}
experiments:
  tiny_letter: {task: {name: letter}}
"""
ALL = {"accuracy", "checkpoints", "dataset"}


class Runs:
    """Runs of the study over one store. With `hole` the training loses the snapshot of step 2 before it is judged."""

    def __init__(self, root: Path) -> None:
        self.store, self.study = Store(root), parse_study(TEXT, "tiny.yaml")
        self.key = plan(Replicate(self.study.experiments[0], 0), STAGES)["checkpoints"]
        self.trained = 0

    def stages(self, hole: bool, **changed):
        def compute(work):
            self.trained += 1
            computed = checkpoints.compute(work)
            if not hole:
                return computed
            shutil.rmtree(work.folder / "checkpoints" / "step_000002")
            logged, training = computed.tables["training_log"]["step"].to_list(), work.replicate.experiment.training
            verdicts = checkpoints.judge(work.folder / "checkpoints", logged, training)
            return dataclasses.replace(computed, verdicts=verdicts)

        faulty = dataclasses.replace(checkpoints.CHECKPOINTS, compute=compute, **changed)
        return tuple(faulty if stage.name == "checkpoints" else stage for stage in STAGES)

    def run(self, *, hole: bool = False, tags: dict[str, str] | None = None, only: str | None = None, **changed):
        """The stages that gave a result, the sentences of the failed steps, and the outcome of training's checks."""
        definitions = dg.Definitions(
            assets=build_assets([self.study], self.stages(hole, **changed)),
            jobs=build_jobs([self.study]),
            resources={"store": StoreResource(root=str(self.store.root))},
        )
        job = definitions.resolve_job_def("tiny")
        due = {f"{stage}_s0" for stage in ALL} | {"warehouse"}
        keys = [key for key in job.asset_layer.executable_asset_keys if key.path[-1] in due]
        if only:
            keys = [key for key in keys if key.path[-1] == only]
        with dg.DagsterInstance.ephemeral() as instance:
            done = job.execute_in_process(
                instance=instance, asset_selection=keys, raise_on_error=False, tags=dict(tags or {})
            )
            told = [entry.dagster_event for entry in instance.all_logs(done.run_id)]
        gave = {event.asset_key.path[-1].removesuffix("_s0") for event in done.get_asset_materialization_events()}
        errors = [event.step_failure_data.error for event in done.all_events if event.is_step_failure]
        sentences = [(error.cause or error).message.partition("Failure: ")[2].strip() for error in errors]
        evaluations = [
            event.event_specific_data
            for event in told
            if event and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ]
        checks = {
            check.check_name: check.passed for check in evaluations if check.asset_key.path[-1] == "checkpoints_s0"
        }
        return gave, sentences, checks


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Runs:
    monkeypatch.delenv(RETRY, raising=False)
    return Runs(tmp_path / "store")


def stages(store: Store) -> set[str]:
    return {artifact.stage for artifact in store.artifacts()}


def test_a_refused_artifact_is_kept_told_and_computed_again_on_request_alone(runs, monkeypatch):
    gave, sentences, checks = runs.run(hole=True)
    assert gave == {"dataset"}
    assert checks == {"checkpoints_complete": False, "checkpoints_distinct": True, "training_log_complete": True}
    folder = runs.store.root / "refused" / "checkpoints" / runs.key
    assert len(sentences) == 1
    said = "checkpoints of tiny_letter, seed 0 is refused and not published: it fails checkpoints_complete"
    assert sentences[0].startswith(f"{said} (first_missing_step 2, n_checkpoints 2, n_declared 3)")
    assert f"it is kept in {folder}; {RETRY}=1" in sentences[0]
    assert json.loads((folder / "manifest.json").read_text())["summary"]["checks"]["checkpoints_complete"] == {
        "measured": {"n_declared": 3, "n_checkpoints": 2, "first_missing_step": 2},
        "passed": False,
    }
    assert stages(runs.store) == {"dataset"}
    assert not list(runs.store.root.glob("work/*/[!.]*"))

    again = runs.run()
    assert again[0] == {"dataset"}
    assert again[2] == checks
    assert "was refused before, and nothing is computed now" in again[1][0]
    assert str(folder) in again[1][0]
    assert runs.trained == 1

    monkeypatch.setenv(RETRY, "1")
    still, _, _ = runs.run(hole=True)
    assert still == {"dataset"}
    assert runs.trained == 2
    assert folder.is_dir()

    gave, sentences, checks = runs.run()
    assert gave == {*ALL, "warehouse"}
    assert (sentences, all(checks.values()), runs.trained) == ([], True, 3)
    assert not folder.exists()
    with duckdb.connect(str(runs.store.root / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT step FROM training_log ORDER BY step").fetchall() == [(2,), (4,)]


def test_a_tag_of_the_run_and_the_folders_removal_ask_for_it_too(runs):
    runs.run(hole=True)
    gave, sentences, _ = runs.run(tags={RETRY_TAG: "yes"})
    assert gave == {"dataset"}
    assert sentences == [f"the tag {RETRY_TAG} is 'yes'; give 1 to compute again what was refused, or leave it out"]
    runs.run(hole=True, tags={RETRY_TAG: "1"})
    assert runs.trained == 2
    shutil.rmtree(runs.store.root / "refused" / "checkpoints" / runs.key)
    gave, _, _ = runs.run()
    assert gave == {*ALL, "warehouse"}


def publish_with(store: Store, key: str, passed: bool) -> None:
    """The checkpoints as an edition before this one published them, whatever a blocking check said."""
    artifact = store.get("checkpoints", key)
    assert artifact is not None
    away = store.root / "away"
    artifact.path.rename(away)
    (away / "manifest.json").unlink()
    parts = {part: artifact.manifest[part] for part in ("spec", "inputs", "provenance", "summary")}
    parts["summary"]["checks"] = {"checkpoints_distinct": {"passed": passed, "measured": {"n_distinct": 2}}}
    store.publish("checkpoints", key, lambda folder: shutil.copytree(away, folder, dirs_exist_ok=True), **parts)
    shutil.rmtree(away)


def test_one_that_was_published_although_a_blocking_check_failed_is_refused_when_met(runs):
    runs.run()
    publish_with(runs.store, runs.key, passed=False)
    runs.run(only="warehouse")
    assert "checkpoints" not in stages(runs.store)
    assert runs.store.refused("checkpoints", runs.key) is not None
    with duckdb.connect(str(runs.store.root / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM training_log").fetchall() == [(0,)]
        assert connection.sql("SELECT count(*) FROM accuracy").fetchall() != [(0,)]
    gave, sentences, checks = runs.run()
    assert "checkpoints" not in gave
    assert "was refused before" in sentences[0]
    assert checks["checkpoints_distinct"] is False
    assert runs.trained == 1


def test_a_step_refuses_such_an_input_when_run_alone(runs):
    runs.run()
    publish_with(runs.store, runs.key, passed=False)
    shutil.rmtree(runs.store.root / "artifacts" / "accuracy")
    gave, sentences, _ = runs.run(only="accuracy_s0")
    assert gave == set()
    assert f"but a refused one in {runs.store.root}" in sentences[0]


def test_a_check_that_the_published_one_was_not_judged_by_warns_and_blocks_nothing(runs):
    runs.run()
    publish_with(runs.store, runs.key, passed=True)
    gave, sentences, checks = runs.run()
    assert gave == {*ALL, "warehouse"}
    assert sentences == []
    assert checks == {"checkpoints_complete": False, "checkpoints_distinct": True, "training_log_complete": False}


def test_a_check_that_does_not_block_refuses_nothing(runs):
    weak = tuple(Check(check.name, check.description, blocking=False) for check in checkpoints.CHECKPOINTS.checks)
    runs.run(hole=True, checks=weak)
    assert runs.store.refused("checkpoints", runs.key) is None
    assert "checkpoints" in stages(runs.store)


TRAINING = TrainingSpec(steps=14, warmup_steps=0, checkpoint_every=5, log_every=4)


@pytest.mark.parametrize(
    ("steps", "logged", "fails"),
    [
        ((0, 5, 10, 14), (4, 8, 12, 14), set()),
        ((0, 5, 10, 14), (4, 8, 14), {"training_log_complete"}),
        ((0, 5, 10, 14), (4, 8, 8, 12, 14), {"training_log_complete"}),
        ((0, 5, 10, 14), (4, 12, 8, 14), {"training_log_complete"}),
        ((0, 5, 14), (4, 8, 12, 14), {"checkpoints_complete"}),
        ((0, 5, 7, 10, 14), (4, 8, 12, 14), {"checkpoints_complete"}),
        ((0, 5, 7, 14), (4, 8, 12, 14), {"checkpoints_complete"}),
        ((), (), {"checkpoints_complete", "training_log_complete"}),
    ],
)
def test_what_is_published_is_compared_with_what_is_declared(tmp_path, steps, logged, fails):
    for step in steps:
        (tmp_path / f"step_{step:06d}").mkdir()
        (tmp_path / f"step_{step:06d}" / "model.safetensors").write_bytes(bytes([step]))
    verdicts = checkpoints.judge(tmp_path, logged, TRAINING)
    assert {name for name, verdict in verdicts.items() if not verdict.passed} == fails


def test_equal_weights_at_two_steps_fail(tmp_path):
    for step in TRAINING.all_checkpoint_steps:
        (tmp_path / f"step_{step:06d}").mkdir()
        (tmp_path / f"step_{step:06d}" / "model.safetensors").write_bytes(bytes([step % 10]))
    verdicts = checkpoints.judge(tmp_path, TRAINING.all_log_steps, TRAINING)
    assert [name for name, verdict in verdicts.items() if not verdict.passed] == ["checkpoints_distinct"]
