"""Accuracy of one-head models by RoPE angle and answer position: the U and the inverse U (arXiv 2511.11579 Fig. 3)."""

from typing import Any

import altair as alt

from warehouse.charts import style
from warehouse.charts.canonical_angles import TASKS

NAME = "canonical_positions"
TITLE = "Where in the sequence does a head with the wrong angle fail?"
VIEWS = ("canonical_by_position",)
ORDER = 520
PER_STUDY = True
READS = {
    "points": """
        SELECT canonical_task, length, theta, theta_name, answer_position, accuracy, low, high, middling
        FROM canonical_by_position
        WHERE {study}
        ORDER BY theta DESC, answer_position
    """,
}

WIDTH = 330


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Accuracy of models with one RoPE plane, by the position at which the answer stands. Top: every angle, fastest "
        "at the top, dark = right. Bottom: the angles of middling accuracy (mean between 0.25 and 0.9). Index with too "
        "slow an angle keeps the first and the last position (an end effect: without these two the bend was -0.010 and "
        "+0.014, with them +0.063 and +0.088, at 32 tokens); Retrieval with too fast an angle is best in the middle "
        "(inverse U); Partial induction too, and with too slow an angle it takes an earlier attribute for the last. "
        "Means over seeds."
    )


def chart(found: style.Found) -> Any:
    """Tasks as columns, a map above curves."""
    points = found["points"]
    columns = [
        _column([p for p in points if p["canonical_task"] == task], title)
        for task, title in TASKS.items()
        if any(p["canonical_task"] == task for p in points)
    ]
    return style.finish(alt.hconcat(*columns, spacing=24).resolve_scale(color="independent"), TITLE)


def _column(points: list[dict], title: str) -> Any:
    order = list(dict.fromkeys(p["theta_name"] for p in points))
    cells = (
        alt.Chart(style.data(points))
        .mark_rect()
        .encode(
            x=alt.X("answer_position:O", title=None, axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("theta_name:O", sort=order, title="angle theta", axis=alt.Axis(labelFontSize=9)),
            color=alt.Color(
                "accuracy:Q",
                scale=alt.Scale(domain=[0, 1], range=["#FFFFFF", "#12704F"], interpolate="lab"),
                legend=alt.Legend(title="accuracy", orient="top", gradientLength=120, tickCount=3),
            ),
            tooltip=["theta_name:O", "answer_position:O", alt.Tooltip("accuracy:Q", format=".3f")],
        )
        .properties(width=WIDTH, height=alt.Step(11), title=alt.TitleParams(title, anchor="start", fontSize=13))
    )
    bent = [p for p in points if p["middling"]]
    if not bent:
        return cells
    names = list(dict.fromkeys(p["theta_name"] for p in bent))
    curves = (
        alt.Chart(style.data(bent))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=alt.X(
                "answer_position:Q",
                title="position of the answer",
                scale=alt.Scale(domain=[-0.5, points[0]["length"] - 0.5], nice=False),
            ),
            y=alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1], nice=False)),
            color=alt.Color(
                "theta_name:O",
                sort=names,
                scale=alt.Scale(scheme="viridis"),
                legend=alt.Legend(title="theta", orient="bottom", columns=6, symbolType="stroke"),
            ),
            tooltip=["theta_name:O", "answer_position:Q", alt.Tooltip("accuracy:Q", format=".3f")],
        )
        .properties(width=WIDTH, height=180)
    )
    return alt.vconcat(cells, curves, spacing=8).resolve_scale(color="independent")
