"""The information flow of one example beside the ideal one (arXiv 2605.31558, Fig. 3)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "information_flow"
TITLE = "What does each position know after each layer, and from where?"
VIEWS = ("flow_example",)
ORDER = 710
PER_STUDY = True
READS = {
    "cells": """
        SELECT experiment, task, flow, hop, layer, position, link, attends_to, from_link, weight, holds_token,
            changed
        FROM flow_example
        WHERE {study}
        ORDER BY experiment DESC, flow DESC, layer, position
    """,
}

CELL = 27
LINKS = ["#0072B2", "#56B4E9", "#CC79A7", "#E69F00", "#8C6D31"]
ANSWER = "#BFE5C8"


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "One input, its tokens along the bottom, layers upwards. Number task: the integer i points i positions back; "
        "letter task: a pair's right letter points to the earlier pair with that left letter. The path starts at the "
        "last token and ends at the answer. Each cell names the token that the position holds after the layer: the "
        "one that gets more than half of its attention (mean over heads), else what it held before; green = the "
        "answer. Arrows show where the positions on the path attend most (bold: over half of the attention), a colour "
        "a position; a position that attends to itself has no arrow. Left: the trained model, read from its attention. "
        "Right: the ideal functions, one hop a layer, then every position keeps what it holds. The layers need not "
        "match: a model may wait a layer or hop later."
    )


def chart(found: style.Found) -> Any:
    """Experiments as rows; model and ideal side by side."""
    cells = found["cells"]
    rows = []
    for experiment in dict.fromkeys(cell["experiment"] for cell in cells):
        own = [cell for cell in cells if cell["experiment"] == experiment]
        panels = [
            _panel([cell for cell in own if cell["flow"] == flow], title)
            for flow, title in (("model", f"{experiment}, trained"), ("ideal", "ideal"))
        ]
        rows.append(alt.hconcat(*panels, spacing=26))
    key = style.key(
        [("last token (the query)", LINKS[0], "line")]
        + [
            (f"{name} on the path", colour, "line")
            for name, colour in zip(("next", "2nd next", "3rd next"), LINKS[1:], strict=False)
        ]
        + [("holds the answer", ANSWER, "bar")]
    )
    return style.finish(alt.vconcat(key, *rows, spacing=18).resolve_scale(color="independent"), TITLE)


def _panel(cells: list[dict], title: str) -> alt.LayerChart:
    n_positions = 1 + max(cell["position"] for cell in cells)
    n_layers = 1 + max(cell["layer"] for cell in cells)
    answer = next(c["holds_token"] for c in cells if c["layer"] == -1 and c["link"] == c["hop"])
    drawn = [
        cell
        | {
            "answer": cell["holds_token"] == answer and cell["link"] is not None,
            "on_path": cell["link"] is not None,
            "begins": cell["layer"] - 0.74,
            "ends": cell["layer"] - 0.36,
            "colour": LINKS[min(cell["link"] or 0, len(LINKS) - 1)],
            "arrow": cell["layer"] >= 0
            and cell["link"] is not None
            and cell["link"] < cell["hop"]
            and cell["attends_to"] != cell["position"],
            "bold": 2.6 if cell["weight"] > 0.5 else 0.8,
        }
        for cell in cells
    ]
    x_scale = alt.Scale(domain=[-0.5, n_positions - 0.5], nice=False)
    y_scale = alt.Scale(domain=[-1.6, n_layers - 0.4], nice=False)
    x = alt.X(
        "position:Q", scale=x_scale, title="position", axis=alt.Axis(tickMinStep=1, tickCount=n_positions, grid=False)
    )
    labels = alt.Axis(
        values=list(range(-1, n_layers)), labelExpr="datum.value < 0 ? 'input' : 'after L' + datum.value", grid=False
    )
    y = alt.Y("layer:Q", scale=y_scale, title=None, axis=labels)
    base = alt.Chart(style.data(drawn)).encode(x=x, y=y)
    filled = base.transform_filter("datum.answer").mark_square(size=CELL**2 * 0.62, color=ANSWER, opacity=1)
    arrow = (
        base.transform_filter("datum.arrow")
        .mark_rule(opacity=0.9)
        .encode(
            x=alt.X("attends_to:Q", scale=x_scale, title="position"),
            x2="position:Q",
            y=alt.Y("begins:Q", scale=y_scale, title=None, axis=labels),
            y2="ends:Q",
            color=alt.Color("colour:N", scale=None),
            strokeWidth=alt.StrokeWidth("bold:Q", scale=None),
            tooltip=["layer:O", "position:O", "attends_to:O", alt.Tooltip("weight:Q", format=".2f")],
        )
    )
    head = (
        base.transform_filter("datum.arrow")
        .mark_point(shape="triangle-up", filled=True, size=42, opacity=1)
        .encode(y=alt.Y("ends:Q", scale=y_scale, title=None, axis=labels), color=alt.Color("colour:N", scale=None))
    )
    text = base.mark_text(fontSize=10.5).encode(
        text="holds_token:N",
        color=alt.condition("datum.on_path", alt.value("#000000"), alt.value("#B5B5B5")),
        tooltip=["layer:O", "position:O", "holds_token:N", "attends_to:O", alt.Tooltip("weight:Q", format=".2f")],
    )
    panel: alt.LayerChart = alt.layer(filled, arrow, head, text)  # pyright: ignore[reportAssignmentType]
    return panel.properties(
        width=CELL * n_positions, height=36 * (n_layers + 1), title=alt.TitleParams(title, anchor="start", fontSize=13)
    )
