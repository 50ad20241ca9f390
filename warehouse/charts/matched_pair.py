"""The matched pair: number, letter, and the number task's graphs written in letters, side by side (ours)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "matched_pair"
TITLE = "How is each task of the matched pair learned, with which heads, and how far does it reach?"
VIEWS = ("matched_dynamics", "matched_summary", "matched_measures", "matched_runs")
ORDER = 310
PER_STUDY = True
READS = {
    "points": """
        SELECT *
        FROM matched_dynamics
        WHERE {study}
        ORDER BY learning_rate, task, hop, step
    """,
    "cells": """
        SELECT task, setting, place, measure, unit, value, low, high, n_seeds
        FROM matched_summary
        WHERE {study}
        ORDER BY place, learning_rate
    """,
}

TASKS = {
    "number": "number: integers point back",
    "letter_matched": "letter-matched: the same graphs in letters",
    "letter": "letter, as published",
}
WIDTH, HEIGHT = 300, 130


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Number and letter-matched have the same pointer graphs and differ in how a pointer is written (as a distance, "
        "or as the letter of the token pointed to) and in the alphabet. The published letter task has other graphs, on "
        "which a guess that follows no path is right most of the time. So graph, alphabet, encoding and shortcut are "
        "not separated here. Top: test accuracy over training by the number of hops, a row a "
        "learning rate; lines are means over seeds, bands run from the lowest to the highest. Bottom: what the trained "
        "models measure: steps at which hop classes reach 0.9, the best shortcut found, heads that are pure at gamma "
        "0.1, accuracy with planes that stop rotating in all layers, share of answers that follow a value patched in "
        "along the path, accuracy at multiples of the trained length. Mean over seeds, in brackets the lowest and the "
        "highest seed; – where some seed never got there."
    )


def chart(found: style.Found) -> Any:
    """A grid learning rate × task of accuracy over steps, and a table of measures."""
    points = found["points"]
    settings = list(dict.fromkeys(point["setting"] for point in points))
    tasks = [task for task in TASKS if any(point["task"] == task for point in points)]
    last = max(point["step"] for point in points)
    hops = sorted({point["hop"] for point in points})
    names = ["1 hop" if hop == 1 else f"{hop} hops" for hop in hops]
    key = style.key(
        [(name, style.hop_colour(hop), "line") for name, hop in zip(names, hops, strict=True)]
        + [("lowest to highest over seeds", style.NEUTRAL, "band")]
    )
    grid = [
        alt.hconcat(
            *(
                _panel([p for p in points if p["setting"] == setting and p["task"] == task], task, setting, hops, last)
                for task in tasks
            ),
            spacing=18,
        )
        for setting in settings
    ]
    cells = found["cells"]
    return style.finish(alt.vconcat(key, *grid, _table(cells, tasks, settings), spacing=14), TITLE)


def _panel(points: list[dict], task: str, setting: str, hops: list[int], last: int) -> Any:
    title = alt.TitleParams(f"{TASKS[task]}, {setting}", anchor="start", fontSize=12)
    if not points:
        return style.not_run("").properties(width=WIDTH, height=HEIGHT, title=title)
    colour = alt.Color(
        "hop:O",
        scale=alt.Scale(domain=hops, range=[style.hop_colour(hop) for hop in hops]),
        legend=None,
    )
    x = alt.X("step:Q", scale=alt.Scale(domain=[0, last], nice=False), title="optimiser step",
              axis=alt.Axis(tickCount=5))  # fmt: skip
    base = alt.Chart(style.data(points)).encode(x=x, color=colour)
    band = base.mark_area(opacity=0.25, clip=True).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1.02], nice=False), title="test accuracy",
                axis=alt.Axis(values=[0, 0.5, 1])),
        tooltip=["hop_class:N", "step:Q", alt.Tooltip("accuracy:Q", format=".3f"), "n_seeds:Q"],
    )  # fmt: skip
    return alt.layer(band, line).properties(width=WIDTH, height=HEIGHT, title=title)


def _table(cells: list[dict], tasks: list[str], settings: list[str]) -> Any:
    """Rows are measures, columns task × learning rate; shares are shaded."""
    columns = [f"{task}, {setting}" for task in tasks for setting in settings]
    shown = [
        cell
        | {"column": f"{cell['task']}, {cell['setting']}", "text": _text(cell),
           "shade": cell["value"] if cell["unit"] == "share" else None}
        for cell in cells
    ]  # fmt: skip
    measures = list(dict.fromkeys(cell["measure"] for cell in shown))
    columns = [column for column in columns if any(cell["column"] == column for cell in shown)]
    base = alt.Chart(style.data(shown)).encode(
        x=alt.X("column:N", sort=columns, title=None,
                axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=180)),
        y=alt.Y("measure:N", sort=measures, title=None, axis=alt.Axis(labelLimit=330, domain=False, ticks=False)),
    )  # fmt: skip
    scale = alt.Scale(domain=[0, 1], range=["#F1F5F3", "#12704F"], interpolate="rgb")
    rect = (
        base.transform_filter("datum.shade != null")
        .mark_rect(stroke="white", strokeWidth=2)
        .encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    )
    text = base.mark_text(fontSize=11).encode(
        text="text:N", color=alt.condition("datum.shade > 0.6", alt.value("white"), alt.value("#222222"))
    )
    return alt.layer(rect, text).properties(width=150 * len(columns), height=23 * len(measures))


def _text(cell: dict) -> str:
    form = {"share": ".2f", "frequency ID": ".1f", "heads": ".3g"}.get(cell["unit"], ",.0f")
    if cell["value"] is None:
        return "–"
    spread = f" ({cell['low']:{form}} to {cell['high']:{form}})" if cell["n_seeds"] > 1 else ""
    return f"{cell['value']:{form}}{spread}"
