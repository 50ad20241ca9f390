"""Accuracy of trained models with bands of RoPE frequencies frozen or removed, by layer (arXiv 2511.11579 §5)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "ablation"
TITLE = "Which RoPE frequencies does each layer need?"
VIEWS = ("ablation_by_band", "ablation_accuracy")
ORDER = 410
PER_STUDY = True
READS = {
    "cells": """
        SELECT experiment, task, mode, scope, place, layer, band, id_from, id_to, n_frequencies, hop, hop_class,
            accuracy, low, high, ci_low, ci_high, intact
        FROM ablation_by_band
        WHERE drawn AND {study}
        ORDER BY experiment DESC, mode, layer, len(place), place, band_low, hop
    """,
    "sizes": """
        SELECT experiment, max(n) AS n, max(n_seeds) AS s
        FROM ablation_by_band
        WHERE hop IS NULL AND {study}
        GROUP BY experiment
        ORDER BY ALL
    """,
}

WIDTH = 400
MODES = {
    "freeze": "frozen: the planes keep their content and stop rotating",
    "remove": "removed: the planes leave the logits",
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    sizes = found["sizes"]
    counted = ", ".join(f"{r['experiment']}: {r['n']} sequences, {r['s']} seed{'s'[: r['s'] - 1]}" for r in sizes)
    return (
        "A trained model answers the test questions with a band of RoPE frequencies taken away at inference, in one "
        "layer (rows L0, L1, …), one head (L0H0, …), a set of layers or all of them. Frequency ID 1 turns fastest. "
        "Pale = as good as intact, dark = the answers are lost. Each map shows the narrowest bands of which one costs "
        "half of the answers, or the widest that were tried if none does. Below each: all layers at once, by the "
        "number of hops; bars span the band, shading the 95 % interval over test sequences. "
        f"Means over seeds ({counted or 'no runs'})."
    )


def chart(found: style.Found) -> Any:
    """Experiments as columns; for each mode a map of places × bands and the hop classes below it."""
    cells = found["cells"]
    hops = {cell["hop"]: cell["hop_class"] for cell in cells if cell["hop"] is not None}
    key = style.key([(name, style.hop_colour(hop), "bar") for hop, name in sorted(hops.items())])
    experiments = list(dict.fromkeys(cell["experiment"] for cell in cells))
    columns = [_column([c for c in cells if c["experiment"] == experiment], experiment) for experiment in experiments]
    body = alt.hconcat(*columns, spacing=30).resolve_scale(color="independent")
    return style.finish(alt.vconcat(key, body, spacing=12).resolve_scale(color="independent"), TITLE)


def _x(n: int, field: str = "id_from") -> alt.X:
    scale = alt.Scale(domain=[0.5, n + 0.5], nice=False)
    return alt.X(f"{field}:Q", scale=scale, title="frequency ID (1 fastest)")


def _column(cells: list[dict], experiment: str) -> Any:
    n = cells[0]["n_frequencies"]
    panels: list[Any] = []
    for mode, title in MODES.items():
        chosen = [cell for cell in cells if cell["mode"] == mode]
        if not chosen:
            continue
        heading = alt.TitleParams([experiment, title], anchor="start", fontSize=12)
        panels.append(_map([c for c in chosen if c["hop"] is None], n, heading))
        lines = [c for c in chosen if c["hop"] is not None and c["scope"] == "all layers"]
        if lines:
            panels.append(_hops(lines, n))
    return alt.vconcat(*panels, spacing=10).resolve_scale(color="independent")


def _map(cells: list[dict], n: int, heading: alt.TitleParams) -> alt.Chart:
    single = [c["place"] for c in cells if c["scope"] in ("one layer", "one head")]
    places = list(dict.fromkeys([*single, *(c["place"] for c in cells if c["scope"] == "a set of layers")]))
    places += ["all"] if any(c["scope"] == "all layers" for c in cells) else []
    return (
        alt.Chart(style.data(cells))
        .mark_rect(stroke="#FFFFFF", strokeWidth=0.5)
        .encode(
            x=_x(n),
            x2="id_to:Q",
            y=alt.Y("place:N", sort=places, title="changed in", axis=alt.Axis(grid=False)),
            color=alt.Color(
                "accuracy:Q",
                scale=alt.Scale(domain=[0, 1], range=["#3B1300", "#D55E00", "#F1ECE4"], interpolate="lab"),
                legend=alt.Legend(title="accuracy", orient="right", gradientLength=100, tickCount=3),
            ),
            tooltip=["place:N", "band:N", alt.Tooltip("accuracy:Q", format=".4f"), alt.Tooltip("low:Q", format=".4f"),
                     alt.Tooltip("high:Q", format=".4f"), alt.Tooltip("intact:Q", format=".4f")],
        )
        .properties(width=WIDTH, height=alt.Step(17), title=heading)
    )  # fmt: skip


def _hops(cells: list[dict], n: int) -> Any:
    hops = sorted({cell["hop"] for cell in cells})
    scale = alt.Scale(domain=hops, range=[style.hop_colour(hop) for hop in hops])
    colour = alt.Color("hop:O", scale=scale, legend=None)
    base = alt.Chart(style.data(cells)).encode(x=_x(n), x2="id_to:Q", color=colour)
    unit = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(tickCount=3)
    spread = base.mark_rect(opacity=0.2).encode(
        y=alt.Y("ci_low:Q", scale=unit, title="accuracy", axis=axis), y2="ci_high:Q"
    )
    bar = base.mark_rule(strokeWidth=3).encode(
        y=alt.Y("accuracy:Q", scale=unit, title="accuracy", axis=axis),
        tooltip=["hop_class:N", "band:N", alt.Tooltip("accuracy:Q", format=".4f"),
                 alt.Tooltip("ci_low:Q", format=".3f"), alt.Tooltip("ci_high:Q", format=".3f")],
    )  # fmt: skip
    return alt.layer(spread, bar).properties(width=WIDTH, height=80)
