"""Views, claims and figures of ablation and the canonical tasks over made-up results in which every claim holds."""

import json
import math
import shutil

import duckdb
import polars as pl
import pytest
import vl_convert

from ops.spec.ablation import AblationSpec, SlidingBandSpec
from warehouse.charts import (
    ablation,
    ablation_cumulative,
    canonical_angles,
    canonical_planes,
    canonical_positions,
    restricted_training,
)
from warehouse.charts.drawing import VEGA_LITE
from warehouse.charts.figures import draw, draw_all

N, LAYERS, LENGTH = 64, 12, 8
EVERY = list(range(LAYERS))
CANONICAL = ("index", "retrieval", "partial_induction")
FIGURES = {
    ablation: ("paper", {"rect", "rule"}),
    ablation_cumulative: ("paper", {"area", "line"}),
    restricted_training: ("frequency", {"rect", "text"}),
    canonical_angles: ("canonical", {"area", "line", "rule"}),
    canonical_positions: ("canonical", {"rect", "line"}),
    canonical_planes: ("canonical", {"point"}),
}


def experiment(name: str, study: str, task: str, seed: int, trained: bool = True) -> dict:
    present, rotating = list(range(1, N + 1)), list(range(1, 17 if "p_rope" in name else N + 1))
    model = {"frequencies_present": present, "frequencies_rotating": rotating, "nope_from_layer": None}
    return {
        "experiment": name, "seed": seed, "task": task, "study": study, "n_layers": LAYERS if trained else None,
        "n_heads": 1 if trained else None, "width": 128 if trained else None, "sequence_length": 17, "hops": [1, 2],
        "frequencies": rotating, "n_parameters": 10, "spec": json.dumps({"model": model}), "key": "0" * 64,
    }  # fmt: skip


def ablated(task: str, mode: str, low: int, high: int, layers: list[int]) -> float:
    """What the theory predicts: the number task dies with the fast rotation below layer 6, the letter task does not."""
    if mode == "none":
        return 1.0
    if task == "number":
        return 0.1 if low <= 8 and min(layers) < 6 and len(layers) >= 6 else 1.0
    return 0.9 if mode == "remove" and low <= 33 and high == N and len(layers) == LAYERS else 1.0


def made_up() -> dict[str, pl.DataFrame]:
    rows: dict[str, list[dict]] = {
        name: []
        for name in (
            "experiments",
            "frequency_ablation",
            "ablation_scores",
            "accuracy",
            "canonical_accuracy",
            "canonical_plane",
        )
    }
    bands = [(i, i + 7) for i in range(1, N, 8)] + [(1, 32), (33, N), (1, N)]
    places = [[layer] for layer in EVERY] + [EVERY[:6], EVERY[6:], EVERY]
    for task in ("number", "letter"):
        for seed in (0, 1):
            own = {"experiment": f"paper_{task}", "seed": seed}
            rows["experiments"].append(experiment(f"paper_{task}", "paper", task, seed))
            points = [("none", None, None, [])]
            points += [(mode, *band, place) for mode in ("freeze", "remove") for band in bands for place in places]
            for mode, low, high, layers in points:
                what = {
                    "step": 6_750,
                    "mode": mode,
                    "band_low": low,
                    "band_high": high,
                    "layers": layers,
                    "heads": None,
                }
                value = ablated(task, mode, low or 0, high or 0, layers or [0])
                rows["frequency_ablation"] += [
                    own | what | {"hop": hop, "accuracy": value, "n": 400} for hop in (None, 1, 2)
                ]
                if (low, high) in ((None, None), (1, 8)) and len(layers) <= 1 and mode in ("none", "freeze"):
                    for layer in layers or EVERY:
                        kind = task == "number" and layer < 4
                        pos = (0.2 if mode == "freeze" else 1.0) if kind else 0.0
                        rows["ablation_scores"].append(
                            own | what | {"layer": layer, "head": 0, "tau": 1e-4, "positional_score": pos,
                                          "symbolic_score": 0.0 if kind else 1.0, "n": 50}
                        )  # fmt: skip
            for variant in ("all", "p_rope_75"):
                name = f"frequency_{task}_{variant}"
                rows["experiments"].append(experiment(name, "frequency", task, seed))
                rows["accuracy"] += [
                    {
                        "experiment": name,
                        "seed": seed,
                        "step": 10,
                        "split": "test",
                        "hop": hop,
                        "accuracy": 0.9,
                        "loss": 0.1,
                        "n": 9,
                    }
                    for hop in (None, 1, 2)
                ]
    for task in CANONICAL:
        for seed in (0, 1, 2):
            name = f"canonical_{task}"
            rows["experiments"].append(experiment(name, "canonical", task, seed, trained=False))
            for ids in ([0], [1], [17], [21], [49], [0, 33]):
                rows["canonical_accuracy"] += canonical(task, ids, {"experiment": name, "seed": seed})
            for source in ("trained", "construction"):
                for role, item in (("key", None), ("key", 1), ("query", 1)):
                    place = {"source": source, "role": role, "item_id": item, "token": "t", "x": 0.5, "y": -0.5}
                    head = {
                        "canonical_task": task,
                        "length": LENGTH,
                        "frequency_ids": [17],
                        "frequency_id": 17,
                        "plane": 1,
                        "theta": 0.1,
                    }
                    rows["canonical_plane"].append({"experiment": name, "seed": seed} | head | place)
    return {name: pl.DataFrame(records, infer_schema_length=None) for name, records in rows.items()}


def canonical(task: str, ids: list[int], own: dict) -> list[dict]:
    thetas = [0.0 if i == 0 else 10_000 ** (-(i - 1) / N) for i in ids]
    theta = thetas[0]
    level = {
        "index": 1.0 if theta > 0.5 else 0.5 if theta > 0.03 else 0.2,
        "retrieval": 0.3 if theta > 0.5 else 0.6 if theta > 0.03 else 1.0,
        "partial_induction": 1.0 if len(ids) == 2 else 0.8,
    }[task]
    bend = 0.1 if level in (0.5, 0.6) else 0.0
    base = own | {"canonical_task": task, "length": LENGTH, "frequency_ids": ids, "thetas": thetas, "chance": 0.125}
    rows = [
        base | {"answer_position": None, "accuracy": level, "positional_score": 0.5, "symbolic_score": 0.6, "n": 80}
    ]
    for position in range(LENGTH):
        sign = 1 if (position < 2 or position >= 6) == (task == "index") else -1
        rows.append(
            base
            | {
                "answer_position": position,
                "accuracy": level + sign * bend,
                "positional_score": None,
                "symbolic_score": None,
                "n": 10,
            }
        )
    return rows


@pytest.fixture(scope="module")
def path(build_database, tmp_path_factory):
    return build_database(tmp_path_factory.mktemp("ablation"), made_up())


@pytest.fixture(scope="module")
def connection(path):
    with duckdb.connect(str(path), read_only=True) as opened:
        yield opened


def test_every_claim_and_prediction_is_decided(connection):
    found = dict(connection.sql("SELECT id, verdict FROM claims WHERE verdict <> 'not run'").fetchall())
    assert {name: found.get(name) for name in CLAIMS} == dict.fromkeys(CLAIMS, "reproduced")
    low, high, n = connection.sql(
        "SELECT interval_low, interval_high, n_runs FROM claims WHERE id = 'index-u-shape'"
    ).fetchall()[0]
    assert (low, high, n) == (pytest.approx(0.2), pytest.approx(0.2), 3)


CLAIMS = (
    "index-needs-fast",
    "index-u-shape",
    "retrieval-needs-slow",
    "retrieval-inverse-u-shape",
    "partial-induction-needs-two",
    "number-needs-fast-rotation",
    "number-later-layers-survive",
    "letter-survives-freezing",
    "letter-needs-slow-content",
    "positional-scores-need-fast-rotation",
    "symbolic-scores-survive-freezing",
)


@pytest.fixture(scope="module")
def writable(path, tmp_path_factory):
    with duckdb.connect(shutil.copy(path, tmp_path_factory.mktemp("writable") / "warehouse.duckdb")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("claim", "edit"),
    [
        ("index-needs-fast", "canonical_accuracy SET accuracy = 0.5"),
        ("index-u-shape", "canonical_accuracy SET accuracy = 0.5"),
        ("retrieval-needs-slow", "canonical_accuracy SET accuracy = 0.5"),
        ("retrieval-inverse-u-shape", "canonical_accuracy SET accuracy = 0.5"),
        ("partial-induction-needs-two", "canonical_accuracy SET accuracy = 1.0"),
        ("number-needs-fast-rotation", "frequency_ablation SET accuracy = 1.0"),
        ("number-later-layers-survive", "frequency_ablation SET accuracy = 0.1 WHERE mode <> 'none'"),
        ("letter-survives-freezing", "frequency_ablation SET accuracy = 0.1 WHERE mode <> 'none'"),
        ("letter-needs-slow-content", "frequency_ablation SET accuracy = 1.0"),
        ("positional-scores-need-fast-rotation", "ablation_scores SET positional_score = 0.95 WHERE mode <> 'none'"),
        ("symbolic-scores-survive-freezing", "ablation_scores SET symbolic_score = 0.5 WHERE mode <> 'none'"),
    ],
)
def test_every_claim_and_prediction_can_be_missed(writable, claim, edit):
    writable.begin()
    try:
        writable.execute(f"UPDATE {edit}")
        verdict = writable.execute("SELECT verdict FROM claims WHERE id = ?", [claim]).fetchall()
    finally:
        writable.rollback()
    assert verdict == [("not reproduced",)]


def test_restricted_training_is_known_by_its_models_not_by_its_name(writable):
    writable.begin()
    try:
        writable.execute("UPDATE experiments SET study = 'mine' WHERE study = 'frequency'")
        found = writable.sql("SELECT DISTINCT study, experiment FROM restricted_training").fetchall()
    finally:
        writable.rollback()
    assert {study for study, _ in found} == {"mine"}  # none of the study paper, whose models have every frequency
    assert {experiment for _, experiment in found} == {
        f"frequency_{task}_{variant}" for task in ("number", "letter") for variant in ("all", "p_rope_75")
    }


def test_planes_of_a_model_that_rotates_in_no_layer_do_not_rotate(writable):
    writable.begin()
    try:
        writable.execute(
            """UPDATE experiments SET spec = json_merge_patch(spec, '{"model": {"nope_from_layer": 0}}')
            WHERE experiment = 'frequency_number_all'"""
        )
        found = writable.sql(
            "SELECT DISTINCT n_present, n_rotating FROM restricted_training WHERE experiment = 'frequency_number_all'"
        ).fetchall()
    finally:
        writable.rollback()
    assert found == [(N, 0)]


def test_a_study_whose_planes_repeat_frequencies_is_a_restricted_one(writable):
    writable.begin()
    try:
        writable.execute(
            """UPDATE experiments SET study = 'mine', spec = json_merge_patch(
                json_merge_patch(spec, '{"model": {"frequencies_rotating": [1, 2]}}'),
                '{"model": {"frequencies_present": [1, 2], "plane_frequencies": [3, 3]}}'
            ), width = 4 WHERE experiment = 'frequency_number_all'"""
        )
        found = writable.sql("SELECT DISTINCT study, n_present, n_rotating FROM restricted_training").fetchall()
    finally:
        writable.rollback()
    assert ("mine", 2, 2) in found


def test_a_point_has_its_place_and_a_wilson_interval(connection):
    rows = connection.sql(
        "SELECT place, scope, accuracy, ci_low, ci_high, n, change FROM ablation_accuracy "
        "WHERE experiment = 'paper_number' AND seed = 0 AND mode = 'freeze' AND band = '1-8' AND hop IS NULL "
        "ORDER BY len(layers), layers"
    ).fetchall()
    assert [row[0] for row in rows] == [*(f"L{i}" for i in EVERY), "L0-L5", "L6-L11", "all"]
    place, scope, p, low, high, n, change = rows[-1]
    z = 1.96
    middle, half = (p + z * z / (2 * n)), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert (place, scope, change) == ("all", "all layers", pytest.approx(-0.9))
    assert (low, high) == (
        pytest.approx((middle - half) / (1 + z * z / n), abs=1e-4),
        pytest.approx((middle + half) / (1 + z * z / n), abs=1e-4),
    )


def test_cumulative_curves_begin_with_the_intact_model_and_end_with_all_planes(connection):
    for end in ("fast", "slow"):
        points = connection.sql(
            "SELECT n_ids, accuracy FROM ablation_cumulative WHERE experiment = 'paper_number' AND mode = 'freeze' "
            f"AND hop IS NULL AND from_end = '{end}' ORDER BY n_ids"
        ).fetchall()
        assert points[0] == (0, pytest.approx(1.0))
        assert points[-1] == (N, pytest.approx(0.1))


def test_restricted_models_are_told_apart(connection):
    found = connection.sql(
        "SELECT DISTINCT variant, n_present, n_rotating FROM restricted_training ORDER BY ALL"
    ).fetchall()
    assert found == [("all", 64, 64), ("p_rope_75", 64, 16)]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.NAME)
def test_a_figure_has_its_marks_and_can_be_drawn(connection, figure):
    study, marks = FIGURES[figure]
    drawing = draw(connection, figure, study)
    spec = json.loads(drawing.spec, parse_constant=lambda name: pytest.fail(f"{name} in {drawing.stem}"))
    assert marks <= set(_marks(spec))
    assert 100 < len(drawing.caption) < 1_500
    assert vl_convert.vegalite_to_svg(drawing.spec, vl_version=VEGA_LITE).startswith("<svg")


def _marks(value):
    if isinstance(value, dict):
        mark = value.get("mark")
        yield from [mark["type"] if isinstance(mark, dict) else mark] if mark else []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _marks(item)


def test_each_study_has_the_figures_that_it_has_rows_for(connection):
    drawn = {(drawing.name, drawing.study) for drawing in draw_all(connection)}
    for figure, (study, _) in FIGURES.items():
        assert {place for name, place in drawn if name == figure.NAME} == {study}
    assert {place for name, place in drawn if name == "score_plane"} == {None}


def test_the_map_shows_sliding_bands_and_not_the_cumulative_ones_that_also_tile(connection):
    """Halves and the whole tile the IDs as well, but say nothing of where; letter loses nothing to any band."""
    drawn = connection.sql("SELECT DISTINCT width FROM ablation_by_band WHERE drawn").fetchall()
    assert drawn == [(8,)]


@pytest.mark.parametrize(
    ("width", "every", "lows"),
    [
        (8, 8, [1, 9, 17, 25, 33, 41, 49, 57]),
        (12, 12, [1, 13, 25, 37, 49, 53]),  # 12 does not divide 64: the last band overlaps the one before
        (16, 8, [1, 17, 33, 49]),  # of overlapping bands every second one
        (8, 5, [1, 11, 21, 31, 41, 51, 57]),
        (1, 20, [1, 21, 41, 61, 64]),  # with gaps
    ],
)
def test_any_sliding_bands_are_drawn(database, width, every, lows):
    bands = SlidingBandSpec(width=width, every=every).bands(N)
    spec = AblationSpec(cumulative=(3, 48), sliding=())
    shown = with_bands([*bands, *spec.bands(N)], [([layer], None) for layer in EVERY] + [([2], [1])])
    connection = database(shown)
    drawn = connection.sql("SELECT DISTINCT band_low, width FROM ablation_by_band WHERE drawn ORDER BY ALL").fetchall()
    assert drawn == [(low, width) for low in lows]
    assert set(lows) <= {low for low, _ in bands}
    rows = [row for data in json.loads(draw(connection, ablation, "paper").spec)["datasets"].values() for row in data]
    places = list(dict.fromkeys(row["place"] for row in rows if "place" in row))
    assert places == ["L0", "L1", "L2", "L2H1", *(f"L{layer}" for layer in range(3, LAYERS))]


def with_bands(bands, places) -> dict[str, pl.DataFrame]:
    """One run whose planes were frozen in these bands and places."""
    points = [("none", None, None, [], None)] + [
        ("freeze", *band, *place) for band in dict.fromkeys(bands) for place in places
    ]
    names = ("mode", "band_low", "band_high", "layers", "heads")
    own = {"experiment": "paper_number", "seed": 0, "step": 6_750, "accuracy": 0.9, "n": 400}
    rows = [dict(zip(names, point, strict=True)) | own | {"hop": hop} for point in points for hop in (None, 1, 2)]
    return {
        "experiments": pl.DataFrame([experiment("paper_number", "paper", "number", 0)]),
        "frequency_ablation": pl.DataFrame(rows, infer_schema_length=None),
    }


def test_the_intact_end_of_a_cumulative_curve_has_its_interval(connection):
    ends = connection.sql(
        "SELECT accuracy, ci_low, ci_high FROM ablation_cumulative WHERE n_ids = 0 AND hop IS NULL"
    ).fetchall()
    assert ends
    for accuracy, low, high in ends:
        assert (accuracy, high) == (1.0, pytest.approx(1.0, abs=1e-4))
        assert low == pytest.approx(400 / (400 + 1.96**2), abs=1e-4)  # Wilson at a share of 1
