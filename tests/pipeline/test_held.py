"""The warehouse covers what the store holds: loaded studies by their keys, others as they were declared."""

import pytest

from assets.held import Held
from assets.registry import STAGES
from assets.stage import Plans
from ops.spec.study import parse_study
from pipeline.plans import replicates
from warehouse.reading import read_only
from warehouse.store import Store


@pytest.fixture
def filled(run, tmp_path, tiny):
    """A store with the results of a tiny study, and the study."""
    assert run(tiny).success
    return Store(tmp_path / "store"), tiny


def held(store, *studies):
    return Held(store, Plans.of(replicates(studies), STAGES))


def test_a_study_that_is_not_loaded_is_held_as_if_it_were(filled):
    store, tiny = filled
    loaded, alone = held(store, tiny), held(store)
    assert loaded.artifacts == alone.artifacts != {}
    assert loaded.missing == alone.missing == []
    assert sorted(loaded.rows, key=str) == sorted(alone.rows, key=str)


def test_another_study_s_run_keeps_the_rows_of_one_that_it_does_not_load(filled, run, tmp_path, tiny_yaml):
    store, _ = filled
    other = parse_study(tiny_yaml.replace("tiny", "other"), "other.yaml")
    assert run(other).success
    with read_only(store.root / "warehouse.duckdb") as connection:
        found = connection.sql("SELECT DISTINCT experiment FROM accuracy ORDER BY ALL").fetchall()
        assert connection.sql("SELECT count(DISTINCT spec), count(*) FROM experiments").fetchall() == [(4, 4)]
    assert found == [("other_letter",), ("other_number",), ("tiny_letter",), ("tiny_number",)]


def test_results_of_two_specs_never_stand_side_by_side(filled, run, tiny_yaml):
    store, tiny = filled
    changed = parse_study(tiny_yaml.replace("steps: 4,", "steps: 6,"), "tiny.yaml")
    assert run(changed).success
    for study in (tiny, changed):
        assert held(store, study).missing == []
    keys = set(held(store).keys.values())
    assert keys in (set(held(store, tiny).keys.values()), set(held(store, changed).keys.values()))


def test_results_of_other_code_are_not_held(filled, monkeypatch):
    import assets.held as module

    store, _ = filled
    real = module.definitions
    monkeypatch.setattr(module, "definitions", lambda roots: {**real(roots), "ops/model/rope.py::new": "0" * 16})
    assert held(store).artifacts == {}
