"""How far the information flow is the ideal one, over training."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "flow_agreement"
TITLE = "When do the layers begin to pass the right token on?"
VIEWS = ("flow_over_training",)
ORDER = 730
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, step, layer, agreement, answer_held, n_seeds,
            lead(step) OVER (PARTITION BY experiment, layer ORDER BY step) AS next_step
        FROM flow_over_training
        WHERE {study}
        ORDER BY experiment DESC, layer, step
    """,
}

WIDTH = 380
PANELS = (
    ("agreement", "flow agrees with the ideal"),
    ("answer_held", "last token holds the answer"),
)


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Rows are layers, steps run to the right, means over seeds. Left: share of the positions on the path that ask "
        "for a next token at which the layer looks where the task's function would, given what the positions hold "
        "before it (a position that has the answer should look at itself, or at one that holds the same). Right: share "
        "of inputs whose last token holds the answer after the layer, as read from attention; it can fall again in a "
        "late layer that looks elsewhere, although the residual stream keeps what it has."
    )


def chart(found: style.Found) -> Any:
    """Experiments as rows, the two measures as columns."""
    points = found["points"]
    rows = []
    for experiment in dict.fromkeys(point["experiment"] for point in points):
        own = [point for point in points if point["experiment"] == experiment]
        steps = sorted({point["step"] for point in own})
        width = (steps[-1] - steps[0]) / max(1, len(steps) - 1)
        own = [p | {"next_step": p["next_step"] or p["step"] + width} for p in own]
        rows.append(alt.hconcat(*(_panel(own, *panel, experiment) for panel in PANELS), spacing=20))
    return style.finish(alt.vconcat(*rows, spacing=16), TITLE)


def _panel(points: list[dict], field: str, title: str, experiment: str) -> Any:
    layers = len({point["layer"] for point in points})
    return (
        alt.Chart(style.data(points))
        .mark_rect()
        .encode(
            x=alt.X("step:Q", title="optimiser step", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6)),
            x2="next_step:Q",
            y=alt.Y("layer:O", sort="descending", title="layer"),
            color=alt.Color(
                f"{field}:Q",
                scale=alt.Scale(domain=[0, 1], scheme="viridis"),
                legend=alt.Legend(title="share", gradientLength=90),
            ),
            tooltip=["layer:O", "step:Q", alt.Tooltip(f"{field}:Q", format=".3f"), "n_seeds:Q"],
        )
        .properties(
            width=WIDTH,
            height=max(70, 15 * layers),
            title=alt.TitleParams(f"{experiment}: {title}", anchor="start", fontSize=12),
        )
    )
