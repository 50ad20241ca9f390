"""Defaults are checked though no experiment uses them, and what would mislead later names its field."""

import pytest

from ops.spec.study import SpecError
from ops.tasks.registry import parse_study


@pytest.mark.parametrize(
    ("defaults", "words"),
    [
        ("{training: ä}", "defaults.training: .*given: 'ä'"),
        ("{training: {steps: ä}}", "defaults.training.steps: .*integer"),
        ("{training: {step: 1}}", "defaults.training.step: unknown field"),
        ("{trainin: {}}", "defaults.trainin: unknown field"),
        ("{task: {hops: [2, 1]}}", "defaults.task.hops: .*rising"),
        ("{task: {name: x}}", "defaults.task.name: must be 'number' or 'letter' or 'letter_matched'"),
        ("{task: {n_letters: true}}", "defaults.task.n_letters: .*integer"),
        ("{model: {frequencies_present: [1, 1-3]}}", "defaults.model.frequencies_present: frequency ID 1 stands twice"),
        ("{scoring: {taus: [1, 1]}}", "defaults.scoring.taus: 1.0 stands twice"),
        ("{length: {inference: [{name: yarn, alpha: 99}]}}", r"defaults.length.inference.0: alpha .* less than beta"),
        ("{ablation: {layer_sets: [[0, 0]]}}", "defaults.ablation.layer_sets.0: 0 stands twice"),
        ("{prompting: {model: {base_url: x}}}", "defaults.prompting.model.base_url: "),
    ],
)
def test_defaults_that_no_experiment_uses_are_checked(defaults, words):
    used = "{prompting: {model: {kind: local}}}" if "prompting" in defaults else "{canonical: {task: {name: index}}}"
    text = f"study: s\ndescription: d\ndefaults: {defaults}\nexperiments: {{a: {used}}}\n"
    with pytest.raises(SpecError, match=rf"^f.yaml: {words}"):
        parse_study(text, "f.yaml")


def test_a_default_that_every_experiment_replaces_is_checked():
    text = "study: s\ndescription: d\ndefaults: {seeds: x}\nexperiments: {a: {task: {name: letter}, seeds: [1]}}\n"
    with pytest.raises(SpecError, match=r"^f.yaml: defaults.seeds: .*array"):
        parse_study(text, "f.yaml")


def test_defaults_may_be_completed_by_the_experiments():
    text = (
        "study: s\ndescription: d\n"
        "defaults: {training: {warmup_steps: 9000}, mixed_lengths: {shortest: 17}, task: {n_digits: 4}, length: null}\n"
        "experiments: {a: {task: {name: letter}, training: {steps: 9000}, mixed_lengths: {longest: 34}},\n"
        "  b: {theory: {}}}\n"
    )
    first, _ = parse_study(text, "f.yaml").experiments
    assert (first.training.warmup_steps, first.mixed_lengths.shortest, first.task.n_digits) == (9_000, 17, 4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("task: {name: letter}, seeds: [010]", "seeds.0: .*given: '010'"),
        ("task: {name: letter}, seeds: [1:30]", "seeds.0: .*given: '1:30'"),
        ("canonical: {task: {name: index}}, seeds: [1, 1]", "seeds: 1 stands twice"),
        ("canonical: {task: {name: index}, angles: [1], pairs: [[1, 2], [2, 1]]}", r"pairs: \(1, 2\) stands twice"),
        ("task: {name: letter}, ablation: {layer_sets: [[0, 1], [1, 0]]}", r"layer_sets: \(0, 1\) stands twice"),
        ("theory: {index_angles: []}", "index_angles: .*at least 1"),
        ("theory: {construction_lengths: [2, 2]}", "construction_lengths: 2 stands twice"),
        ("language_model: {prompts: [{kind: text, text: 5}]}", "prompts.0.text: .*given: 5"),
        ("language_model: {prompts: [{n_prompts: 5}]}", "prompts.0.kind: is missing"),
        ("language_model: {taus: [1e-320]}", "taus.0: .*given: 1e-320"),
        (
            "prompting: {model: {kind: endpoint, model: m, base_url: 'http://[', input_price: 0, output_price: 0}}",
            "base_url",
        ),
        (
            "prompting: {model: {kind: endpoint, model: m, base_url: 'http://h:99999', input_price: 0}}",
            "port",
        ),
    ],
)
def test_what_would_fail_or_mislead_later_names_its_field(body, words):
    with pytest.raises(SpecError, match=rf"(?i)^f.yaml: experiments\.a\..*{words}"):
        parse_study(f"study: s\ndescription: d\nexperiments: {{a: {{{body}}}}}\n", "f.yaml")
