"""A grid is its experiments written out: the same specs, and one sentence for what is wrong with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.spec.study import SpecError
from ops.tasks.registry import parse_study

HEAD = "study: s\ndescription: d\ndefaults: {task: {n_test: 4000}}\n"
GRID = (
    HEAD
    + """
grid:
  hops_{encoding}_{depth}:
    seeds: [0, 1]
    training: {steps: 3000}
    over:
      encoding: {integer: {task: {name: number}}, pair: {task: {name: letter_matched}}}
      depth: {shallow: {model: {n_layers: 2}}, deep: {model: {n_layers: 4}, training: {learning_rate: 1e-3}}}
"""
)
WRITTEN_OUT = (
    HEAD
    + """
experiments:
  hops_integer_shallow: {seeds: [0, 1], training: {steps: 3000}, task: {name: number}, model: {n_layers: 2}}
  hops_integer_deep: {seeds: [0, 1], training: {steps: 3000, learning_rate: 1e-3}, task: {name: number},
                      model: {n_layers: 4}}
  hops_pair_shallow: {seeds: [0, 1], training: {steps: 3000}, task: {name: letter_matched}, model: {n_layers: 2}}
  hops_pair_deep: {seeds: [0, 1], training: {steps: 3000, learning_rate: 1e-3}, task: {name: letter_matched},
                   model: {n_layers: 4}}
"""
)


def test_a_grid_is_its_experiments_written_out():
    assert parse_study(GRID, "g.yaml") == parse_study(WRITTEN_OUT, "g.yaml")


def test_a_grid_stands_beside_experiments():
    study = parse_study(GRID + "experiments: {one: {task: {name: letter}}}\n", "g.yaml")
    assert study.experiments[0].name == "one"
    assert len(study.experiments) == 5


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_combination_is_there_once(sizes):
    axes = {f"a{i}": {f"v{j}": {} for j in range(n)} for i, n in enumerate(sizes)}
    fields = {"over": axes, "task": {"name": "number"}}
    template = "x_" + "_".join(f"{{{axis}}}" for axis in axes)
    import json

    study = parse_study(HEAD + "grid: " + json.dumps({template: fields}), "g.yaml")
    names = [experiment.name for experiment in study.experiments]
    expected = 1
    for n in sizes:
        expected *= n
    assert len(names) == len(set(names)) == expected


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ("[]", "grid: must be a mapping of name"),
        ("{}", "grid: must be a mapping of name"),
        ("{'a_{x}': {task: {name: number}}}", "must have over"),
        ("{'a': {over: {x: {y: {}}}}}", "the name must hold each thing that varies once: {x}"),
        ("{'a_{x}_{x}': {over: {x: {y: {}}}}}", "the name must hold each thing that varies once: {x}"),
        ("{'a_{z}': {over: {x: {y: {}}}}}", "the name must hold each thing that varies once: {x}"),
        ("{'a_{x}': {over: {x: [1, 2]}}}", "grid.a_{x}.over.x: must be a mapping of a word"),
        ("{'a_{x}': {over: {x: {y: 1}}}}", "grid.a_{x}.over.x.y: must be a mapping of an experiment's fields"),
        (
            "{'a_{x}_{z}': {over: {x: {y: {task: {name: number}}}, z: {w: {task: {name: letter}}}}}}",
            "task.name is set by two of them",
        ),
        ("{'a_{x}': {over: {x: {y: {task: {name: nothing}}}}}}", "experiments.a_y.task"),
        ("{'a_{x}': {task: {name: number}, over: {x: {Y: {}}}}}", "experiments.a_Y: a name has"),
    ],
)
def test_what_is_wrong_with_a_grid_is_one_sentence(grid, sentence):
    with pytest.raises(SpecError) as error:
        parse_study(HEAD + f"grid: {grid}\n", "g.yaml")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("g.yaml")


def test_a_name_that_an_experiment_has_is_refused():
    text = GRID + "experiments: {hops_pair_deep: {task: {name: letter}}}\n"
    with pytest.raises(SpecError, match="the name 'hops_pair_deep' is taken"):
        parse_study(text, "g.yaml")


def test_too_many_cells_are_refused_before_they_are_made():
    axes = ", ".join(f"a{i}: {{{', '.join(f'v{j}: {{}}' for j in range(10))}}}" for i in range(5))
    template = "_".join(f"{{a{i}}}" for i in range(5))
    with pytest.raises(SpecError, match="100,000 combinations; 10,000 at most"):
        parse_study(HEAD + f"grid: {{'x_{template}': {{over: {{{axes}}}}}}}\n", "g.yaml")
