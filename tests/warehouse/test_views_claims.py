"""Verdicts: which runs decide a claim, and that each criterion can be met and missed."""

import duckdb
import polars as pl
import pytest

DECIDED = {
    "number-solved", "letter-solved", "number-hopwise", "letter-simultaneous", "scores-start-high",
    "number-positional-heads", "number-symbolic-heads", "letter-symbolic-heads", "letter-no-positional-heads",
    "purity-before-maximum", "reflexive-symbolic", "number-fast-frequencies", "number-slow-frequencies",
    "letter-slow-frequencies",
}  # fmt: skip
FROM_QUICK = {
    "number-solved", "letter-solved", "scores-start-high", "letter-no-positional-heads", "purity-before-maximum",
}  # fmt: skip


def claims(connection):
    relation = connection.sql("SELECT * FROM claims")
    return {values[0]: dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()}


def runs(frames, *experiments, seeds=(0, 1, 2)):
    wanted = pl.col("experiment").is_in(experiments) & pl.col("seed").is_in(seeds)
    return {name: frame.filter(wanted) for name, frame in frames.items()}


@pytest.fixture(scope="module")
def editable(tmp_path_factory, made_up_frames, build_database):
    """A writable database of one seed a task at the published size."""
    frames = runs(made_up_frames, "paper_number", "paper_letter", seeds=(0,))
    with duckdb.connect(str(build_database(tmp_path_factory.mktemp("editable"), frames))) as connection:
        yield connection


def changed(frames, table, condition, **values):
    new = [pl.when(condition).then(value).otherwise(pl.col(name)).alias(name) for name, value in values.items()]
    return frames | {table: frames[table].with_columns(new)}


def test_every_claim_has_one_row_in_the_order_stated(made_up):
    stated = [row[0] for row in made_up.sql("SELECT id FROM claim_statements").fetchall()]
    assert [row[0] for row in made_up.sql("SELECT id FROM claims").fetchall()] == stated


def test_nothing_ran(nothing_ran):
    found = claims(nothing_ran)
    assert {row["verdict"] for row in found.values()} == {"not run"}
    assert {row["n_runs"] for row in found.values()} == {0}
    assert all(row["measured"] is None and row["experiment"] is None for row in found.values())


def test_the_paper_study_decides_and_says_so(made_up):
    found = claims(made_up)
    assert {name for name, row in found.items() if row["verdict"] != "not run"} == DECIDED
    assert {row["basis"] for row in found.values() if row["verdict"] != "not run"} == {"paper"}
    assert found["number-solved"]["experiment"] == "paper_number (12 layers x 128)"
    assert found["number-solved"]["n_runs"] == 3
    assert found["purity-before-maximum"]["n_runs"] == 6


def test_quick_decides_only_claims_that_name_no_size(database, made_up_frames):
    found = claims(database(runs(made_up_frames, "quick_number", "quick_letter")))
    assert {name for name, row in found.items() if row["verdict"] != "not run"} == FROM_QUICK
    assert {row["basis"] for row in found.values() if row["verdict"] != "not run"} == {"quick"}


def test_a_model_of_another_size_decides_nothing_in_the_papers_name(database, made_up_frames):
    frames = runs(made_up_frames, "paper_number", "paper_letter")
    frames = frames | {"experiments": frames["experiments"].with_columns(n_layers=6)}
    assert {row["verdict"] for row in claims(database(frames)).values()} == {"not run"}


def test_a_claim_on_both_tasks_waits_for_both(database, made_up_frames):
    found = claims(database(runs(made_up_frames, "paper_number", seeds=(0,))))
    assert found["purity-before-maximum"]["verdict"] == "not run"
    assert found["scores-start-high"]["verdict"] == "not run"
    assert found["number-solved"]["verdict"] == "reproduced"
    assert (found["number-solved"]["interval_low"], found["number-solved"]["n_runs"]) == (None, 1)


def test_one_failing_seed_is_enough_to_fail(database, made_up_frames):
    frames = runs(made_up_frames, "paper_number")
    late = (pl.col("seed") == 1) & (pl.col("hop") == 4) & (pl.col("step") == 6_750)
    row = claims(database(changed(frames, "accuracy", late, accuracy=0.98)))["number-solved"]
    assert (row["verdict"], row["n_runs"], row["n_holds"]) == ("not reproduced", 3, 2)
    assert (row["interval_low"], row["interval_high"]) == (0.98, 1.0)
    assert row["measured"] == pytest.approx((1 + 1 + 0.98) / 3)


def test_each_criterion_can_be_met(editable):
    assert {name for name, row in claims(editable).items() if row["verdict"] == "reproduced"} == DECIDED


@pytest.mark.parametrize(
    ("claim", "edit"),
    [
        ("letter-solved", "accuracy SET accuracy = 0.9 WHERE step = 6750 AND hop = 2"),
        ("number-hopwise", "accuracy SET accuracy = 0.95 WHERE hop = 4"),
        ("number-hopwise", "accuracy SET accuracy = 0.5 WHERE hop = 3"),
        ("letter-simultaneous", "accuracy SET accuracy = 0.95 WHERE hop = 1"),
        ("letter-simultaneous", "accuracy SET accuracy = 0.5 WHERE hop = 1"),
        ("scores-start-high", "head_scores SET symbolic_score = 0.9 WHERE step = 0 AND layer = 3"),
        ("number-positional-heads", "head_scores SET positional_score = 0.5 WHERE layer < 4"),
        ("number-positional-heads", "head_scores SET positional_score = 1.0, symbolic_score = 0.0 WHERE layer > 8"),
        ("number-symbolic-heads", "head_scores SET positional_score = 0.0, symbolic_score = 1.0 WHERE layer = 0"),
        ("letter-symbolic-heads", "head_scores SET positional_score = 0.2 WHERE layer > 6"),
        ("letter-no-positional-heads", "head_scores SET positional_score = 1.0, symbolic_score = 0.0 WHERE layer = 0"),
        ("purity-before-maximum", "head_scores SET symbolic_score = 0.5 WHERE step < 6750"),
        ("purity-before-maximum", "head_scores SET symbolic_score = 0.5"),
        ("reflexive-symbolic", "head_scores SET symbolic_score = 0.5 WHERE step = 6750 AND layer > 8"),
        ("number-fast-frequencies", "frequency_use SET mean = 20.0 WHERE step = 6750 AND frequency_id = 50"),
        ("number-fast-frequencies", "head_scores SET symbolic_score = 0.5"),
        ("number-slow-frequencies", "frequency_use SET mean = 90.0 WHERE step = 6750 AND frequency_id = 1"),
        ("letter-slow-frequencies", "frequency_use SET mean = 90.0 WHERE step = 6750 AND frequency_id = 64"),
    ],
)
def test_each_criterion_can_be_missed(editable, claim, edit):
    editable.begin()
    try:
        editable.execute(f"UPDATE {edit}")
        missed = claims(editable)[claim]
    finally:
        editable.rollback()
    assert missed["verdict"] == "not reproduced"
    assert missed["detail"]


def test_overview_has_a_row_for_every_run(made_up, nothing_ran):
    found = made_up.sql(
        "SELECT experiment, seed, lowest_accuracy, n_positional, positional_heads, wall_s FROM overview ORDER BY ALL"
    ).fetchall()
    assert len(found) == 10
    assert found[-1] == ("quick_number", 1, 1.0, 2, "L1 L2", 12.5)
    assert nothing_ran.sql("SELECT * FROM overview").fetchall() == []


@pytest.mark.parametrize(("excess", "verdict", "measured"), [(0.0, "reproduced", 1.0), (1e-6, "not reproduced", 0.5)])
def test_the_sharp_bound_holds_at_every_length_or_not(database, made_up_frames, excess, verdict, measured):
    named = made_up_frames["experiments"].head(1).with_columns(experiment=pl.lit("theory"), seed=pl.lit(0, pl.Int32))
    heights = pl.DataFrame({"length": [2, 9], "measured": [0.2, 0.3 + excess], "bound_sharp": [0.3, 0.3]})
    nothing = ("layer", "head", "measured_mean", "measured_min", "bound", "bound_corrected", "n")
    rows = heights.with_columns(
        *(pl.lit(None, pl.Float64).alias(name) for name in nothing),
        experiment=pl.lit("theory"), seed=0, source=pl.lit("index"), theta=0.8, in_range=pl.lit(True),
    )  # fmt: skip
    row = claims(database({"experiments": named, "discrepancy": rows}))["index-discrepancy-sharp"]
    assert (row["verdict"], row["measured"]) == (verdict, measured)
