"""Accuracy and scores of one-head models on the canonical tasks, by RoPE angle (arXiv 2511.11579 §5)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "canonical_angles"
TITLE = "With which RoPE angle does one attention head solve Index, Retrieval and Partial induction?"
VIEWS = ("canonical_by_angle",)
ORDER = 510
PER_STUDY = True
READS = {
    "points": """
        SELECT canonical_task, n_planes, partner, theta, theta_name, label, accuracy, low, high, chance,
            positional_score, positional_low, positional_high, symbolic_score, symbolic_low, symbolic_high
        FROM canonical_by_angle
        WHERE (n_planes = 1 OR partner = 0) AND {study}
        ORDER BY theta, n_planes, label
    """,
    "sizes": """
        SELECT canonical_task, any_value(length) AS length, count(*) AS n, max(n_seeds) AS s
        FROM canonical_by_angle
        WHERE {study}
        GROUP BY canonical_task
        ORDER BY ALL
    """,
}

WIDTH = 330
TWO = "#882255"
TASKS = {
    "index": "Index: name the symbol at position j",
    "retrieval": "Retrieval: name the entity's attribute",
    "partial_induction": "Partial induction: its last attribute",
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    sizes = found["sizes"]
    counted = "; ".join(
        f"{r['canonical_task']}: {r['length']} tokens, {r['n']} sets of angles, {r['s']} seed{'s'[: r['s'] - 1]}"
        for r in sizes
    )
    return (
        "One-layer models without an MLP whose single head has one RoPE plane; each point is a model trained with that "
        "angle. Top: accuracy; the dashed line is a guess; for Partial induction also heads with two planes, one of "
        "which stands still, at the angle of the other (two planes of one angle, ID 33, gave 0.998 "
        "to 1.000 as well: number of planes and of angles are confounded). Bottom: whether the trained head "
        "acts by position or by content (both near 1 = attention is spread evenly). Lines are means over seeds, "
        f"shading runs from the lowest to the highest ({counted or 'no runs'})."
    )


def chart(found: style.Found) -> Any:
    """Tasks as columns, accuracy above scores."""
    points = found["points"]
    key = style.key(
        [
            ("one plane", style.LINE, "line"),
            ("theta = 0 and this angle", TWO, "line"),
            ("a guess", style.NEUTRAL, "dash"),
            ("positional score", style.POSITIONAL, "line"),
            ("symbolic score", style.SYMBOLIC, "line"),
        ]
    )
    columns = [
        _column([p for p in points if p["canonical_task"] == task], title)
        for task, title in TASKS.items()
        if any(p["canonical_task"] == task for p in points)
    ]
    return style.finish(alt.vconcat(key, alt.hconcat(*columns, spacing=24), spacing=12), TITLE)


def _column(points: list[dict], title: str) -> Any:
    single = [p for p in points if p["n_planes"] == 1]
    double = [p for p in points if p["n_planes"] == 2]
    order = list(dict.fromkeys(p["theta_name"] for p in points))
    guess = (
        alt.Chart(style.data(single[:1]))
        .mark_rule(color=style.NEUTRAL, strokeDash=[4, 3])
        .encode(y=alt.Y("chance:Q", scale=UNIT, title="accuracy"))
    )
    accuracy = [guess, *_line(single, order, "accuracy", "low", "high", style.LINE, "accuracy")]
    if double:
        accuracy += _line(double, order, "accuracy", "low", "high", TWO, "accuracy")
    scores = [
        *_line(single, order, "positional_score", "positional_low", "positional_high", style.POSITIONAL, "score"),
        *_line(single, order, "symbolic_score", "symbolic_low", "symbolic_high", style.SYMBOLIC, "score"),
    ]
    heading = alt.TitleParams(title, anchor="start", fontSize=13)
    return alt.vconcat(
        alt.layer(*accuracy).properties(width=WIDTH, height=190, title=heading),
        alt.layer(*scores).properties(width=WIDTH, height=130),
        spacing=8,
    )


UNIT = alt.Scale(domain=[0, 1], nice=False)


def _line(points: list[dict], order: list[str], mean: str, low: str, high: str, colour: str, title: str) -> list[Any]:
    base = alt.Chart(style.data(points)).encode(
        x=alt.X(
            "theta_name:O",
            sort=order,
            title="angle theta, radians per position (slow to fast)",
            axis=alt.Axis(labelAngle=-60, labelFontSize=9),
            scale=alt.Scale(type="point"),
        )
    )
    y = alt.Y(f"{mean}:Q", scale=UNIT, title=title)
    return [
        base.mark_area(color=colour, opacity=0.2).encode(y=alt.Y(f"{low}:Q", scale=UNIT, title=title), y2=f"{high}:Q"),
        base.mark_line(color=colour, strokeWidth=2, point=alt.OverlayMarkDef(color=colour, size=24)).encode(
            y=y,
            tooltip=["label:N", alt.Tooltip(f"{mean}:Q", format=".4f"), alt.Tooltip(f"{low}:Q", format=".4f"),
                     alt.Tooltip(f"{high}:Q", format=".4f")],
        ),
    ]  # fmt: skip
