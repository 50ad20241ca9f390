"""Test accuracy at the end, every run and hop class by itself."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "final_accuracy"
TITLE = "Does every seed solve every hop class?"
VIEWS = ("final_accuracy_by_seed",)
ORDER = 115
PER_STUDY = True
READS = {
    "runs": """
        SELECT experiment, seed, hop, hop_class, accuracy, ci_low, ci_high, n, step
        FROM final_accuracy_by_seed
        WHERE {study} AND hop IS NOT NULL
        ORDER BY experiment DESC, seed, hop
    """,
}

WIDTH = 150
ROW = 18


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    counts = sorted({run["n"] for run in found["runs"]})
    tested = " to ".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    return (
        "A point is one run: the share of a hop class's test sequences that it answers rightly at its last checkpoint; "
        f"the line is the 95 % interval over the sequences tested ({tested} a point), not over seeds. Seeds stand one "
        "below the other, so that one that failed is not hidden in a mean."
    )


def chart(found: style.Found) -> Any:
    """Runs as rows, hop classes as columns on one axis."""
    runs = [
        run | {"run": f"{run['experiment']}, seed {run['seed']}", "colour": style.hop_colour(run["hop"])}
        for run in found["runs"]
    ]
    order = list(dict.fromkeys(run["run"] for run in runs))
    classes = [run["hop_class"] for run in sorted(runs, key=lambda run: run["hop"])]
    scale = alt.Scale(domain=[0, 1], nice=False)
    base = alt.Chart().encode(
        y=alt.Y("run:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)),
        color=alt.Color("colour:N", scale=None),
        tooltip=["run:N", "hop_class:N", alt.Tooltip("accuracy:Q", format=".4f"), alt.Tooltip("ci_low:Q", format=".4f"),
                 alt.Tooltip("ci_high:Q", format=".4f"), "n:Q", "step:Q"],
    )  # fmt: skip
    interval = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("ci_low:Q", scale=scale, title="test accuracy", axis=alt.Axis(tickCount=3, format="~g")),
        x2="ci_high:Q",
    )
    point = base.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("accuracy:Q", scale=scale))
    layered = alt.layer(interval, point, data=style.data(runs)).properties(width=WIDTH, height=ROW * len(order))
    facet = alt.Column(
        "hop_class:N", sort=list(dict.fromkeys(classes)), title=None, header=alt.Header(labelFontSize=13)
    )
    return style.finish(layered.facet(column=facet, spacing=14), TITLE)
