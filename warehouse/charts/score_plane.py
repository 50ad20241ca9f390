"""The path of every head over the positional-symbolic plane during training."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "score_plane"
TITLE = "Along which path does each head become positional or symbolic?"
VIEWS = ("score_trajectory",)
ORDER = 120
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, seed, layer, head, path, step, positional_score, symbolic_score, kind, place
        FROM score_trajectory
        WHERE {study}
        ORDER BY experiment DESC, layer, seed, head, step
    """,
}

CELL = 88
KINDS = ["positional", "symbolic", "mixed"]


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "One square a layer: positional score to the right, symbolic score upwards, a grey path a head and seed "
        "from the untrained model (open circle, near 1 in both, since attention is spread evenly) to the last "
        "checkpoint (filled circle, coloured by the head's kind at the end). The shaded corners are where a head "
        "counts as pure: lower right positional, upper left symbolic (one score at least 0.9, the other at most "
        "0.1). Scores of real attention stay above the line from corner to corner, since the two add up to at least "
        "1."
    )


def chart(found: style.Found) -> Any:
    """Experiments as rows, layers as columns."""
    points = found["points"]
    order = list(dict.fromkeys(point["experiment"] for point in points))
    key = style.key(
        [("before training", style.NEUTRAL, "ring")]
        + [(f"{kind} at the end", style.KIND_COLOURS[kind], "circle") for kind in KINDS]
        + [("pure positional", style.POSITIONAL, "band"), ("pure symbolic", style.SYMBOLIC, "band")]
    )
    rows = [_row([p for p in points if p["experiment"] == experiment], experiment) for experiment in order]
    return style.finish(alt.vconcat(key, *rows, spacing=16), TITLE)


def _row(points: list[dict], experiment: str) -> Any:
    layers = sorted({point["layer"] for point in points})
    corners = [
        {"layer": layer, "place": kind, "x": x, "x2": x2, "y": y, "y2": y2}
        for layer in layers
        for kind, x, x2, y, y2 in (("positional", 0.9, 1.04, -0.04, 0.1), ("symbolic", -0.04, 0.1, 0.9, 1.04))
    ]
    domain = [min(-0.04, *(min(p["positional_score"], p["symbolic_score"]) for p in points)), 1.04]
    scale = alt.Scale(domain=domain, nice=False)
    axis = alt.Axis(values=[0, 1], format="d", grid=False, titlePadding=0, titleFontSize=11)
    x = alt.X("positional_score:Q", scale=scale, axis=axis, title="positional")
    y = alt.Y("symbolic_score:Q", scale=scale, axis=axis, title="symbolic")
    corner = (
        alt.Chart()
        .transform_filter(alt.FieldOneOfPredicate("place", ["positional", "symbolic"]))
        .mark_rect(opacity=0.25)
        .encode(
            x=alt.X("x:Q", scale=scale, title="positional", axis=axis), x2="x2:Q",
            y=alt.Y("y:Q", scale=scale, title="symbolic", axis=axis), y2="y2:Q",
            color=alt.Color("place:N", scale=style.kind_scale(*KINDS), legend=None),
        )
    )  # fmt: skip
    path = (
        alt.Chart()
        .transform_filter(alt.FieldOneOfPredicate("place", ["start", "between", "end"]))
        .mark_trail(color="#9A9A9A", opacity=0.8)
        .encode(x=x, y=y, detail="path:N", order="step:Q", size=alt.value(1.2))
    )
    start = (
        alt.Chart()
        .transform_filter(alt.datum.place == "start")
        .mark_point(color=style.NEUTRAL, fill="white", size=34, strokeWidth=1.4, opacity=1)
        .encode(x=x, y=y)
    )
    end = (
        alt.Chart()
        .transform_filter(alt.datum.place == "end")
        .mark_point(filled=True, size=60, opacity=0.9, stroke="white", strokeWidth=0.7)
        .encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", scale=style.kind_scale(*KINDS), legend=None),
            tooltip=["layer:O", "head:O", "seed:O", "kind:N", alt.Tooltip("positional_score:Q", format=".3f"),
                     alt.Tooltip("symbolic_score:Q", format=".3f")],
        )
    )  # fmt: skip
    header = alt.Header(labelExpr="'L' + datum.value", labelFontSize=11, labelPadding=2, title=None)
    return (
        alt.layer(corner, path, start, end, data=style.data([*corners, *points]))
        .properties(width=CELL, height=CELL)
        .facet(column=alt.Column("layer:O", header=header), spacing=6)
        .properties(title=alt.TitleParams(experiment, anchor="start", fontSize=13))
    )
