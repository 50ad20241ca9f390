"""Discrepancy of trained heads by length."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "trained_discrepancy"
TITLE = "How far does the preferred key of a trained head stand out as inputs grow longer?"
VIEWS = ("trained_discrepancy",)
ORDER = 830
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, name, place, kind, length, largest, mean, smallest
        FROM trained_discrepancy
        WHERE {study}
        ORDER BY experiment DESC, place, length
    """,
}

COLUMNS = (("largest", "largest over inputs"), ("mean", "mean"), ("smallest", "smallest"))


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Largest minus second-largest logit of the last token, a line a head at the last checkpoint, by the number of "
        "keys before it (16 = the trained length; longer inputs have more target-window tokens in front). The theory "
        "speaks of the largest over inputs; whether the head still works is decided by the smallest, and a gap only "
        "counts if the preferred key is the right one, which this figure does not say. Coloured by the head's kind, "
        "means over seeds."
    )


def chart(found: style.Found) -> Any:
    """Experiments as rows; largest, mean and smallest as columns."""
    points = found["points"]
    kinds = ["positional", "symbolic", "mixed"]
    rows = []
    for experiment in dict.fromkeys(p["experiment"] for p in points):
        own = [
            p | {"colour": style.KIND_COLOURS.get(p["kind"], style.NEUTRAL)}
            for p in points
            if p["experiment"] == experiment
        ]
        rows.append(
            alt.hconcat(
                *(_panel(own, field, f"{experiment}: {title}") for field, title in COLUMNS), spacing=16
            ).resolve_scale(y="shared")
        )
    key = style.key([(f"{kind} head", style.KIND_COLOURS[kind], "line") for kind in kinds])
    return style.finish(alt.vconcat(key, *rows, spacing=14), TITLE)


def _panel(points: list[dict], field: str, title: str) -> Any:
    lengths = sorted({p["length"] for p in points})
    base = alt.Chart(style.data(points)).encode(
        x=alt.X("length:Q", scale=alt.Scale(type="log", base=2, nice=False, domain=[lengths[0], lengths[-1] * 1.3]),
                title="n (keys before the query)", axis=alt.Axis(values=lengths, format="d")),
        y=alt.Y(f"{field}:Q", scale=alt.Scale(type="symlog", constant=0.01), title="gap of logits",
                axis=alt.Axis(values=[0, 0.01, 0.1, 1, 10, 100], format="~g")),
        color=alt.Color("colour:N", scale=None),
        detail="name:N",
        tooltip=["name:N", "kind:N", "length:Q", alt.Tooltip(f"{field}:Q", format=".3g")],
    )  # fmt: skip
    names = base.transform_filter(alt.datum.length == lengths[-1]).mark_text(align="left", dx=4, fontSize=9)
    return alt.layer(base.mark_line(point=True), names.encode(text="name:N")).properties(
        width=250, height=190, title=alt.TitleParams(title, fontSize=12, anchor="start")
    )
