"""Training loss over steps."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "training_loss"
TITLE = "How fast does each model learn its task?"
VIEWS = ("training_loss",)
ORDER = 150
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, step, loss, low, high
        FROM training_loss
        WHERE {study}
        ORDER BY ALL
    """,
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Cross-entropy on the answer token of the training batches, in nats on a logarithmic axis; guessing among "
        "all tokens costs about 4.9. The line is the mean over seeds and over the steps of a window (at most 400 "
        "windows a run), the band runs from the lowest to the highest batch in it. Which hop "
        "classes are learned when is not said here, but by the accuracy by hops."
    )


def chart(found: style.Found) -> Any:
    """Experiments of a study as columns on one vertical axis."""
    points = found["points"]
    order = sorted({point["experiment"] for point in points}, reverse=True)
    base = alt.Chart().encode(
        x=alt.X("step:Q", title="optimiser step", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6))
    )
    scale = alt.Scale(type="log", nice=True)
    y = alt.Y("loss:Q", scale=scale, title="training loss (nats)", axis=alt.Axis(tickCount=5, format="~g"))
    band = base.mark_area(color=style.LINE, opacity=0.22).encode(
        y=alt.Y("low:Q", scale=scale, title="training loss (nats)"), y2="high:Q"
    )
    line = base.mark_line(color=style.LINE, strokeWidth=1.8).encode(
        y=y, tooltip=["experiment:N", "step:Q", alt.Tooltip("loss:Q", format=".4f")]
    )
    layered = alt.layer(band, line, data=style.data(points)).properties(width=430, height=220)
    header = alt.Header(labelFontSize=14, labelFontWeight="bold", title=None)
    return style.finish(layered.facet(column=alt.Column("experiment:N", sort=order, header=header), spacing=24), TITLE)
