"""Discrepancy of the constructions by length, beside the printed, the corrected and the sharp bound (Fig. 5A)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "discrepancy"
TITLE = "How far does the right key stand out, and which bound of the theorem holds?"
VIEWS = ("discrepancy_curves", "discrepancy_within")
ORDER = 850
PER_STUDY = True
READS = {
    "points": """
        SELECT source, theta, length, kind, series, value
        FROM discrepancy_curves
        WHERE {study}
        ORDER BY source, theta, series, length
    """,
    "within": """
        SELECT source, statement, sum(n_within) AS n_within, sum(n_lengths) AS n_lengths,
            min(first_failure) AS first
        FROM discrepancy_within
        WHERE {study}
        GROUP BY source, statement
        ORDER BY ALL
    """,
}

SERIES = {
    "largest over inputs": ("#000000", [1, 0], 2.0),
    "mean over inputs": ("#777777", [1, 0], 1.4),
    "smallest over inputs": ("#009E73", [1, 0], 2.0),
    "bound as printed": ("#D55E00", [5, 3], 1.6),
    "corrected bound": ("#0072B2", [5, 3], 1.6),
    "sharp bound": ("#56B4E9", [2, 2], 1.6),
}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    said = "; ".join(
        f"{f['source']}, {f['statement']}: {f['n_within']:,} of {f['n_lengths']:,}"
        + (f" (first failure at n = {f['first']})" if f["first"] is not None else "")
        for f in found["within"]
    )
    return (
        "Discrepancy = logit of the right key minus the largest other one, sharpness 1, over all inputs with n keys "
        "before the query, exactly. Upper row Index, lower row Retrieval (8 letters); a column an angle, the first "
        "being the paper's Fig. 5A. Red ticks: lengths at which the largest exceeds the printed bound. What decides "
        "whether a head of fixed sharpness still works is the smallest (green), which for Index "
        "falls much earlier than "
        "the largest. Loose: for Index at small n all bounds are 1 - cos theta, and 2 pi^2 / n^2 is above 2, so empty, "
        "up to n = 3. The dashed line of Retrieval ends where the theorem's range does (n theta = omega / 2); beyond, "
        "a green value below 0 means that some input's right key loses. "
        f"Lengths and angles at which each statement holds: {said or 'not run'}."
    )


def chart(found: style.Found) -> Any:
    """Constructions as rows, angles as columns."""
    points = found["points"]
    lines = [
        ("largest over inputs", SERIES["largest over inputs"][0], "line"),
        ("mean", SERIES["mean over inputs"][0], "line"),
        ("smallest", SERIES["smallest over inputs"][0], "line"),
        ("bound as printed", SERIES["bound as printed"][0], "dash"),
        ("corrected bound", SERIES["corrected bound"][0], "dash"),
        ("sharp bound", SERIES["sharp bound"][0], "dash"),
        ("printed bound exceeded", "#B2182B", "bar"),
    ]
    rows = []
    for source, first in (("index", 0.8), ("retrieval", 0.0027)):
        own = [p for p in points if p["source"] == source]
        angles = sorted({p["theta"] for p in own}, key=lambda theta: (theta != first, -theta))
        rows.append(alt.hconcat(*(_panel([p for p in own if p["theta"] == a], source, a) for a in angles), spacing=14))
    return style.finish(
        alt.vconcat(style.key(lines), *rows, spacing=14).resolve_scale(color="independent", strokeDash="independent"),
        TITLE,
    )


def _panel(points: list[dict], source: str, theta: float) -> Any:
    index = source == "index"
    scale = alt.Scale(type="log", domain=[1e-7, 3], clamp=True) if index else alt.Scale(domain=[-0.6, 2.1])
    x = alt.X(
        "length:Q", scale=alt.Scale(type="log", domain=[2, 1000], nice=False), title="n", axis=alt.Axis(tickCount=4)
    )
    style_of = SERIES
    base = alt.Chart(style.data([p for p in points if p["kind"] != "failure"])).encode(x=x)
    line = base.mark_line(clip=True).encode(
        y=alt.Y("value:Q", scale=scale, title="discrepancy" if theta in (0.8, 0.0027) else None,
                axis=alt.Axis(tickCount=5, format="~g")),
        color=alt.Color("series:N", scale=alt.Scale(domain=list(style_of), range=[s[0] for s in style_of.values()]),
                        legend=None),
        strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=list(style_of),
                                                              range=[s[1] for s in style_of.values()]), legend=None),
        tooltip=["series:N", "length:Q", alt.Tooltip("value:Q", format=".4g")],
    )  # fmt: skip
    layers = [line]
    if failures := [p for p in points if p["kind"] == "failure"]:
        layers.append(
            alt.Chart(style.data(failures))
            .mark_tick(color="#B2182B", thickness=1.5, size=8)
            .encode(x=x, y=alt.value(5))
        )
    return alt.layer(*layers).properties(
        width=156,
        height=190,
        title=alt.TitleParams(f"{source.capitalize()}, theta = {theta:g}", fontSize=12, anchor="start"),
    )
