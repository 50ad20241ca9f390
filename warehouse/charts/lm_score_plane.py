"""The positional–symbolic plane of a language model's heads, beside random logits and its untrained twin."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "lm_score_plane"
TITLE = "Do a language model's heads act by position or by content?"
VIEWS = ("lm_centroid", "lm_correlation", "lm_reliability")
ORDER = 610
PER_STUDY = False
READS = {
    "points": """
        SELECT model, prompts, null_kind, layer, head, tau, positional_score, symbolic_score, centroid, own_mass,
            sink_mass, layer_type
        FROM lm_centroid
        WHERE positional_score IS NOT NULL AND tau = (SELECT max(tau) FROM lm_head_scores)
        ORDER BY model, prompts, layer, head, seed
    """,
    "correlations": """
        SELECT model, prompts, tau, null_kind, avg(r) AS r, max(p) AS p
        FROM lm_correlation
        WHERE r IS NOT NULL
        GROUP BY ALL
        ORDER BY model, prompts, tau DESC, null_kind
    """,
    "reliability": """
        SELECT min(reliability) AS low, max(n) AS n
        FROM lm_reliability
        WHERE null_kind = 'none' AND tau = (SELECT max(tau) FROM lm_correlation)
    """,
}

CELL = 250
NULLS = {"none": "the model", "untrained": "same architecture, untrained", "random-logits": "random logits"}
SHORT = {"none": "the model", "untrained": "untrained", "random-logits": "random logits"}


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words, with r beside its nulls."""
    told: dict[tuple[str, str, float], list[str]] = {}
    for row in found["correlations"]:
        p = f" (p = {row['p']:.1g})" if row["p"] >= 1e-15 else " (p < 1e-15)"
        told.setdefault((row["model"], row["prompts"], row["tau"]), []).append(
            f"{SHORT[row['null_kind']]} {row['r']:.2f}{p if row['null_kind'] == 'none' else ''}"
        )
    repeats = found["reliability"][0] if found["reliability"] else {"low": None}
    numbers = "; ".join(
        f"{model} on {prompts} at tau {tau:g}: {', '.join(parts)}" for (model, prompts, tau), parts in told.items()
    )
    reliable = (
        f" Scores are means over {repeats['n']} prompts; their lowest reliability (split half, Spearman–Brown) is "
        f"{repeats['low']:.2f}."
        if repeats["low"] is not None
        else ""
    )
    return (
        "One point a head (hover for layer, head, scores and frequency centroid): positional score to the right, "
        "symbolic score upwards, coloured by layer, at the largest tau. Columns: the model, the same architecture with "
        "random weights, and random logits with each head's own mean and spread. Correlation r over heads on a prompt, "
        f"mean over prompts: {numbers or 'not run yet'}. What is geometry: the smaller tau, the more a single swap "
        "decides, and then the two scores lie near a circle, so that random logits are anticorrelated too; heads of "
        "unequal sharpness pull r up, since even attention scores high in both. What is the model: only what lies "
        f"beyond both nulls.{reliable}"
    )


def chart(found: style.Found) -> Any:
    """Prompt sets as rows, the model and its nulls as columns, at the largest tau."""
    points = [
        point | {"row": f"{point['model']}: {point['prompts']}", "column": NULLS[point["null_kind"]]}
        for point in found["points"]
    ]
    scale = alt.Scale(domain=[0, 1.02], nice=False)
    base = (
        alt.Chart(style.data(points))
        .mark_circle(size=34, opacity=0.75)
        .encode(
            x=alt.X("positional_score:Q", scale=scale, title="positional score"),
            y=alt.Y("symbolic_score:Q", scale=scale, title="symbolic score"),
            color=alt.Color("layer:Q", scale=alt.Scale(scheme="viridis"), title="layer"),
            tooltip=["model:N", "prompts:N", "layer:Q", "head:Q", "layer_type:N",
                     alt.Tooltip("positional_score:Q", format=".3f"), alt.Tooltip("symbolic_score:Q", format=".3f"),
                     alt.Tooltip("centroid:Q", format=".1f", title="frequency centroid"),
                     alt.Tooltip("own_mass:Q", format=".3f"), alt.Tooltip("sink_mass:Q", format=".3f")],
        )
        .properties(width=CELL, height=CELL)
    )  # fmt: skip
    header = alt.Header(labelFontSize=12, labelFontWeight="bold", title=None)
    faceted = base.facet(
        row=alt.Row("row:N", header=header), column=alt.Column("column:N", sort=list(NULLS.values()), header=header)
    )
    return style.finish(faceted, TITLE)
