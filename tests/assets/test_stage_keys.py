"""A stage's key: which spec fields and which code it covers."""

import ast
from pathlib import Path

import pytest

import assets
import ops.training
from assets.registry import STAGES
from assets.stage import Check, Computed, Replicate, Stage, Verdict, every_verdict, plan
from ops.spec.study import ExperimentSpec
from ops.tasks.registry import parse_study
from warehouse.code import modules_of

BASE = "study: s\ndescription: d\nexperiments: {a: {task: {name: number, n_test: 4000}%s}}\n"
EVALUATIONS = {"accuracy", "head_scores", "frequency_use"}


def experiment(more: str = "") -> ExperimentSpec:
    return parse_study(BASE % more, "s.yaml").experiments[0]


def moved(more: str) -> set[str]:
    before, after = (plan(Replicate(experiment(text), 0), STAGES) for text in ("", more))
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("more", "stages"),
    [
        (", seeds: [0, 1, 2]", set()),
        (", model: {dropout: 0.2}", {"checkpoints", *EVALUATIONS}),
        (", model: {frequencies_rotating: [1]}", {"checkpoints", *EVALUATIONS}),
        (", mixed_lengths: {shortest: 17, longest: 64}", {"checkpoints", *EVALUATIONS}),
        (", training: {checkpoint_every: 100}", {"checkpoints", *EVALUATIONS}),
        (", accuracy: {n_test: 100}", {"accuracy"}),
        (", accuracy: {last_on_all: false}", {"accuracy"}),
        (", scoring: {taus: [1.0e-4]}", {"head_scores"}),
        (", scoring: {eps: 1.0e-8}", {"head_scores"}),
        (", frequency_use: {n_inputs: 7}", {"frequency_use"}),
    ],
)
def test_a_field_moves_the_keys_of_exactly_the_stages_that_read_it(more, stages):
    assert moved(more) == stages


def test_task_seed_and_name_move_every_key():
    base = experiment()
    keys = plan(Replicate(base, 0), STAGES)
    task = base.task.model_copy(update={"hops": (1, 2)})
    for other in (
        Replicate(base, 1),
        Replicate(base.model_copy(update={"name": "b"}), 0),
        Replicate(base.model_copy(update={"task": task}), 0),
    ):
        assert not set(plan(other, STAGES).values()) & set(keys.values())
    assert plan(Replicate(base.model_copy(update={"study": "t"}), 0), STAGES) == keys


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_code_that_a_stage_calls_is_in_its_key(stage: Stage):
    source = Path(assets.__file__).parent / f"{stage.name}.py"
    mixed = experiment(", mixed_lengths: {shortest: 17, longest: 64}")
    covered = set(modules_of(stage.modules(mixed)))
    called = {
        node.module
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ops.")
    }
    assert called
    # What only tells or protects, the types of columns, and the kind of an experiment: whether there is a stage at all.
    told = {"ops.training.fit", "ops.training.pace", "ops.training.progress", "ops.spec.study", "ops.tables.tables"}
    assert called <= covered | told


TELLS_OR_PROTECTS = {
    "ops.training.durable",
    "ops.training.environment",
    "ops.training.fit",
    "ops.training.head_scores",
    "ops.training.interruption",
    "ops.training.pace",
    "ops.training.progress",
    "ops.training.resume",
    "ops.training.snapshots",
    "ops.training.validation",
    "ops.training.workdir_lock",
}


def test_every_module_of_training_either_decides_or_is_known_not_to():
    checkpoints = next(stage for stage in STAGES if stage.name == "checkpoints")
    folder = Path(ops.training.__file__).parent
    modules = {f"ops.training.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    decides = set(modules_of(checkpoints.modules(experiment()))) & modules
    assert decides | TELLS_OR_PROTECTS == modules
    assert not decides & TELLS_OR_PROTECTS


def test_mixed_lengths_add_their_field_and_their_code_and_others_have_neither():
    checkpoints = next(stage for stage in STAGES if stage.name == "checkpoints")
    plain, mixed = experiment(), experiment(", mixed_lengths: {shortest: 17, longest: 64}")
    assert checkpoints.reads(mixed) == {**checkpoints.reads(plain), "mixed_lengths": {"shortest": 17, "longest": 64}}
    assert checkpoints.reads(plain).keys() == {"model", "training"}
    own = ("ops.training.recipe", "ops.training.weights", "ops.tasks.number.task")
    assert checkpoints.modules(plain) == own
    mixed_code = ("ops.length.mixed_lengths::MixedLengths", "ops.length.mixed_lengths::LengthenBatches")
    assert checkpoints.modules(mixed) == (*own, *mixed_code, "ops.tasks.number.lengthening")
    assert not any("mixed_lengths" in name for stage in STAGES for name in modules_of(stage.modules(plain)))
    others = [stage for stage in STAGES if stage.applies(plain) and stage.name != "checkpoints"]
    assert others
    assert all(stage.modules(mixed) == stage.modules(plain) for stage in others)


def test_checks_and_verdicts_must_match():
    stage = Stage("s", "d", (), lambda _: {}, lambda _: Computed(), checks=(Check("a", "a holds"),))
    verdict = Verdict(True, {"n": 1})
    assert list(every_verdict(stage, {"a": verdict})) == [(stage.checks[0], verdict)]
    for wrong in ({}, {"b": verdict}, {"a": verdict, "b": verdict}):
        with pytest.raises(ValueError, match="checks and verdicts differ"):
            every_verdict(stage, wrong)
