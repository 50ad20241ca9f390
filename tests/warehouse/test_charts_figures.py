"""Figures: valid Vega-Lite with the marks that carry the message, pictures, no NaN, nothing without data crashes."""

import json
from functools import cache

import pytest
import vl_convert

from warehouse.catalog import views
from warehouse.charts import style
from warehouse.charts.drawing import VEGA_LITE, load
from warehouse.charts.figures import FIGURES, draw, save_all

STUDIES = ("quick", "paper")
MARKS = {
    "learning_dynamics": {"area", "line", "rule", "text"},
    "score_plane": {"rect", "trail", "point", "text"},
    "frequency_use": {"rect", "rule", "point", "text"},
    "shortcuts": {"rect", "text"},
    "training_loss": {"area", "line"},
    "language_lengths": {"line", "rule"},  # the paper's own values need no run
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
    assert set(figure.VIEWS) <= {view.name for view in views()}


def test_every_value_drawn_stands_in_the_view(made_up, drawn):
    spec = json.loads(drawn("shortcuts", "quick").spec)
    shown = sorted(row["accuracy"] for rows in spec["datasets"].values() for row in rows)
    (values,) = zip(
        *made_up.sql("SELECT accuracy FROM shortcut_comparison WHERE study = 'quick'").fetchall(), strict=True
    )
    assert shown == pytest.approx(sorted(values), rel=1e-5)


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
    if figure.NAME == "language_lengths":
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
