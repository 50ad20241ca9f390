"""Queries and keys of trained one-head models in their RoPE planes, beside the construction."""

from typing import Any

import altair as alt

from warehouse.charts import style
from warehouse.charts.canonical_angles import TASKS

NAME = "canonical_planes"
TITLE = "Where does a trained head put its queries and keys, and where would the construction?"
VIEWS = ("canonical_plane_points",)
ORDER = 530
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, canonical_task, label, plane, frequency_id, theta, source, role, item_id, token, x, y
        FROM canonical_plane_points
        WHERE {study}
        ORDER BY experiment, label, frequency_id, plane, source DESC, role, item_id, token
    """,
}

SIZE = 150
PANEL = ("label", "plane", "frequency_id", "theta", "source")


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "One RoPE plane a square, before rotation, each role scaled to 1: discs are keys, rings queries, coloured by "
        "the integer asked for (Index) or the entity (the other tasks); grey keys have none. Construction (arXiv "
        "2605.31558 Thm 3.1): for Index all keys at one point and the query of j turned by j theta; for Retrieval an "
        "entity's key and query at the same place on the circle. A trained head may order the entities otherwise, "
        "since only which query meets which key matters. First seed."
    )


def chart(found: style.Found) -> Any:
    """Tasks as rows; trained head and construction in turns."""
    points = found["points"]
    rows = []
    for task, title in TASKS.items():
        own = [p for p in points if p["canonical_task"] == task]
        panels = list(dict.fromkeys(tuple(p[name] for name in PANEL) for p in own))
        if not panels:
            continue
        drawn = [_plane([p for p in own if tuple(p[name] for name in PANEL) == panel], *panel) for panel in panels]
        rows.append(alt.hconcat(*drawn, spacing=12, title=alt.TitleParams(title, anchor="start", fontSize=13)))
    key = style.key([("key", style.NEUTRAL, "circle"), ("query", style.NEUTRAL, "ring")])
    return style.finish(alt.vconcat(key, *rows, spacing=18).resolve_scale(color="independent"), TITLE)


def _plane(points: list[dict], label: str, plane: int, frequency_id: int, theta: float, source: str) -> Any:
    scale = alt.Scale(domain=[-1.1, 1.1], nice=False)
    axis = alt.Axis(labels=False, ticks=False, grid=True, values=[0], title=None)
    at = {"x": alt.X("x:Q", scale=scale, axis=axis), "y": alt.Y("y:Q", scale=scale, axis=axis)}
    tooltip = ["token:N", "role:N", alt.Tooltip("x:Q", format=".2f"), alt.Tooltip("y:Q", format=".2f")]
    colour = alt.Color("item_id:Q", scale=alt.Scale(scheme="viridis"), legend=None)
    looks: dict[str, dict[str, Any]] = {
        "key": {"filled": True, "size": 26, "opacity": 0.55},
        "query": {"size": 60, "opacity": 1},
    }
    layers: list[alt.Chart] = []
    for role, look in looks.items():
        items = [p for p in points if p["role"] == role and p["item_id"] is not None]
        bare = [p for p in points if p["role"] == role and p["item_id"] is None]
        if items:
            layers.append(alt.Chart(style.data(items)).mark_point(**look).encode(**at, color=colour, tooltip=tooltip))
        if bare:
            plain = {**look, "color": style.NEUTRAL}
            layers.append(alt.Chart(style.data(bare)).mark_point(**plain).encode(**at, tooltip=tooltip))
    ids = label.split(" + ")
    where = f"plane {frequency_id} of {label}" if len(ids) > 1 else f"plane {frequency_id}"
    if len(set(ids)) < len(ids):  # one frequency twice
        where = f"plane {frequency_id} (no. {plane}) of {label}"
    heading = alt.TitleParams([source, f"{where}, theta {theta:.2g}"], fontSize=11, anchor="start")
    return alt.layer(*layers).properties(width=SIZE, height=SIZE, title=heading)
