"""What all figures share: colours, rows from a view, a drawn key, the picture of "not run yet"."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import duckdb
import polars as pl

# Okabe-Ito colours: safe for the common forms of colour blindness, and told apart in grey print.
POSITIONAL = "#D55E00"
SYMBOLIC = "#0072B2"
NEUTRAL = "#7A7A7A"
MOMENT = "#000000"
PAPER = "#CC79A7"
LINE = "#3B3B3B"
# Experiments and changes at inference, in the order in which a figure names them; kinds of heads keep theirs.
PALETTE = (
    "#117733", "#AA4499", "#332288", "#DDCC77", "#88CCEE", "#882255", "#44AA99", "#999933",
    "#555555", "#CC6677", "#6699CC", "#997700", "#000000", "#EE99AA", "#994455", "#77AADD",
)  # fmt: skip
HOP_COLOURS = ("#9BD3C0", "#3FA583", "#12704F", "#06382A")
KIND_COLOURS = {"positional": POSITIONAL, "symbolic": SYMBOLIC, "mixed": NEUTRAL, "normalised entropy": NEUTRAL}
FONT = "Helvetica Neue, Helvetica, Arial, sans-serif"


Found = Mapping[str, list[dict[str, Any]]]
"""What a figure is drawn from: the rows of its queries, by the queries' names."""


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries, in the query's order."""
    relation = connection.sql(query)
    names = relation.columns
    return [dict(zip(names, values, strict=True)) for values in relation.fetchall()]


def only(records: Sequence[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    """The rows that have these values, without the columns that are now the same in all."""
    return [
        {name: value for name, value in record.items() if name not in values}
        for record in records
        if all(record[name] == value for name, value in values.items())
    ]


def data(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a chart's data. A frame, since Altair checks inline values one by one, which takes minutes."""
    return pl.DataFrame(records, infer_schema_length=None)


def hop_colour(hop: int) -> str:
    """The colour of a hop class (1, 2, …), darker with more hops, the same from four on."""
    return HOP_COLOURS[min(hop, len(HOP_COLOURS)) - 1]


def palette(n: int) -> list[str]:
    """n colours of experiments; from the seventeenth on they begin anew."""
    return [PALETTE[i % len(PALETTE)] for i in range(n)]


def kind_scale(*kinds: str) -> alt.Scale:
    """The colours of kinds of heads and series, the same in every figure."""
    return alt.Scale(domain=list(kinds), range=[KIND_COLOURS[kind] for kind in kinds])


def not_run(title: str) -> alt.Chart:
    """What a figure without data shows."""
    return (
        alt.Chart(data([{"text": "not run yet"}]), width=420, height=80)
        .mark_text(fontSize=16, color=NEUTRAL)
        .encode(text="text:N")
        .properties(title=title)
    )


def key(entries: Sequence[tuple[str, str, str]]) -> Any:
    """A key in one row, as wide as its entries.

    Entries are (label, colour, mark); mark is line, dash, band, bar, ring, circle or diamond.
    """
    lines = {"line": (2.5, 1.0), "dash": (1.5, 1.0), "band": (10.0, 0.25), "bar": (6.0, 1.0)}
    drawn, x = [], 0.0
    for label, colour, mark in entries:
        thickness, opacity = lines.get(mark, (0.0, 0.0))
        drawn.append(
            {"x": x, "x2": x + 20, "middle": x + 10, "text_x": x + 26, "label": label, "colour": colour, "mark": mark,
             "thickness": thickness, "opacity": opacity, "dashed": mark == "dash"}
        )  # fmt: skip
        x += 40 + 6.4 * len(label)
    width = math.ceil(x)
    scale = alt.Scale(domain=[0, width], nice=False)
    base = alt.Chart(data(drawn)).encode(color=alt.Color("colour:N", scale=None))
    line = base.mark_rule().encode(
        x=alt.X("x:Q", scale=scale, axis=None),
        x2="x2:Q",
        strokeWidth=alt.StrokeWidth("thickness:Q", scale=None),
        opacity=alt.Opacity("opacity:Q", scale=None),
        strokeDash=alt.condition("datum.dashed", alt.value([4, 3]), alt.value([1, 0])),
    )
    centre = alt.X("middle:Q", scale=scale, axis=None)
    point = (
        base.transform_filter(alt.FieldOneOfPredicate("mark", ["circle", "diamond"]))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=centre, shape=alt.Shape("mark:N", scale=None))
    )
    ring = (
        base.transform_filter(alt.datum.mark == "ring").mark_point(size=45, strokeWidth=1.5, opacity=1).encode(x=centre)
    )
    text = (
        alt.Chart(data(drawn))
        .mark_text(align="left", baseline="middle", fontSize=12, color="#222222")
        .encode(x=alt.X("text_x:Q", scale=scale, axis=None), text="label:N")
    )
    return alt.layer(line, point, ring, text).properties(width=width, height=16, view=alt.ViewBackground(stroke=None))


def finish(chart: Any, title: str, subtitle: str | Sequence[str] = "") -> Any:
    """The common look: title left, light grid, one font, colours that stay put.

    All in one call: every method of a chart copies the whole of it.
    """
    heading = alt.TitleParams(
        title, subtitle=subtitle, anchor="start", fontSize=17, subtitleFontSize=12, subtitleColor="#444", offset=12
    )
    axis = alt.AxisConfig(
        gridColor="#EEEEEE", domainColor="#999999", tickColor="#999999", labelFontSize=11, titleFontSize=12
    )
    config = alt.Config(
        font=FONT,
        background="white",
        view=alt.ViewConfig(stroke="#DDDDDD"),
        axis=axis,
        title=alt.TitleConfig(font=FONT),
        concat=alt.CompositionConfig(spacing=8),
    )
    return chart.properties(title=heading, padding=12, config=config)
