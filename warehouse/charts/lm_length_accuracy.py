"""Accuracy of prompted models over the length of the target window, beside the paper's Table 3."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "lm_length_accuracy"
TITLE = "At which lengths do prompted models still solve the two tasks?"
VIEWS = ("lm_length_summary",)
ORDER = 640
PER_STUDY = False
READS = {
    "points": """
        SELECT model || CASE origin WHEN 'paper' THEN ' (paper)' ELSE '' END AS model, origin, task, length,
            avg(mean) AS mean, max(std) AS std, avg(chance) AS chance,
            greatest(0, avg(mean) - coalesce(max(std), 0)) AS low,
            least(1, avg(mean) + coalesce(max(std), 0)) AS high
        FROM lm_length_summary
        GROUP BY ALL
        ORDER BY origin DESC, model, task, length
    """,
    "screening": """
        SELECT model, bool_and(screened) AS screened
        FROM lm_length_summary
        WHERE origin = 'ours'
        GROUP BY model
        ORDER BY model
    """,
}

TASKS = {"letter": style.SYMBOLIC, "number": style.POSITIONAL}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words, and which models failed the screening."""
    ours = found["screening"]
    failed = [row["model"] for row in ours if not row["screened"]]
    if not ours:
        said = "No model has been asked here yet."
    elif failed:
        said = f"Letter accuracy at 16 under the spec's `screening`, so no claim rests on: {', '.join(failed)}."
    else:
        said = "All models asked here passed the screening."
    return (
        "Share of 1-hop questions answered with exactly the right symbol, by the number of symbols to search; mean "
        "over runs, bars one standard deviation. Columns: models, those of the paper's Table 3 first. "
        f"Dashed: guessing. {said}"
    )


def chart(found: style.Found) -> Any:
    """Models as columns."""
    points = found["points"]
    order = list(dict.fromkeys(point["model"] for point in points))
    base = alt.Chart(style.data(points)).encode(
        x=alt.X(
            "length:Q",
            title="target window (symbols)",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=[12, 24, 48, 100, 300]),
        ),
        color=alt.Color("task:N", scale=alt.Scale(domain=list(TASKS), range=list(TASKS.values())), title="task"),
    )
    y = alt.Y("mean:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    line = base.mark_line(point=True).encode(
        y=y, tooltip=["model:N", "task:N", "length:Q", alt.Tooltip("mean:Q", format=".3f"), "std:Q"]
    )
    bars = base.mark_rule().encode(y=alt.Y("low:Q", title="accuracy"), y2="high:Q")
    guess = (
        base.transform_filter("isValid(datum.chance)").mark_line(strokeDash=[4, 3], opacity=0.6).encode(y="chance:Q")
    )
    layered = alt.layer(bars, line, guess).properties(width=230, height=210)
    header = alt.Header(labelFontSize=12, labelFontWeight="bold", title=None)
    return style.finish(layered.facet(facet=alt.Facet("model:N", sort=order, header=header), columns=4), TITLE)
