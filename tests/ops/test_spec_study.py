"""Specs: canonical, strict, and one sentence for whatever is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.spec.model import ModelSpec
from ops.spec.study import ExperimentSpec, SpecError, canonical_json
from ops.spec.training import TrainingSpec
from ops.tasks.registry import known_tasks, parse_study

GOOD = """
study: small
description: Two experiments.
defaults: {training: {steps: 100, learning_rate: 1e-3, warmup_steps: 5}, task: {hops: [1, 2]}}
experiments:
  a_number: {task: {name: number}, model: {frequencies_rotating: [1, "5-8"]}}
  a_letter: {task: {name: letter}, seeds: [0, 1]}
"""


def body(text: str) -> str:
    return f"study: s\ndescription: d\nexperiments: {{a: {{{text}}}}}"


def test_defaults_are_merged_and_exponents_are_numbers():
    number, letter = parse_study(GOOD, "small.yaml").experiments
    assert number.training.learning_rate == 1e-3
    assert number.training.steps == letter.training.steps == 100
    assert number.task.hops == (1, 2)
    assert number.model.frequencies_rotating == (1, 5, 6, 7, 8)
    assert (letter.seeds, letter.study) == ((0, 1), "small")


def test_rows_of_the_training_log_are_declared():
    training = TrainingSpec(steps=10, warmup_steps=0, checkpoint_every=10, log_every=4)
    assert training.all_log_steps == (4, 8, 10)
    assert training.model_copy(update={"log_every": 5}).all_log_steps == (5, 10)
    assert training.model_copy(update={"log_every": 11}).all_log_steps == (10,)
    assert training.all_checkpoint_steps == (0, 10)


def test_an_experiment_survives_its_own_json():
    for experiment in parse_study(GOOD, "small.yaml").experiments:
        text = canonical_json(experiment.model_dump(mode="json"))
        again = ExperimentSpec.model_validate_json(text, context={"tasks": known_tasks()})
        assert again == experiment
        assert canonical_json(again.model_dump(mode="json")) == text


def test_equal_selections_have_equal_specs():
    assert ModelSpec(width=16) == ModelSpec(width=16, frequencies_present=["1-4", "5-8"])  # type: ignore[arg-type]


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)))
def test_canonical_json_ignores_order_and_round_trips(mapping):
    assert canonical_json(mapping) == canonical_json(dict(reversed(mapping.items())))
    assert json.loads(canonical_json(mapping)) == mapping


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (body("task: {name: number, target_window: 0}"), ["experiments.a.task.target_window", "1", "given: 0"]),
        (body("task: {name: number, hops: [1, 12]}"), ["experiments.a.task", "pre_target_window", "lower hops"]),
        (body("task: {name: number, hops: [2, 1]}"), ["experiments.a.task", "rising order"]),
        (body("task: {name: numbr}"), ["experiments.a.task", "number", "letter_matched"]),
        (body("task: {name: letter, n_letters: 4}"), ["experiments.a.task", "set n_letters to 5"]),
        (body("task: {name: letter, n_digit: 4}"), ["experiments.a.task.n_digit", "unknown field"]),
        (body("task: {name: letter}, model: {n_layers: '12'}"), ["experiments.a.model.n_layers", "integer"]),
        (body("task: {name: letter}, model: {n_layers: true}"), ["experiments.a.model.n_layers", "integer"]),
        (body("task: {name: letter}, model: {frequencies_rotating: [65]}"), ["unknown frequency ID 65", "1 to 64"]),
        (body("task: {name: letter}, model: {frequencies_present: ['9-3']}"), ["frequencies_present", "'9-3'"]),
        (body("task: {name: letter}, model: {n_heads: 3}"), ["experiments.a.model", "multiple of n_heads"]),
        (body("task: {name: letter}, model: {rotary_dims: 7}"), ["experiments.a.model", "even"]),
        (body("task: {name: letter}, training: {steps: 10}"), ["experiments.a.training", "warmup_steps"]),
        (body("task: {name: letter}, training: {checkpoint_steps: [7000]}"), ["checkpoint_steps", "7000"]),
        (
            body("task: {name: letter}, training: {steps: 10, warmup_steps: 0, checkpoint_every: 11}"),
            ["experiments.a.training", "checkpoint_every 11 is more than steps 10", "or null"],
        ),
        (body("task: {name: letter}, training: {learning_rate: fast}"), ["learning_rate", "number"]),
        (body("task: {name: letter}, scoring: {n_inputs: 50000}"), ["scoring.n_inputs", "45600"]),
        (
            body("task: {name: letter}, mixed_lengths: {shortest: 9, longest: 64}"),
            ["mixed_lengths.shortest is 9", "17"],
        ),
        (body("task: {name: letter}, mixed_lengths: {shortest: 64, longest: 17}"), ["mixed_lengths", "exchange them"]),
        (
            body("task: {name: letter}, mixed_lengths: {shortest: 17}"),
            ["experiments.a.mixed_lengths.longest", "missing"],
        ),
        (
            body("task: {name: letter}, mixed_lengths: {shortest: 17, longest: 64}, training: {compile: true}"),
            ["training.compile", "set it to false"],
        ),
        (
            body(
                "task: {name: letter_matched, target_window: 1, pre_target_window: 3, hops: [4], n_train: 64}, "
                "mixed_lengths: {shortest: 17, longest: 64}, training: {batch_size: 8}"
            ),
            ["mixed_lengths", "all 4 letters", "fewer hops"],
        ),
        (body("task: {name: letter}, seeds: [1, 1]"), ["experiments.a", "seeds"]),
        (body(""), ["experiments.a.task", "missing"]),
        ("study: s\ndescription: d\nexperiments: {}", ["experiments", "at least one"]),
        ("study: S!\ndescription: d\nexperiments: {a: {task: {name: letter}}}", ["study", "S!"]),
        ("- a list", ["must be a mapping"]),
        ("a: [", ["line 1", "YAML"]),
        ("a: &x [1]\nb: *x", ["line 2", "aliases"]),
        ("study: s\nstudy: t", ["line 2", "stands twice"]),
        (b"study: \xff\xfe", ["byte 7", "UTF-8"]),
        ("[" * 5000, ["nested"]),
        ("study: s\nwidgets: 1", ["widgets", "unknown field"]),
    ],
)
def test_a_wrong_study_gets_one_sentence(text, words):
    with pytest.raises(SpecError) as caught:
        parse_study(text, "studies/s.yaml")
    message = str(caught.value)
    assert message.startswith("studies/s.yaml")
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_a_theory_with_too_few_letters_is_refused():
    text = "study: s\ndescription: d\nexperiments: {t: {theory: {n_letters: 4}}}\n"
    with pytest.raises(SpecError, match=r"s\.yaml: experiments\.t\.theory\.n_letters"):
        parse_study(text, "s.yaml")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (
            "study: s\ndescription: d\nexperiments: {a: {task: {name: number}, training: {learning_rate: .nan}}}",
            "f.yaml: experiments.a.training.learning_rate: nan (float) is no value of a study; use finite numbers",
        ),
        ("study: s\ndescription: 2020-01-01\nexperiments: {}", "f.yaml: description: 2020-01-01 (date) is no value"),
        (
            "study: s\ndescription: d\nexperiments: {a: {seeds: [0, .inf]}}",
            "f.yaml: experiments.a.seeds.1: inf (float)",
        ),
        ("study: S!\ndescription: d\nexperiments: {a: {task: {name: number}}}", "f.yaml: study: String should match"),
        ("description: d\nexperiments: {a: {task: {name: number}}}", "f.yaml: study: is missing; add it"),
    ],
)
def test_the_field_that_is_wrong_is_named(text, start):
    with pytest.raises(SpecError) as caught:
        parse_study(text, "f.yaml")
    assert str(caught.value).startswith(start)


SMALL = "study: s\ndescription: d\nexperiments:\n  a: {task: {name: %s}, model: {n_heads: %d}, %s}"


@pytest.mark.parametrize(
    ("task", "n_heads", "part", "words"),
    [
        ("number", 1, "ablation: {scopes: [each_head]}", "ablation.scopes names each_head alone, .* use each_layer"),
        ("number", 2, "ablation: {modes: [freeze, freeze]}", "ablation.modes: freeze stands twice; name each once"),
        ("number", 2, "ablation: {score_bands: [[1, 8], [1, 8]]}", "ablation.score_bands: .1, 8. stands twice"),
        (
            "number",
            2,
            "ablation: {sliding: [{width: 1, every: 1}, {width: 1, every: 1}]}",
            "ablation.sliding: .* twice",
        ),
        (
            "letter_matched, target_window: 1, pre_target_window: 3, hops: [4]",
            1,
            "length: {lengths: [20]}",
            "length needs letters off the path, .* use fewer hops or more letters",
        ),
    ],
)
def test_what_would_fail_after_training_is_refused_before(task, n_heads, part, words):
    with pytest.raises(SpecError, match=words):
        parse_study(SMALL % (task, n_heads, part), "f.yaml")


def test_each_head_of_one_is_fine_beside_sets_of_layers():
    text = SMALL % ("number", 1, "ablation: {scopes: [each_head], layer_sets: [[0, 1]]}")
    assert parse_study(text, "f.yaml").experiments[0].ablation.layer_sets == ((0, 1),)
