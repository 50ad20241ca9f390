"""Accuracy of the trained model beside that of shortcuts that follow no chain."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "shortcuts"
TITLE = "Does the model follow the chain, or could it have guessed?"
VIEWS = ("shortcut_comparison",)
ORDER = 140
PER_STUDY = True
READS = {
    "cells": """
        SELECT experiment, solver, hop_class, accuracy, low, high, n_seeds
        FROM shortcut_comparison
        WHERE {study}
        ORDER BY experiment DESC, rank, hop NULLS FIRST
    """,
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Share of test sequences answered correctly by the trained model (top row, mean over seeds at the last "
        "checkpoint) and by rules that never follow the chain of hops (best first), by the number of hops. Where a "
        "rule comes close to the model, accuracy alone does not show that the model has learned to hop. The best rule "
        "is a lower bound: a better one may exist."
    )


def chart(found: style.Found) -> Any:
    """A table of accuracies for each experiment, rows from the most to the least accurate solver."""
    cells = found["cells"]
    experiments = list(dict.fromkeys(cell["experiment"] for cell in cells))
    tables = [_table([c for c in cells if c["experiment"] == experiment], experiment) for experiment in experiments]
    return style.finish(alt.hconcat(*tables, spacing=28), TITLE)


def _table(cells: list[dict], experiment: str) -> Any:
    solvers = list(dict.fromkeys(cell["solver"] for cell in cells))
    hops = list(dict.fromkeys(cell["hop_class"] for cell in cells))
    base = alt.Chart(style.data(cells)).encode(
        x=alt.X(
            "hop_class:N", sort=hops, title=None, axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)
        ),
        y=alt.Y("solver:N", sort=solvers, title=None, axis=alt.Axis(labelLimit=260, domain=False, ticks=False)),
    )
    scale = alt.Scale(domain=[0, 1], range=["#F1F5F3", "#12704F"], interpolate="rgb")
    rect = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("accuracy:Q", scale=scale, legend=None),
        tooltip=["solver:N", "hop_class:N", alt.Tooltip("accuracy:Q", format=".4f"), alt.Tooltip("low:Q", format=".4f"),
                 alt.Tooltip("high:Q", format=".4f"), "n_seeds:Q"],
    )  # fmt: skip
    text = base.mark_text(fontSize=12).encode(
        text=alt.Text("accuracy:Q", format=".2f"),
        color=alt.condition("datum.accuracy > 0.6", alt.value("white"), alt.value("#222222")),
    )
    return alt.layer(rect, text).properties(
        width=62 * len(hops), height=30 * len(solvers), title=alt.TitleParams(experiment, anchor="start", fontSize=14)
    )
