"""Views and figures on length over made-up curves whose answers are known."""

import json

import numpy as np
import polars as pl
import pytest

import warehouse.charts.length as length_figure
import warehouse.charts.where_it_breaks as breaks_figure
from warehouse.charts import style
from warehouse.charts.figures import draw

LENGTHS = (17, 32, 64, 170, 340, 850, 2_000, 5_000)
HALVES_AT = {"number": 100.0, "letter": 4_000.0}  # tokens at which the made-up accuracy is 0.5
CLAIMS = ("letter-extrapolates", "number-does-not-extrapolate", "letter-beats-number-everywhere")


def accuracy(task, n):
    return 1 / (1 + (n / HALVES_AT[task]) ** 3)


def frames(base, experiments=("paper_number", "paper_letter"), seeds=(0,)):
    """Frames of made-up results with lengths added."""
    wanted = pl.col("experiment").is_in(experiments) & pl.col("seed").is_in(seeds)
    chosen = {name: frame.filter(wanted) for name, frame in base.items()}
    curve, by_prefix, heads = [], [], []
    for run in chosen["experiments"].to_dicts():
        owner = {"experiment": run["experiment"], "seed": run["seed"]}
        ways = [
            ("inert", "none", 6_750),
            ("inert", "none", 5_000),
            ("inert", "log_n", 6_750),
            ("active", "none", 6_750),
        ]
        for lengthening, inference, step in ways:
            for n in LENGTHS:
                for hop in (None, 1, 2):
                    share = accuracy(run["task"], n) * (0.5 if step == 5_000 else 1)
                    what = owner | {"step": step, "lengthening": lengthening, "inference": inference, "length": n,
                                    "hop": hop}  # fmt: skip
                    curve.append(
                        what
                        | {"accuracy": share, "ci_low": max(0.0, share - 0.02), "ci_high": min(1.0, share + 0.02),
                           "n": 4_096, "n_prefixes": 16}
                    )  # fmt: skip
                    by_prefix += [what | {"prefix": p, "n_right": int(256 * share), "n": 256} for p in range(2)]
        for layer in range(run["n_layers"]):
            loses_at = 100.0 * (layer + 1)
            for n in LENGTHS:
                for query in ("last", "hop"):
                    mass = 0.9 if n < loses_at else 0.2
                    heads.append(
                        owner
                        | {"step": 6_750, "layer": layer, "head": 0, "query": query, "length": n, "target_mass": mass,
                           "kept_share": mass, "lead": 4 * mass - 2, "discrepancy": 1.0, "least_discrepancy": 0.1,
                           "largest_discrepancy": 2.0, "n": 512}
                    )  # fmt: skip
    added = {"length_accuracy": curve, "length_accuracy_by_prefix": by_prefix, "length_heads": heads}
    return chosen | {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in added.items()}


@pytest.fixture(scope="module")
def lengths(tmp_path_factory, made_up_frames, build_database):
    import duckdb

    path = build_database(tmp_path_factory.mktemp("lengths"), frames(made_up_frames))
    with duckdb.connect(str(path)) as connection:
        yield connection


def claims(connection):
    relation = connection.sql("SELECT * FROM claims")
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    return {row["id"]: row for row in rows if row["id"] in CLAIMS}


def test_only_the_last_checkpoint_counts(lengths):
    ((value,),) = lengths.sql(
        "SELECT accuracy FROM length_curve WHERE task = 'letter' AND lengthening = 'inert' AND inference = 'none' "
        "AND hop IS NULL AND length = 850"
    ).fetchall()
    assert value == pytest.approx(accuracy("letter", 850))


def test_summary_finds_multiples_and_reach(lengths):
    (row,) = lengths.sql(
        "SELECT at_trained, at_2, at_10, at_50, reach, longest FROM length_summary "
        "WHERE task = 'letter' AND lengthening = 'inert' AND inference = 'none'"
    ).fetchall()
    expected = [accuracy("letter", n) for n in (17, 32, 170, 850)]
    assert row[:4] == pytest.approx(expected)
    assert row[4:] == (850, 5_000)
    ((reach,),) = lengths.sql(
        "SELECT reach FROM length_summary WHERE task = 'number' AND lengthening = 'inert' AND inference = 'none'"
    ).fetchall()
    assert reach == max(n for n in LENGTHS if accuracy("number", n) > 0.9)


def test_heads_break_at_the_first_length_with_less_than_half(lengths):
    found = lengths.sql(
        "SELECT layer, breaks_at, lost_at FROM head_breaks WHERE task = 'number' AND query = 'hop' ORDER BY layer"
    ).fetchall()
    for layer, breaks_at, lost_at in found:
        first = min(n for n in LENGTHS if n >= 100 * (layer + 1))
        assert (breaks_at, lost_at) == (first, first)
    assert len(found) == 12


def test_bounds_are_those_of_the_theorem(lengths):
    bounds = {
        (construction, statement): dict(
            lengths.execute(
                "SELECT length, bound FROM discrepancy_bounds WHERE construction = ? AND statement = ?",
                [construction, statement],
            ).fetchall()
        )
        for construction, statement in (("index", "as printed"), ("index", "corrected"), ("retrieval", "as printed"))
    }
    for n, bound in bounds["index", "as printed"].items():
        assert bound == pytest.approx(min(1 - np.cos(0.8), 2 * np.pi**2 / n**2))
    for n, bound in bounds["index", "corrected"].items():
        assert bound == pytest.approx(min(1 - np.cos(0.8), 2 * np.pi**2 / np.ceil((n - 1) / 2) ** 2))
    for n, bound in bounds["retrieval", "as printed"].items():
        omega = 2 * np.pi / 8
        assert bound == (pytest.approx(1 - np.cos(omega - 0.0027 * n)) if 0.0027 * n < omega else None)


def test_claims_on_length_are_decided_with_intervals(lengths):
    found = claims(lengths)
    assert {row["verdict"] for row in found.values()} == {"reproduced"}
    at_850 = accuracy("letter", 850)
    first = found["letter-extrapolates"]
    assert first["measured"] == pytest.approx(at_850)
    assert (first["interval_low"], first["interval_high"]) == pytest.approx((at_850 - 0.02, min(1, at_850 + 0.02)))
    assert found["letter-beats-number-everywhere"]["measured"] == 1.0


@pytest.mark.parametrize(
    ("claim", "edit"),
    [
        ("letter-extrapolates", "accuracy = 0.9 WHERE length = 850 AND experiment = 'paper_letter'"),
        ("number-does-not-extrapolate", "accuracy = 0.6 WHERE length = 340 AND experiment = 'paper_number'"),
        ("letter-beats-number-everywhere", "accuracy = 1.0 WHERE length = 64 AND experiment = 'paper_number'"),
    ],
)
def test_claims_on_length_can_be_missed(lengths, claim, edit):
    lengths.begin()
    try:
        lengths.execute(f"UPDATE length_accuracy SET {edit}")
        missed = claims(lengths)[claim]
    finally:
        lengths.rollback()
    assert missed["verdict"] == "not reproduced"


def test_quick_decides_only_which_task_is_ahead(database, made_up_frames):
    found = claims(database(frames(made_up_frames, ("quick_number", "quick_letter"), (0, 1))))
    assert {row["id"] for row in found.values() if row["verdict"] != "not run"} == {"letter-beats-number-everywhere"}
    assert found["letter-beats-number-everywhere"]["n_runs"] == 2


def test_figures_show_every_curve_and_head(lengths):
    spec = json.loads(draw(lengths, length_figure, "paper").spec)
    rows = [row for data in spec["datasets"].values() for row in data]
    assert {row["experiment"] for row in rows if "experiment" in row} == {"paper_number", "paper_letter"}
    assert {"plain", "logits × ln n", "plain, answer anywhere"} == {row["series"] for row in rows if "series" in row}
    assert {row["construction"] for row in rows if "construction" in row} == {"index", "retrieval"}
    spec = json.loads(draw(lengths, breaks_figure, "paper").spec)
    rows = [row for data in spec["datasets"].values() for row in data]
    assert {row["name"] for row in rows if "name" in row} == {f"L{layer}" for layer in range(12)}


def test_heads_whose_kind_differs_between_seeds_have_their_line(made_up_frames, database):
    base = frames(made_up_frames, ("quick_number",), (0, 1))
    other = pl.col("seed") == 1
    made_up = {**base, "head_scores": base["head_scores"].with_columns(
        pl.when(other).then(pl.lit(0.5)).otherwise(pl.col("positional_score", "symbolic_score")).name.keep()
    )}  # fmt: skip
    connection = database(made_up)
    kinds = {kind for (kind,) in connection.sql("SELECT DISTINCT kind FROM where_it_breaks").fetchall()}
    assert any(" or " in kind for kind in kinds)
    spec = json.loads(draw(connection, breaks_figure, "quick").spec)
    lines = [row for data in spec["datasets"].values() for row in data if "lead" in row and "colour" in row]
    assert {row["kind"] for row in lines} == kinds
    assert {row["colour"] for row in lines if " or " in row["kind"]} == {style.NEUTRAL}

    def panels(chart):
        for part in ("vconcat", "hconcat"):
            for child in chart.get(part, ()):
                yield child
                yield from panels(child)

    leads = [p for p in panels(spec) if any(layer["mark"].get("type") == "line" for layer in p.get("layer", ()))]
    assert leads
    for panel in leads:
        for layer in panel["layer"]:
            if layer["mark"]["type"] in ("line", "text"):
                assert layer["encoding"]["color"] == {"field": "colour", "scale": None, "type": "nominal"}


def test_no_two_of_twenty_curves_look_alike():
    names = [f"e{i}" for i in range(20)]
    points = [
        {"experiment": name, "length": n, "accuracy": 0.5, "low": 0.4, "high": 0.6} for name in names for n in LENGTHS
    ]
    (line,) = length_figure._accuracy(points, names).to_dict()["layer"]  # and no bands
    scales = [line["encoding"][channel]["scale"] for channel in ("color", "strokeDash")]
    assert all(scale["domain"] == names for scale in scales)
    looks = {(colour, tuple(dash)) for colour, dash in zip(*(scale["range"] for scale in scales), strict=True)}
    assert len(looks) == 20


def test_experiments_with_other_changes_and_hops_have_the_colours_of_the_key(made_up_frames, database):
    base = frames(made_up_frames, ("quick_number", "quick_letter"), (0,))
    lengths = base["length_accuracy"]
    number = pl.col("experiment") == "quick_number"
    kept = ~(number & ((pl.col("inference") == "log_n") | pl.col("hop").eq_missing(1)))
    spec = json.loads(draw(database(base | {"length_accuracy": lengths.filter(kept)}), length_figure, "quick").spec)

    def scales(value, field):
        if isinstance(value, dict):
            if value.get("field") == field and "scale" in value:
                yield value["scale"]["domain"], value["scale"]["range"]
            for item in value.values():
                yield from scales(item, field)
        elif isinstance(value, list):
            for item in value:
                yield from scales(item, field)

    changes = list(scales(spec, "series"))
    names = list(length_figure.CHANGES.values())
    tried = ["plain", "logits × ln n", "plain, answer anywhere"]
    assert len(changes) >= 4  # two panels of bands and lines
    assert all(scale == (tried, [style.PALETTE[names.index(name)] for name in tried]) for scale in changes)
    hops = list(scales(spec, "hops"))
    assert len(hops) >= 4
    assert all(scale == (["1 hop", "2 hops"], [style.hop_colour(1), style.hop_colour(2)]) for scale in hops)
