"""Scores of each RoPE frequency of a language model, and where each head's logits vary, beside the untrained twin."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "lm_frequencies"
TITLE = "Do fast RoPE planes act by position and slow ones by content?"
VIEWS = ("lm_frequency_curve", "lm_centroid", "lm_centroid_correlation")
ORDER = 630
PER_STUDY = False
READS = {
    "curve": """
        SELECT model, prompts, null_kind, frequency_id, avg(theta) AS theta, avg(lean) AS lean,
            avg(logit_variance_share) AS share
        FROM lm_frequency_curve
        GROUP BY ALL
        ORDER BY ALL
    """,
    "heads": """
        SELECT model, prompts, null_kind, layer, head, centroid, lean
        FROM lm_centroid
        WHERE centroid IS NOT NULL AND lean IS NOT NULL AND tau = (SELECT max(tau) FROM lm_head_scores)
        ORDER BY ALL
    """,
    "correlations": """
        SELECT model, prompts, max(r) FILTER (null_kind = 'none') AS r,
            max(r) FILTER (null_kind = 'untrained') AS twin
        FROM lm_centroid_correlation
        WHERE tau = (SELECT max(tau) FROM lm_centroid_correlation)
        GROUP BY ALL
        HAVING max(r) FILTER (null_kind = 'none') IS NOT NULL
        ORDER BY model, prompts
    """,
}

NULLS = {"none": "the model", "untrained": "untrained twin"}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words, with the centroid's correlation beside its null."""
    said = "; ".join(
        f"{row['model']} on {row['prompts']} r = {row['r']:.2f}"
        + ("" if row["twin"] is None else f" (untrained {row['twin']:.2f})")
        for row in found["correlations"]
    )
    return (
        "Left: every plane taken as if it were a head's only one, symbolic minus positional score, mean over heads; "
        "frequency ID 1 turns fastest. Where the untrained twin's curve (grey) rises, the direction is geometry, "
        "and only the size beyond it is the model's. Middle: each plane's share of the logits' variance. "
        "Right: one point a head, its variance-weighted frequency ID against the symbolic minus positional score of "
        f"the whole head. Correlation over heads: {said or 'not run yet'}. Only what exceeds the untrained twin is the "
        "model's own."
    )


def chart(found: style.Found) -> Any:
    """Models and prompt sets as rows."""
    curve, heads = (
        [record | {"source": NULLS[record["null_kind"]]} for record in found[name]] for name in ("curve", "heads")
    )
    rows = []
    for model, prompts in dict.fromkeys((point["model"], point["prompts"]) for point in curve):
        of_curve, of_heads = (
            [record for record in records if (record["model"], record["prompts"]) == (model, prompts)]
            for records in (curve, heads)
        )
        title = f"{model}: {prompts}"
        lean = _lines(of_curve, "lean", "symbolic − positional score", title)
        panels = [lean, _lines(of_curve, "share", "share of logit variance", "")]
        rows.append(alt.hconcat(*panels, *([_heads(of_heads)] if of_heads else []), spacing=20))
    return style.finish(alt.vconcat(*rows), TITLE)


def _colour() -> Any:
    scale = alt.Scale(domain=list(NULLS.values()), range=[style.SYMBOLIC, style.NEUTRAL])
    return alt.Color("source:N", scale=scale, title=None, legend=alt.Legend(orient="top"))


def _lines(points: list[dict], column: str, label: str, title: str) -> Any:
    return (
        alt.Chart(style.data(points))
        .mark_line(point=alt.OverlayMarkDef(size=18))
        .encode(
            x=alt.X("frequency_id:Q", title="frequency ID", scale=alt.Scale(nice=False)),
            y=alt.Y(f"{column}:Q", title=label),
            color=_colour(),
            tooltip=["source:N", "frequency_id:Q", alt.Tooltip("theta:Q", format=".2g"),
                     alt.Tooltip(f"{column}:Q", format=".3f")],
        )
        .properties(width=270, height=190, title=alt.TitleParams(title, fontSize=12, anchor="start"))
    )  # fmt: skip


def _heads(points: list[dict]) -> Any:
    return (
        alt.Chart(style.data(points))
        .mark_circle(size=26, opacity=0.6)
        .encode(
            x=alt.X("centroid:Q", title="frequency centroid (ID)", scale=alt.Scale(zero=False)),
            y=alt.Y("lean:Q", title="symbolic − positional score"),
            color=_colour(),
            tooltip=["source:N", "layer:Q", "head:Q", alt.Tooltip("centroid:Q", format=".1f"),
                     alt.Tooltip("lean:Q", format=".3f")],
        )
        .properties(width=270, height=190)
    )  # fmt: skip
