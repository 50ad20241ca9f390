"""Accuracy of models that were trained with part of the RoPE frequencies (arXiv 2511.11579 §5)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "restricted_training"
TITLE = "What can a model learn whose heads have only some RoPE frequencies?"
VIEWS = ("restricted_training",)
ORDER = 430
PER_STUDY = True
READS = {
    "cells": """
        SELECT task, replace(variant, '_', ' ') || ' (' || n_present || ', ' || n_rotating || ')' AS variant,
            hop_class, accuracy, low, high, n_seeds
        FROM restricted_training
        WHERE {study}
        ORDER BY task DESC, n_present DESC, n_rotating DESC, nope_from_layer NULLS FIRST, variant, hop NULLS FIRST
    """,
}

COLUMN = 62


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Final test accuracy by hop class of models trained from scratch under a restriction: only the fast or the "
        "slow half of the planes, a single octave of angles, the slowest 25, 50 or 75 % standing still (p-RoPE), no "
        "rotation at all (NoPE), or none from a layer on. Beside each name: planes of a head, and how many of them "
        "rotate. Means over seeds."
    )


def chart(found: style.Found) -> Any:
    """A table of accuracies for each task, variants as rows from the most rotating planes to the fewest."""
    cells = found["cells"]
    tasks = list(dict.fromkeys(cell["task"] for cell in cells))
    tables = [_table([c for c in cells if c["task"] == task], task) for task in tasks]
    return style.finish(alt.hconcat(*tables, spacing=30), TITLE, "in brackets: planes of a head, planes that rotate")


def _table(cells: list[dict], task: str) -> Any:
    variants = list(dict.fromkeys(cell["variant"] for cell in cells))
    hops = list(dict.fromkeys(cell["hop_class"] for cell in cells))
    axis = alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)
    base = alt.Chart(style.data(cells)).encode(
        x=alt.X("hop_class:N", sort=hops, title=None, axis=axis),
        y=alt.Y("variant:N", sort=variants, title=None, axis=alt.Axis(labelLimit=260, domain=False, ticks=False)),
    )
    scale = alt.Scale(domain=[0, 1], range=["#F1F5F3", "#12704F"], interpolate="rgb")
    rect = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("accuracy:Q", scale=scale, legend=None),
        tooltip=["variant:N", "hop_class:N", alt.Tooltip("accuracy:Q", format=".4f"),
                 alt.Tooltip("low:Q", format=".4f"), alt.Tooltip("high:Q", format=".4f"), "n_seeds:Q"],
    )  # fmt: skip
    text = base.mark_text(fontSize=12).encode(
        text=alt.Text("accuracy:Q", format=".2f"),
        color=alt.condition("datum.accuracy > 0.6", alt.value("white"), alt.value("#222222")),
    )
    return alt.layer(rect, text).properties(
        width=COLUMN * len(hops), height=26 * len(variants), title=alt.TitleParams(task, anchor="start", fontSize=14)
    )
