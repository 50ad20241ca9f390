"""Accuracy with more and more RoPE frequencies frozen or removed, from the fast end and from the slow end."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "ablation_cumulative"
TITLE = "How many RoPE frequencies can each task do without?"
VIEWS = ("ablation_cumulative",)
ORDER = 420
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, task, mode, from_end, n_ids, n_frequencies, accuracy, low, high, ci_low, ci_high
        FROM ablation_cumulative
        WHERE hop IS NULL AND {study}
        ORDER BY ALL
    """,
}

PANELS = {
    ("freeze", "fast"): "the fastest planes stop rotating",
    ("freeze", "slow"): "the slowest planes stop rotating",
    ("remove", "fast"): "the fastest planes are removed",
    ("remove", "slow"): "the slowest planes are removed",
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Accuracy over all hop classes when more and more frequency IDs are changed in every layer at inference, "
        "starting from the fastest plane (left) or from the slowest (right). Top: the planes keep their content but "
        "stop rotating; at the right end nothing rotates, as without positional encoding. Bottom: they leave the "
        "logits; at the right end attention is uniform. Lines are means over seeds, shading is the widest 95 % "
        "interval of a seed over test sequences. A model that falls at the upper left loses answers without the fast "
        "planes' rotation; one that does not fall loses nothing, and neither does a model that failed to learn."
    )


def chart(found: style.Found) -> Any:
    """Four panels: mode × end, a line an experiment, coloured by task."""
    points = found["points"]
    experiments = sorted({point["experiment"] for point in points})
    colours = dict(zip(experiments, style.palette(len(experiments)), strict=True))
    key = style.key([(experiment, colour, "line") for experiment, colour in colours.items()])
    scale = alt.Scale(domain=experiments, range=list(colours.values()))
    last = max(point["n_frequencies"] for point in points)
    rows = []
    for mode in ("freeze", "remove"):
        panels = [
            _panel([p for p in points if (p["mode"], p["from_end"]) == (mode, end)], PANELS[mode, end], scale, last)
            for end in ("fast", "slow")
            if any((p["mode"], p["from_end"]) == (mode, end) for p in points)
        ]
        if panels:
            rows.append(alt.hconcat(*panels, spacing=26))
    return style.finish(alt.vconcat(key, *rows, spacing=14), TITLE)


def _panel(points: list[dict], title: str, scale: alt.Scale, last: int) -> Any:
    unit = alt.Scale(domain=[0, 1], nice=False)
    base = alt.Chart(style.data(points)).encode(
        x=alt.X("n_ids:Q", scale=alt.Scale(domain=[0, last], nice=False), title="number of frequency IDs"),
        color=alt.Color("experiment:N", scale=scale, legend=None),
    )
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("ci_low:Q", scale=unit, title="accuracy"), y2="ci_high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=28), strokeWidth=2).encode(
        y=alt.Y("accuracy:Q", scale=unit, title="accuracy"),
        tooltip=["experiment:N", "n_ids:Q", alt.Tooltip("accuracy:Q", format=".4f"), alt.Tooltip("low:Q", format=".4f"),
                 alt.Tooltip("high:Q", format=".4f")],
    )  # fmt: skip
    return alt.layer(band, line).properties(
        width=400, height=190, title=alt.TitleParams(title, anchor="start", fontSize=13)
    )
