"""Queries and keys of every head in the RoPE plane that it uses most (arXiv 2605.31558, Fig. 4B, C)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "qk_plane"
TITLE = "Where do queries and keys point in the RoPE plane that a head uses most?"
VIEWS = ("qk_points", "qk_angles")
ORDER = 740
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, name, place, role, frequency_id, token, token_kind, points_back, across, up
        FROM qk_points
        WHERE {study} AND example < 6 AND (role = 'key' OR points_back IS NOT NULL)
        ORDER BY experiment DESC, place, role, example, position
    """,
    "angles": """
        SELECT experiment, name, frequency_id, points_back, key_kind, turned, expected, concentration,
            key_concentration
        FROM qk_angles
        WHERE {study}
        ORDER BY experiment DESC, place, key_kind, points_back
    """,
}

SIZE = 118
COLUMNS = 6
KEYS = {"integer": "#444444", "letter": "#B0B0B0", "letter-letter": "#444444", "letter-digit": "#B0B0B0"}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "One square a head at the last checkpoint (first seed), its dominant RoPE plane before rotation; queries and "
        "keys each scaled to 1. Squares are keys (dark: integers, or letter-letter pairs; light: "
        "letters, or letter-digit "
        "pairs), discs are queries, coloured by how far back their token points. A head that implements Index bunches "
        "its keys and fans its queries out by offset: below, dots are the queries' mean angle to the "
        "keys of either kind "
        "(same greys), and rings where the logit would be largest exactly at the offset (minus offset times theta, "
        "wrapped at half a turn). Dots on the rings = the head looks up keys of that kind by "
        "distance. A head that goes "
        "by content shows no such order."
    )


def chart(found: style.Found) -> Any:
    """Experiments one below the other, heads in rows of six."""
    points = found["points"]
    angles = found["angles"]
    parts: list[Any] = [
        style.key(
            [
                ("key: integer or letter-letter", KEYS["integer"], "bar"),
                ("key: letter or letter-digit", KEYS["letter"], "bar"),
            ]
            + [("query that points 1 back", "#440154", "circle"), ("query that points far back", "#FDE725", "circle")]
        )
    ]
    for experiment in dict.fromkeys(p["experiment"] for p in points):
        for title, draw, rows in (("queries and keys", _planes, points), ("angle to the keys", _angles, angles)):
            own = [
                row
                | {
                    "panel": f"{row['name']}, frequency {row['frequency_id']}",
                    "colour": KEYS.get(_kind(row), "#888888"),
                }
                for row in rows
                if row["experiment"] == experiment
            ]
            panels = list(dict.fromkeys(row["panel"] for row in own))
            facet = alt.Facet("panel:N", sort=panels, title=None, header=alt.Header(labelFontSize=11, labelPadding=2))
            parts.append(
                draw(own)
                .facet(facet, columns=COLUMNS, spacing=10)
                .properties(title=alt.TitleParams(f"{experiment}: {title}", fontSize=13, anchor="start"))
            )
    return style.finish(alt.vconcat(*parts, spacing=14).resolve_scale(color="independent"), TITLE)


def _kind(row: dict) -> str:
    return row["key_kind"] if "key_kind" in row else row["token_kind"]


def _planes(points: list[dict]) -> Any:
    scale = alt.Scale(domain=[-1.08, 1.08], nice=False)
    axis = alt.Axis(labels=False, ticks=False, values=[0], title=None)
    base = alt.Chart().encode(
        x=alt.X("across:Q", scale=scale, axis=axis, title=None), y=alt.Y("up:Q", scale=scale, axis=axis, title=None)
    )
    key = (
        base.transform_filter(alt.datum.role == "key")
        .mark_point(shape="square", filled=True, size=14, opacity=0.6)
        .encode(color=alt.Color("colour:N", scale=None))
    )
    query = (
        base.transform_filter(alt.datum.role == "query")
        .mark_point(filled=True, size=24, opacity=0.85)
        .encode(
            color=alt.Color(
                "points_back:Q", scale=alt.Scale(scheme="viridis", domain=[1, 16], clamp=True), legend=None
            ),
            tooltip=["token:N", "points_back:Q"],
        )
    )
    return alt.layer(key, query, data=style.data(points)).properties(width=SIZE, height=SIZE)


def _angles(angles: list[dict]) -> Any:
    scale = alt.Scale(domain=[-3.4, 3.4], nice=False)
    axis = alt.Axis(values=[-3.1416, 0, 3.1416], labelExpr="datum.value < 0 ? '-π' : datum.value > 0 ? 'π' : '0'")
    base = alt.Chart().encode(
        x=alt.X("points_back:Q", title="points back", axis=alt.Axis(tickCount=4, titleFontSize=10, tickMinStep=1))
    )
    ring = base.mark_point(filled=False, size=46, color="#D55E00", strokeWidth=1.2).encode(
        y=alt.Y("expected:Q", scale=scale, axis=axis, title=None)
    )
    dot = base.mark_point(filled=True, size=20, opacity=1).encode(
        y=alt.Y("turned:Q", scale=scale, axis=axis, title=None),
        color=alt.Color("colour:N", scale=None),
        tooltip=["points_back:Q", "key_kind:N", alt.Tooltip("turned:Q", format=".2f"),
                 alt.Tooltip("expected:Q", format=".2f"), alt.Tooltip("key_concentration:Q", format=".2f")],
    )  # fmt: skip
    return alt.layer(ring, dot, data=style.data(angles)).properties(width=SIZE, height=76)
