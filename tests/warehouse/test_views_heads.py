"""Views on heads, accuracy and frequencies against plain Python over the same rows."""

import math

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.catalog import views

RUN = ["experiment", "seed"]
GAMMAS = (0.1, 0.05)


def rows(connection, query):
    relation = connection.sql(query)
    return [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]


def view_over(name: str, **frames: pl.DataFrame):
    """Rows of a view (and those it reads) over frames as tables, without a store."""
    selects = {view.name: view.select for view in views()}
    with duckdb.connect() as connection:
        for table, frame in frames.items():
            connection.register("rows", frame.to_arrow())
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
        for needed in (*NEEDS.get(name, ()), name):
            connection.execute(f"CREATE VIEW {needed} AS {selects[needed]}")
        return rows(connection, f"SELECT * FROM {name}")


NEEDS = {"head_purity": ("head_scores_default", "head_purity_by_setting")}


def pure_since(series, gamma, kind):
    """First step of the last unbroken stretch of purity that reaches the end, or None: walk back from the end."""
    since = None
    for step, positional, symbolic in sorted(series, reverse=True):
        if positional is None or symbolic is None:
            break
        high, low = (positional, symbolic) if kind == "positional" else (symbolic, positional)
        if not (high >= 1 - gamma and low <= gamma):
            break
        since = step
    return since


near = st.one_of(
    st.sampled_from([0.0, 0.05, 0.1, 0.9, 0.95, 1.0, math.nextafter(0.9, 0), math.nextafter(0.1, 1)]),
    st.floats(-1, 1),
    st.none(),
)
curves = st.lists(st.lists(st.tuples(near, near), min_size=1, max_size=8), min_size=1, max_size=4)


def head_scores(curves_by_head):
    return pl.DataFrame(
        [
            {
                "experiment": "e", "seed": 0, "step": 50 * i, "layer": layer, "head": 0, "query": query, "tau": tau,
                "positional_score": p, "symbolic_score": s, "entropy": 1.0, "own_mass": 0.0, "negligible_mass": 0.0,
                "n": 1,
            }
            for layer, curve in enumerate(curves_by_head)
            for i, (p, s) in enumerate(curve)
            for query, tau in (("last", 1e-4), ("last", 1e-2), ("hop", 1e-4))
        ],
        schema_overrides={"positional_score": pl.Float64, "symbolic_score": pl.Float64},
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(curves)
def test_purity_is_the_last_unbroken_stretch(curves_by_head):
    found = {
        (row["layer"], row["gamma"]): (row["kind"], row["since_step"])
        for row in view_over("head_purity", head_scores=head_scores(curves_by_head))
    }
    expected = {}
    for layer, curve in enumerate(curves_by_head):
        series = [(50 * i, p, s) for i, (p, s) in enumerate(curve)]
        for gamma in GAMMAS:
            since = {kind: pure_since(series, gamma, kind) for kind in ("positional", "symbolic")}
            kind = next((kind for kind, step in since.items() if step is not None), "mixed")
            expected[layer, gamma] = (kind, since.get(kind))
    assert found == expected


def test_a_purity_that_broke_does_not_count():
    broken = [(1.0, 0.0), (0.5, 0.5), (0.95, 0.08)]
    kinds = {row["gamma"]: row for row in view_over("head_purity", head_scores=head_scores([broken]))}
    assert (kinds[0.1]["kind"], kinds[0.1]["since_step"]) == ("positional", 100)
    assert (kinds[0.05]["kind"], kinds[0.05]["since_step"]) == ("mixed", None)


def test_purity_has_a_row_for_every_head_and_gamma(made_up, made_up_frames):
    heads = made_up_frames["head_scores"].select("experiment", "seed", "layer", "head").unique().height
    assert rows(made_up, "SELECT count(*) AS n FROM head_purity")[0]["n"] == heads * len(GAMMAS)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.9989, 0.9990, 0.9995, 1.0]), min_size=1, max_size=10))
def test_moment_and_thresholds(curve):
    accuracy = pl.DataFrame(
        [
            {"experiment": "e", "seed": 3, "step": 50 * i, "split": split, "hop": hop, "accuracy": value, "n": 1}
            for i, value in enumerate(curve)
            for split, hop in (("test", None), ("test", 1), ("val", None))
        ],
        schema_overrides={"hop": pl.Int32},
    )
    (moment,) = view_over("moment_of_maximal_accuracy", accuracy=accuracy)
    first = next(i for i, value in enumerate(curve) if value >= max(curve) - 0.001)
    assert (moment["step"], moment["accuracy"], moment["maximum"]) == (50 * first, curve[first], max(curve))
    (threshold,) = view_over("hop_threshold_steps", accuracy=accuracy)
    reached = [50 * i for i, value in enumerate(curve) if value >= 0.9]
    assert threshold["step"] == (reached[0] if reached else None)
    assert threshold["last_step"] == 50 * (len(curve) - 1)


def test_weighted_frequency_ids(made_up, made_up_frames):
    by_head = made_up_frames["frequency_use"].group_by("experiment", "seed", "step", "layer", "head")
    u, k = pl.col("mean"), pl.col("frequency_id")
    expected = by_head.agg(linear=(u * k).sum() / u.sum(), squared=(u**2 * k).sum() / (u**2).sum())
    key = ["experiment", "seed", "step", "layer", "head"]
    found = {tuple(row[c] for c in key): row for row in rows(made_up, "SELECT * FROM frequency_summary")}
    assert len(found) == expected.height
    for row in expected.to_dicts():
        got = found[tuple(row[c] for c in key)]
        assert got["weighted_id_linear"] == pytest.approx(row["linear"], rel=1e-12)
        assert got["weighted_id_squared"] == pytest.approx(row["squared"], rel=1e-12)


def test_a_head_without_planes_has_no_weighted_id():
    use = pl.DataFrame(
        {"experiment": "e", "seed": 0, "step": 0, "layer": 0, "head": 0, "frequency_id": [1, 2], "mean": [0.0, 0.0]}
    )
    (row,) = view_over("frequency_summary", frequency_use=use)
    assert row["weighted_id_linear"] is None
    assert row["weighted_id_squared"] is None


def test_entropy_spans_zero_to_one_over_training(made_up, made_up_frames):
    layers = made_up_frames["head_scores"].filter(query="last", tau=1e-4).select(*RUN, "step", "layer", "entropy")
    low, high = pl.col("entropy").min().over(*RUN, "layer"), pl.col("entropy").max().over(*RUN, "layer")
    expected = layers.with_columns(normalised=(pl.col("entropy") - low) / (high - low))
    found = {
        (r["experiment"], r["seed"], r["step"], r["layer"]): r["normalised"]
        for r in rows(made_up, "SELECT * FROM normalised_entropy")
    }
    assert len(found) == expected.height
    for row in expected.to_dicts():
        assert found[row["experiment"], row["seed"], row["step"], row["layer"]] == pytest.approx(row["normalised"])


def test_shares_of_a_layer_sum_to_one(made_up):
    sums = rows(made_up, "SELECT sum(share) AS total FROM frequency_share GROUP BY experiment, layer, head")
    assert [row["total"] for row in sums] == pytest.approx([1.0] * len(sums))


def test_the_papers_values_stand_beside_models_of_its_size_only(made_up):
    compared = rows(made_up, "SELECT * FROM frequency_comparison ORDER BY experiment, layer")
    paper = {(r["experiment"], r["layer"]): r["paper_id"] for r in compared}
    assert paper["paper_number", 5] == 39
    assert paper["paper_letter", 0] == 18
    assert all(value is None for (experiment, _), value in paper.items() if experiment.startswith("quick"))


def test_no_value_of_the_paper_stands_beside_planes_that_repeat_frequencies(database, made_up_frames):
    listed = (
        pl.when(pl.col("experiment") == "paper_number")
        .then(pl.lit('{"model": {"plane_frequencies": [1, 1]}}'))
        .otherwise("spec")
    )
    frames = made_up_frames | {"experiments": made_up_frames["experiments"].with_columns(spec=listed)}
    compared = rows(database(frames), "SELECT experiment, paper_id FROM frequency_comparison")
    assert {r["paper_id"] for r in compared if r["experiment"] == "paper_number"} == {None}
    assert None not in {r["paper_id"] for r in compared if r["experiment"] == "paper_letter"}


def test_pure_heads_are_counted_from_their_step_on(made_up):
    purity = rows(made_up, "SELECT * FROM head_purity WHERE gamma = 0.1::DOUBLE")
    for count in rows(made_up, "SELECT * FROM purity_counts WHERE gamma = 0.1::DOUBLE"):
        mine = [p for p in purity if (p["experiment"], p["seed"]) == (count["experiment"], count["seed"])]
        assert count["n_pure"] == sum(p["kind"] == count["kind"] and p["since_step"] <= count["step"] for p in mine)
        assert count["n_heads"] == len(mine)


def test_learning_dynamics_bands_span_the_seeds(made_up, made_up_frames):
    points = rows(made_up, "SELECT * FROM learning_dynamics WHERE panel = 'accuracy'")
    raw = made_up_frames["accuracy"].filter(pl.col("hop").is_not_null())
    expected = raw.group_by("experiment", "hop", "step").agg(
        pl.col("accuracy").mean().alias("value"), pl.col("accuracy").min().alias("low"),
        pl.col("accuracy").max().alias("high"), pl.len().alias("n"),
    )  # fmt: skip
    found = {(p["experiment"], p["hop"], p["step"]): p for p in points}
    assert len(found) == expected.height == len(points)
    for row in expected.to_dicts():
        p = found[row["experiment"], row["hop"], row["step"]]
        assert (p["low"], p["high"], p["n_seeds"]) == (row["low"], row["high"], row["n"])
        assert p["value"] == pytest.approx(row["value"])
