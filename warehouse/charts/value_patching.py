"""The causal test of the information flow: which edge of which layer carries the answer."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "value_patching"
TITLE = "Which layer carries which hop: does the answer follow when the value that a position reads is swapped?"
VIEWS = ("patching_edges",)
ORDER = 720
PER_STUDY = True
READS = {
    "cells": """
        SELECT experiment, hop, coalesce('L' || layer, 'all') AS layer, layer AS number, edge, place, follows,
            keeps, n, n_seeds
        FROM patching_edges
        WHERE {study}
        ORDER BY experiment DESC, hop, place, number NULLS LAST
    """,
}

CELL = 30


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "In one layer, the value that one position of the path reads from another is replaced by that of a second "
        "input, equal but for the answer token; everything else stays. A cell is the share of inputs that then answer "
        "with the second input's token: 1 = this reading in this layer carries the answer, 0 = not by itself. Column "
        "all: patched in every layer at once. Positions are named along the path: last (the query), hop 1, hop 2, …, "
        "target. Two layers below 1 each whose column all is 1 may carry the answer together. The row off the chain is "
        "the control: a random other position (a quarter of its patches change nothing). Only "
        "inputs answered rightly, means over seeds."
    )


def chart(found: style.Found) -> Any:
    """Experiments as columns, hop classes as rows."""
    cells = found["cells"]
    columns = []
    for experiment in dict.fromkeys(cell["experiment"] for cell in cells):
        own = [cell for cell in cells if cell["experiment"] == experiment]
        panels = [_panel([c for c in own if c["hop"] == hop], hop) for hop in sorted({c["hop"] for c in own})]
        columns.append(alt.vconcat(*panels, spacing=10, title=alt.TitleParams(experiment, fontSize=13, anchor="start")))
    return style.finish(alt.hconcat(*columns, spacing=24), TITLE)


def _panel(cells: list[dict], hop: int) -> Any:
    layers = list(dict.fromkeys(cell["layer"] for cell in cells))
    edges = list(dict.fromkeys(cell["edge"] for cell in cells))
    base = alt.Chart(style.data(cells)).encode(
        x=alt.X("layer:N", sort=layers, title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("edge:N", sort=edges, title=None, axis=alt.Axis(labelLimit=200)),
    )
    square = base.mark_rect(stroke="white").encode(
        color=alt.Color(
            "follows:Q",
            scale=alt.Scale(domain=[0, 1], range=["#F4F4F4", "#B2182B"]),
            legend=alt.Legend(title="follows", gradientLength=80),
        ),
        tooltip=["edge:N", "layer:N", alt.Tooltip("follows:Q", format=".3f"), alt.Tooltip("keeps:Q", format=".3f"),
                 "n:Q"],
    )  # fmt: skip
    text = (
        base.transform_filter("datum.follows >= 0.005")
        .mark_text(fontSize=9)
        .encode(
            text=alt.Text("follows:Q", format=".2f"),
            color=alt.condition("datum.follows > 0.6", alt.value("white"), alt.value("#333333")),
        )
    )
    return alt.layer(square, text).properties(
        width=CELL * len(layers),
        height=19 * len(edges),
        title=alt.TitleParams(f"{hop} hop{'s' if hop > 1 else ''}", fontSize=11, anchor="start"),
    )
