"""A study on a real store: computed once, never twice; what fails stays alone and is never kept."""

import duckdb

from assets.builder import SPECS_TAG
from assets.claims import declared_claims
from assets.registry import STAGES as REGISTERED
from assets.stage import Replicate, plan
from warehouse.store import Store

STAGES = ["accuracy_s0", "checkpoints_s0", "dataset_s0", "frequency_use_s0", "head_scores_s0", "shortcuts_s0"]


def changed(study, experiment: str, **parts):
    """The study with parts of one experiment replaced."""
    experiments = tuple(
        each.model_copy(update={name: getattr(each, name).model_copy(update=part) for name, part in parts.items()})
        if each.name == experiment
        else each
        for each in study.experiments
    )
    return study.model_copy(update={"experiments": experiments})


def of(ran, experiment: str) -> set[str]:
    """The assets of one experiment that a run materialised."""
    return {key.partition("/")[2] for key in ran.metadata if key.startswith(f"{experiment}/")}


def judged(ran) -> list[tuple[str, str, bool]]:
    """Asset, check and outcome of every check that a run evaluated, sorted."""
    checks = ran.result.get_asset_check_evaluations()
    return sorted((check.asset_key.to_user_string(), check.check_name, check.passed) for check in checks)


def test_a_second_run_on_a_new_instance_computes_nothing(run, tiny, tmp_path):
    first = run(tiny)
    assert first.success
    assert set(first.metadata) == {
        *(f"tiny_{task}/{stage}" for task in ("letter", "number") for stage in STAGES),
        "warehouse",
        "charts",
        "report",
    }
    assert first.computed == sorted(first.metadata)
    assert (tmp_path / "store" / "report" / "index.html").is_file()

    second = run(tiny)
    assert second.success
    assert second.computed == []
    for key, metadata in first.metadata.items():
        assert second.metadata[key]["key"] == metadata["key"]
    assert len(judged(first)) == 2 * 9 + len(declared_claims())
    assert judged(second) == judged(first)

    one = changed(tiny, "tiny_letter", scoring={"n_inputs": 10})
    third = run(one)
    assert third.computed == ["charts", "report", "tiny_letter/head_scores_s0", "warehouse"]

    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.sql("SELECT experiment, count(*) FROM head_scores GROUP BY ALL ORDER BY ALL").fetchall()
        counted = connection.sql("SELECT DISTINCT n FROM head_scores WHERE query = 'last' ORDER BY n").fetchall()
    assert rows[0][1] == rows[1][1]
    assert counted == [(8,), (10,)]
    assert list((tmp_path / "store" / "work").glob("*/*")) == []


def test_a_failing_experiment_stays_alone_and_is_not_kept(run, tiny, tmp_path):
    key = plan(Replicate(tiny.experiments[0], 0), REGISTERED)["checkpoints"]
    in_the_way = tmp_path / "store" / "work" / "checkpoints" / key
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where the training wants a folder")
    ran = run(tiny)
    assert not ran.success
    assert of(ran, "tiny_number") == set(STAGES)
    assert of(ran, "tiny_letter") == {"dataset_s0", "shortcuts_s0"}
    assert "warehouse" not in ran.metadata
    store = Store(tmp_path / "store")
    assert sorted(artifact.stage for artifact in store.artifacts()).count("checkpoints") == 1

    in_the_way.unlink()
    mended = run(tiny)
    assert mended.success
    assert "tiny_number/checkpoints_s0" not in mended.computed
    assert "tiny_letter/dataset_s0" not in mended.computed
    assert "tiny_letter/checkpoints_s0" in mended.computed


def test_a_step_refuses_studies_that_changed_since_the_run_began(run, tiny):
    ran = run(tiny, tags={SPECS_TAG: "another digest"})
    assert not ran.success
    assert ran.metadata == {}
    failures = [event for event in ran.result.all_events if event.is_step_failure]
    messages = {event.step_failure_data.error.message for event in failures}
    assert any("YAML changed while this run was on" in message for message in messages)


def test_a_damaged_artifact_is_computed_anew(run, tiny, tmp_path):
    first = run(tiny)
    damaged = tmp_path / "store" / "artifacts" / "accuracy" / first.metadata["tiny_number/accuracy_s0"]["key"]
    table = damaged / "accuracy.parquet"
    before = table.read_bytes()
    table.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    second = run(tiny)
    assert second.success
    assert second.computed == ["tiny_number/accuracy_s0"]
    assert table.read_bytes() == before
