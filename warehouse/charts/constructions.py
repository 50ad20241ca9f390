"""The constructions of Thm 3.1: how sharp must the softmax be, and do they compute the functions."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "constructions"
TITLE = "How sharp must one head be to compute Index or Retrieval with one RoPE plane?"
VIEWS = ("construction_checks",)
ORDER = 840
PER_STUDY = True
READS = {
    "points": """
        SELECT construction, length, beta AS value, 'by the lemma' AS kind, exact_share
        FROM construction_checks
        WHERE sample = 'random' AND {study}
        UNION ALL
        SELECT construction, length, smallest_beta, 'least that works', exact_share
        FROM construction_checks
        WHERE sample = 'random' AND {study}
        ORDER BY ALL
    """,
    "checks": """
        SELECT construction, sample, min(exact_share) AS share, sum(n) AS n, min(theta) AS theta,
            max(length) AS longest
        FROM construction_checks
        WHERE {study}
        GROUP BY construction, sample
        ORDER BY construction, sample
    """,
}

NAMES = {"index": style.POSITIONAL, "retrieval": style.SYMBOLIC}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    said = "; ".join(
        f"{f['construction']}, {f['sample']}: {f['share']:.4%} of {f['n']:,} inputs, n up to {f['longest']}"
        for f in found["checks"]
    )
    return (
        "n = keys before the query. Solid: the sharpness that Lemma F.1's argument gives from the smallest discrepancy "
        "(all other keys together get at most 1e-4 of the attention, enough to chain four layers). Dashed: the least "
        "sharpness that is exact on every input, by bisection on the worst one. Index (theta 0.8) jumps where a "
        "multiple of theta comes closer to a full turn; Retrieval (theta 0.0027, 8 letters) grows as n theta nears "
        f"half a letter. Right tokens at the solid sharpness: {said or 'not run'}."
    )


def chart(found: style.Found) -> Any:
    """β over n, both axes logarithmic."""
    points = found["points"]
    base = alt.Chart(style.data(points)).encode(
        x=alt.X("length:Q", scale=alt.Scale(type="log", base=2, nice=False), title="n (keys before the query)"),
        y=alt.Y("value:Q", scale=alt.Scale(type="log"), title="sharpness of the softmax, β"),
        color=alt.Color("construction:N", scale=alt.Scale(domain=list(NAMES), range=list(NAMES.values())), legend=None),
        tooltip=["construction:N", "kind:N", "length:Q", alt.Tooltip("value:Q", format=".4g"), "exact_share:Q"],
    )
    line = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash(
            "kind:N", scale=alt.Scale(domain=["by the lemma", "least that works"], range=[[1, 0], [5, 4]]), legend=None
        )
    )
    point = base.mark_point(filled=True, size=45, opacity=1)
    key = style.key(
        [("Index, by the lemma", style.POSITIONAL, "line"), ("Index, least that works", style.POSITIONAL, "dash")]
        + [
            ("Retrieval, by the lemma", style.SYMBOLIC, "line"),
            ("Retrieval, least that works", style.SYMBOLIC, "dash"),
        ],
    )
    return style.finish(alt.vconcat(key, alt.layer(line, point).properties(width=620, height=300), spacing=8), TITLE)
