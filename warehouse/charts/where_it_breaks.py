"""Which layer's head loses its target first as inputs grow (arXiv 2605.31558 §3.6; the measurement is ours)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "where_it_breaks"
TITLE = "Which head loses its target first when inputs grow?"
VIEWS = ("where_it_breaks", "head_breaks")
ORDER = 220
PER_STUDY = True
READS = {
    "cells": """
        SELECT experiment, name, place, kind, layer, length, target_mass, kept_share, lead
        FROM where_it_breaks
        WHERE query = 'hop' AND {study}
        ORDER BY experiment, place, length
    """,
    "breaks": """
        SELECT experiment, name, kind, breaks_at AS length
        FROM head_breaks
        WHERE breaks_at IS NOT NULL AND query = 'hop' AND {study}
        ORDER BY experiment, place
    """,
}

KINDS = ("positional", "symbolic", "mixed")


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "A head's target is the token to which it attends most on the sequence alone; the same sequence then stands "
        "behind ever longer prefixes. Colour: the attention that is left on the target. Columns are lengths in tokens, "
        "rows are heads from the first layer to the last (named after their kind at the end of training: positional, "
        "symbolic or mixed), queries are the positions of the path. The white square marks the first length with less "
        "than half of the attention that the head had at the shortest length. Right: the lead of the target's logit "
        "over the largest other one, mean over queries; below 0 the target has lost. Lines and cells are means over "
        "seeds, a head whose kind differs between seeds is grey."
    )


def chart(found: style.Found) -> Any:
    """For each experiment a map heads × lengths, and the leads as lines."""
    cells = found["cells"]
    breaks = found["breaks"]
    experiments = list(dict.fromkeys(cell["experiment"] for cell in cells))
    panels = [
        alt.hconcat(
            _map([c for c in cells if c["experiment"] == e], [b for b in breaks if b["experiment"] == e], e, not i),
            _leads([c for c in cells if c["experiment"] == e]),
            spacing=30,
        ).resolve_scale(color="independent")
        for i, e in enumerate(experiments)
    ]
    key = style.key([(f"{kind} head", style.KIND_COLOURS[kind], "line") for kind in KINDS])
    return style.finish(alt.vconcat(key, *panels, spacing=18).resolve_scale(color="independent"), TITLE)


def _label(cell: dict) -> str:
    return f"{cell['name']} {cell['kind']}"


def _map(cells: list[dict], breaks: list[dict], experiment: str, explained: bool) -> Any:
    heads = list(dict.fromkeys(_label(cell) for cell in cells))
    lengths = sorted({cell["length"] for cell in cells})
    x = alt.X("length:O", sort=lengths, title="tokens", axis=alt.Axis(labelAngle=-45))
    y = alt.Y("label:N", sort=heads, title=None, axis=alt.Axis(labelLimit=200))
    base = alt.Chart(style.data([cell | {"label": _label(cell)} for cell in cells]))
    rect = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        x=x,
        y=y,
        color=alt.Color(
            "target_mass:Q",
            scale=alt.Scale(domain=[0, 1], scheme="viridis"),
            legend=alt.Legend(title="attention on target", orient="top", gradientLength=160) if explained else None,
        ),
        tooltip=["label:N", "length:O", alt.Tooltip("target_mass:Q", format=".3f"),
                 alt.Tooltip("kept_share:Q", format=".3f"), alt.Tooltip("lead:Q", format=".2f")],
    )  # fmt: skip
    layers: list[Any] = [rect]
    if breaks:
        tick = alt.Chart(style.data([b | {"label": _label(b)} for b in breaks]))
        layers.append(
            tick.mark_point(shape="square", filled=False, size=160, strokeWidth=2, color="white", opacity=1).encode(
                x=x, y=y
            )
        )
    return alt.layer(*layers).properties(
        width=26 * len(lengths), height=max(60, 22 * len(heads)),
        title=alt.TitleParams(experiment, anchor="start", fontSize=14),
    )  # fmt: skip


def _leads(cells: list[dict]) -> Any:
    lengths = sorted({cell["length"] for cell in cells})
    drawn = [
        cell | {"label": _label(cell), "colour": style.KIND_COLOURS.get(cell["kind"], style.NEUTRAL)} for cell in cells
    ]
    scale = alt.Scale(type="log", domain=[lengths[0], lengths[-1]], nice=False)
    ticks = [n for n in (17, 50, 100, 500, 1_000, 5_000) if lengths[0] <= n <= lengths[-1]]
    x = alt.X("length:Q", scale=scale, title="tokens", axis=alt.Axis(values=ticks, format="d"))
    colour = alt.Color("colour:N", scale=None)
    line = (
        alt.Chart(style.data(drawn))
        .mark_line(strokeWidth=1.6, clip=True)
        .encode(
            x=x,
            y=alt.Y("lead:Q", title="lead of the target (logit)"),
            detail="name:N",
            color=colour,
            tooltip=["label:N", "length:Q", alt.Tooltip("lead:Q", format=".2f")],
        )
    )
    text = (
        alt.Chart(style.data([cell for cell in drawn if cell["length"] == lengths[-1]]))
        .mark_text(align="left", dx=4, fontSize=10)
        .encode(x=x, y="lead:Q", text="name:N", color=colour)
    )
    zero = alt.Chart(style.data([{"lead": 0.0}])).mark_rule(strokeDash=[4, 3], color=style.NEUTRAL).encode(y="lead:Q")
    n_heads = len({cell["name"] for cell in cells})
    return alt.layer(zero, line, text).properties(width=330, height=max(120, 22 * n_heads))
