"""Scores of every head of a language model by layer, with the medians of early and late layers."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "lm_layers"
TITLE = "In which layers do positional and symbolic heads sit?"
VIEWS = ("lm_centroid", "lm_halves")
ORDER = 620
PER_STUDY = False
READS = {
    "cells": """
        SELECT model, prompts, layer, head,
            avg(positional_score) AS positional_score, avg(symbolic_score) AS symbolic_score,
            avg(centroid) AS centroid, any_value(layer_type) AS layer_type
        FROM lm_centroid
        WHERE null_kind = 'none' AND tau = (SELECT max(tau) FROM lm_head_scores)
        GROUP BY ALL
        ORDER BY ALL
    """,
    "halves": """
        SELECT model, prompts, null_kind, avg(positional_score) FILTER (half = 'first') AS first,
            avg(positional_score) FILTER (half = 'second') AS second
        FROM lm_halves
        WHERE tau = (SELECT max(tau) FROM lm_halves) AND null_kind <> 'random-logits'
        GROUP BY ALL
        HAVING first IS NOT NULL AND second IS NOT NULL
        ORDER BY model, prompts, null_kind
    """,
}

CELL = 15


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words, with the medians of both halves beside the nulls."""
    halves = found["halves"]
    said = "; ".join(
        f"{row['model']}{'' if row['null_kind'] == 'none' else ' untrained'} on {row['prompts']} "
        f"{row['first']:.2f} then {row['second']:.2f}"
        for row in halves
    )
    return (
        "One cell a head: layers to the right, heads downwards; left the positional score, right the symbolic one, "
        "mean over prompts, from 0 (pale) to 1 (full colour). Empty cells have no score (fewer than two blocks in the "
        "head's window). Median positional score of the first and of the second half of the layers: "
        f"{said or 'not run yet'}."
    )


def chart(found: style.Found) -> Any:
    """Models and prompt sets as rows, the two scores as columns."""
    cells = found["cells"]
    rows = []
    for model, prompts in dict.fromkeys((cell["model"], cell["prompts"]) for cell in cells):
        chosen = [cell for cell in cells if (cell["model"], cell["prompts"]) == (model, prompts)]
        legend = None if rows else alt.Legend(orient="top", title="score", gradientLength=120)
        maps = (_map(chosen, kind, f"{model}: {prompts}, {kind} score", legend) for kind in ("positional", "symbolic"))
        rows.append(alt.hconcat(*maps).resolve_scale(color="independent"))
    return style.finish(alt.vconcat(*rows).resolve_scale(color="independent"), TITLE)


def _map(cells: list[dict], kind: str, title: str, legend: alt.Legend | None) -> Any:
    n_layers, n_heads = (1 + max(cell[name] for cell in cells) for name in ("layer", "head"))
    return (
        alt.Chart(style.data(cells))
        .mark_rect()
        .encode(
            x=alt.X("layer:O", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("head:O"),
            color=alt.Color(
                f"{kind}_score:Q",
                scale=alt.Scale(domain=[0, 1], range=["#F7F7F7", style.KIND_COLOURS[kind]]),
                legend=legend,
            ),
            tooltip=["layer:O", "head:O", "layer_type:N", alt.Tooltip("positional_score:Q", format=".3f"),
                     alt.Tooltip("symbolic_score:Q", format=".3f"), alt.Tooltip("centroid:Q", format=".1f")],
        )
        .properties(width=min(480, CELL * n_layers), height=CELL * n_heads, title=alt.TitleParams(title, fontSize=12))
    )  # fmt: skip
