"""Figures: valid Vega-Lite with the marks that carry the message, pictures, no NaN, nothing without data crashes."""

import json
from functools import cache
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest
import vl_convert

import warehouse.charts
from assets import charts as charts_asset
from warehouse.catalog import views
from warehouse.charts import style
from warehouse.charts.drawing import VEGA_LITE, load
from warehouse.charts.figures import FIGURES, digest, draw, draw_all, find, queries, save_all
from warehouse.code import modules_of

STUDIES = ("quick", "paper")
MARKS = {
    "learning_dynamics": {"area", "line", "rule", "text"},
    "final_accuracy": {"rule", "point"},
    "score_plane": {"rect", "trail", "point", "text"},
    "frequency_use": {"rect", "rule", "point", "text"},
    "shortcuts": {"rect", "text"},
    "training_loss": {"area", "line"},
    "lm_length_accuracy": {"line", "rule"},  # the paper's own values need no run
}


def walk(value):
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(item)


def marks(spec):
    return {
        m if isinstance(m, str) else m["type"] for part in walk(spec) if isinstance(part, dict) for m in _mark(part)
    }


def _mark(part):
    mark = part.get("mark")
    return [mark] if isinstance(mark, dict) or ("encoding" in part and isinstance(mark, str)) else []


@pytest.fixture(scope="module")
def drawn(made_up):
    """A function from figure and study to its drawing; each is drawn once, when first asked for."""
    by_name = {figure.NAME: figure for figure in FIGURES}
    return cache(lambda name, study: draw(made_up, by_name[name], study))


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.NAME)
def test_a_figure_has_its_marks_and_only_finite_numbers(drawn, figure, study):
    drawing = drawn(figure.NAME, study)
    spec = json.loads(drawing.spec, parse_constant=lambda name: pytest.fail(f"{name} in {drawing.stem}"))
    assert spec["title"]["text"] == figure.TITLE
    assert spec["title"]["text"].endswith("?")
    assert MARKS.get(figure.NAME, {"text"}) <= marks(spec)  # others have no made-up rows here, and tests of their own
    assert drawing.stem == f"{figure.NAME}_{study}"
    assert 100 < len(drawing.caption) < 1_500
    assert vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE)["marks"]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.NAME)
def test_a_figure_reads_views_that_exist_and_names_them(figure):
    declared = {view.name for view in views()}
    assert set(figure.VIEWS) <= declared
    assert read_by(figure) & declared <= set(figure.VIEWS)
    first, *_ = figure.READS.values()
    assert ("{study}" in first) == figure.PER_STUDY


def read_by(figure):
    """Names of the tables and views that a figure's queries read, by DuckDB's own parser."""
    names = set()
    with duckdb.connect() as parser:
        for sql in queries(figure, None).values():
            (text,) = parser.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0]
            found = [node for node in walk(json.loads(text)) if isinstance(node, dict)]
            names |= {node["table_name"] for node in found if node.get("type") == "BASE_TABLE"}
    assert names
    return names


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.NAME)
def test_a_drawing_keeps_the_rows_that_it_was_drawn_from_as_they_were_read(drawn, figure):
    drawing = drawn(figure.NAME, "quick")
    assert list(drawing.rows) == list(drawing.sql) == list(figure.READS)
    assert drawing.rows_digest == digest(drawing.rows)  # taken before the chart was made
    assert figure.caption(drawing.rows) == drawing.caption


def test_the_sql_of_a_drawing_gives_its_rows_and_only_those_of_its_study(made_up, drawn):
    for study in STUDIES:
        drawing = drawn("learning_dynamics", study)
        for name, sql in drawing.sql.items():
            assert digest({name: style.rows(made_up, sql)}) == digest({name: drawing.rows[name]})
        assert {row["experiment"] for row in drawing.rows["spans"]} == {f"{study}_number", f"{study}_letter"}
    assert drawn("learning_dynamics", "quick").rows_digest != drawn("learning_dynamics", "paper").rows_digest


def test_a_study_may_have_any_name(made_up_frames, database):
    frames = {
        name: frame.filter(pl.col("experiment").str.starts_with("quick") & (pl.col("seed") == 0))
        for name, frame in made_up_frames.items()
    }
    name = "o'clock' OR 'a' = 'a"
    renamed = frames["experiments"].with_columns(
        pl.when(pl.col("task") == "number").then(pl.lit(name)).otherwise("study").alias("study")
    )
    (figure,) = [figure for figure in FIGURES if figure.NAME == "shortcuts"]
    drawing = draw(database(frames | {"experiments": renamed}), figure, name)
    assert {row["experiment"] for row in drawing.rows["cells"]} == {"quick_number"}


def test_a_digest_of_rows_sees_values_and_not_the_order_of_a_sum():
    rows = {"points": [{"experiment": "a", "value": 0.1 + 0.2, "layers": [1, 2]}]}
    assert digest(rows) == digest({"points": [{"experiment": "a", "value": 0.3, "layers": [1, 2]}]})
    assert digest(rows) != digest({"points": [{"experiment": "a", "value": 0.3001, "layers": [1, 2]}]})
    assert digest(rows) != digest({"points": [{"experiment": "a", "value": 0.3, "layers": [1, 3]}]})
    assert digest(rows) != digest({"points": []})


def test_a_module_in_the_folder_is_a_figure(tmp_path, monkeypatch):
    (tmp_path / "probe_figure.py").write_text('NAME = "probe"\nORDER = 117\n\n\ndef chart(found):\n    return found\n')
    (tmp_path / "probe_help.py").write_text("NAME = 'no figure'\n")
    monkeypatch.setattr(warehouse.charts, "__path__", [*warehouse.charts.__path__, str(tmp_path)])
    names = [figure.NAME for figure in find()]
    assert names[:4] == ["learning_dynamics", "final_accuracy", "probe", "score_plane"]
    assert sorted(names) == sorted(["probe", *(figure.NAME for figure in FIGURES)])


def test_places_and_names_are_each_figures_own():
    assert len({figure.ORDER for figure in FIGURES}) == len({figure.NAME for figure in FIGURES}) == len(FIGURES)


def test_the_key_of_the_charts_covers_every_figure_and_not_the_report():
    covered = set(modules_of(charts_asset.CODE))
    assert {figure.__name__ for figure in FIGURES} <= covered  # pyright: ignore[reportAttributeAccessIssue]
    assert "warehouse.charts.report" not in covered


def test_a_figure_whose_first_query_finds_nothing_is_not_drawn_for_the_study(made_up, monkeypatch):
    """Whatever its other queries find, which then are not even asked."""
    figure = SimpleNamespace(
        NAME="probe", TITLE="Is there anything?", VIEWS=(), ORDER=1, PER_STUDY=True,
        READS={"first": "SELECT * FROM training_loss WHERE {study} AND study = 'quick'", "second": "SELECT 1 AS one"},
        caption=lambda found: f"{bool(found['first'])}, {len(found['second'])} of the second",
        chart=lambda found: style.not_run("drawn"),
    )  # fmt: skip
    monkeypatch.setattr("warehouse.charts.figures.FIGURES", (figure,))
    assert [(d.stem, d.caption) for d in draw_all(made_up)] == [("probe_quick", "True, 1 of the second")]
    empty = draw(made_up, figure, "paper")
    assert (empty.caption, empty.rows) == ("False, 0 of the second", {"first": [], "second": []})


def test_every_value_drawn_stands_in_the_view(made_up, drawn):
    spec = json.loads(drawn("shortcuts", "quick").spec)
    shown = sorted(row["accuracy"] for rows in spec["datasets"].values() for row in rows)
    (values,) = zip(
        *made_up.sql("SELECT accuracy FROM shortcut_comparison WHERE study = 'quick'").fetchall(), strict=True
    )
    assert shown == pytest.approx(sorted(values), rel=1e-5)


def test_every_seeds_accuracy_stands_in_an_interval_of_wilson(made_up, drawn):
    rows = drawn("final_accuracy", "quick").rows["runs"]
    assert {(row["experiment"], row["seed"]) for row in rows} == {
        (f"quick_{task}", seed) for task in ("number", "letter") for seed in (0, 1)
    }
    for row in rows:  # the ends are where the score test is at the edge: |accuracy - p| = z sqrt(p (1 - p) / n)
        assert 0 <= row["ci_low"] <= row["accuracy"] <= row["ci_high"] <= 1
        for p in (row["ci_low"], row["ci_high"]):
            edge = 1.959963984540054 * (p * (1 - p) / row["n"]) ** 0.5
            assert abs(row["accuracy"] - p) == pytest.approx(edge, abs=1e-12)
    shown = "SELECT count(*) FROM final_accuracy_by_seed WHERE study = 'quick' AND hop IS NOT NULL"
    assert made_up.sql(shown).fetchall() == [(len(rows),)]


def test_learning_dynamics_shows_every_layer_and_the_moment(made_up, drawn):
    spec = json.loads(drawn("learning_dynamics", "paper").spec)
    data = [row for rows in spec["datasets"].values() for row in rows if "colour" not in row]
    assert {row["layer"] for row in data if row.get("mark") == "line"} == set(range(12))
    moments = {step for (step,) in made_up.sql("SELECT step FROM learning_moments WHERE study = 'paper'").fetchall()}
    assert sorted({row["step"] for row in data if row.get("mark") == "rule"}) == pytest.approx(
        sorted(moments), rel=1e-5
    )
    bars = {(row["name"], row["series"]) for row in data if row.get("mark") == "bar"}
    assert ("L1", "positional") in bars
    assert ("L11", "symbolic") in bars


def test_positional_and_symbolic_have_one_colour_everywhere(drawn):
    for figure in FIGURES:
        for part in walk(json.loads(drawn(figure.NAME, "quick").spec)):
            if isinstance(part, dict) and isinstance(part.get("domain"), list) and "range" in part:
                for kind, colour in zip(part["domain"], part["range"], strict=False):
                    assert not isinstance(colour, str) or colour == style.KIND_COLOURS.get(kind, colour)
    assert len({style.POSITIONAL, style.SYMBOLIC, style.NEUTRAL, style.PAPER}) == 4


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.NAME)
@pytest.mark.parametrize("study", [None, "no such study"])
def test_a_figure_without_data_says_so(nothing_ran, figure, study):
    drawing = draw(nothing_ran, figure, study)
    if figure.NAME == "lm_length_accuracy":
        assert "paper" in drawing.caption.lower()  # it shows the paper's values whatever ran
        return
    assert "not run yet" in vl_convert.vegalite_to_svg(drawing.spec, vl_version=VEGA_LITE)


def test_figures_are_saved_as_pictures(nothing_ran, tmp_path):
    drawn = save_all(nothing_ran, tmp_path)
    assert [drawing.stem for drawing in drawn] == [figure.NAME for figure in FIGURES]
    for drawing in drawn:
        assert (tmp_path / f"{drawing.stem}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{drawing.stem}.svg").read_text(encoding="utf-8").startswith("<svg")
        assert json.loads((tmp_path / f"{drawing.stem}.vl.json").read_text(encoding="utf-8"))
    assert load(tmp_path) == drawn
