"""The exclusion bound on every head (arXiv 2511.11579, Thm 1)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "exclusion"
TITLE = "Can a head be positional and symbolic at once, unless its logits are flat?"
VIEWS = ("exclusion_by_head",)
ORDER = 810
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, seed, name, kind, variance, bound, ratio, tightest
        FROM exclusion_by_head
        WHERE variance > 0 AND bound > 0 AND {study}
        ORDER BY experiment DESC, seed, name
    """,
    "worst": """
        SELECT min(within_share) AS share, max(tightest) AS tightest,
            max(abs(sampled_bound - bound) / nullif(sampled_error, 0)) AS away
        FROM exclusion_by_head
        WHERE {study}
    """,
}

KINDS = ["positional", "symbolic", "mixed"]


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    worst = found["worst"][0] if found["worst"] else {"share": None}
    said = (
        "not run"
        if worst["share"] is None
        else f"{worst['share']:.4%} of the inputs of the worst head are within the bound, the closest at "
        f"{worst['tightest']:.3f} of it; random permutations estimate the bound to within {worst['away']:.1f} of their "
        "standard errors"
    )
    return (
        "A point a head and seed at the last checkpoint, means over inputs: variance of the last token's logits over "
        "the keys, against how far the head deviates from purely positional and from purely symbolic behaviour when "
        "the keys' contents are permuted (all permutations, exactly). The theorem: no point lies above the line. The "
        f"nearer the line, the closer both deviations are to the least that the variance allows. {said}."
    )


def chart(found: style.Found) -> Any:
    """Experiments as columns."""
    points = found["points"]
    low = min(min(p["variance"], p["bound"]) for p in points) / 1.5
    high = max(max(p["variance"], p["bound"]) for p in points) * 1.5
    panels = [
        _panel([p for p in points if p["experiment"] == experiment], experiment, low, high)
        for experiment in dict.fromkeys(p["experiment"] for p in points)
    ]
    key = style.key(
        [(f"{kind} head", style.KIND_COLOURS[kind], "circle") for kind in KINDS] + [("bound", style.LINE, "dash")]
    )
    return style.finish(alt.vconcat(key, alt.hconcat(*panels, spacing=24), spacing=10), TITLE)


def _panel(points: list[dict], experiment: str, low: float, high: float) -> Any:
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(tickCount=5, format="~g")
    coloured = [p | {"colour": style.KIND_COLOURS.get(p["kind"], style.NEUTRAL)} for p in points]
    base = alt.Chart(style.data(coloured)).encode(
        x=alt.X("bound:Q", scale=scale, axis=axis, title="bound: mean squared deviations"),
        y=alt.Y("variance:Q", scale=scale, axis=axis, title="variance of the logits"),
        color=alt.Color("colour:N", scale=None),
        tooltip=["name:N", "seed:O", "kind:N", alt.Tooltip("variance:Q", format=".3g"),
                 alt.Tooltip("bound:Q", format=".3g"), alt.Tooltip("ratio:Q", format=".3f")],
    )  # fmt: skip
    line = (
        alt.Chart(style.data([{"a": low}, {"a": high}]))
        .mark_line(color=style.LINE, strokeDash=[4, 3])
        .encode(x=alt.X("a:Q", scale=scale), y=alt.Y("a:Q", scale=scale))
    )
    text = base.mark_text(align="left", dx=6, fontSize=10).encode(text="name:N")
    return alt.layer(line, base.mark_point(filled=True, size=60, opacity=0.9), text).properties(
        width=300, height=300, title=alt.TitleParams(experiment, fontSize=13, anchor="start")
    )
