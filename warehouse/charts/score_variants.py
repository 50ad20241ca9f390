"""How much the scores depend on their definition: the reviewers' open questions."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "score_variants"
TITLE = "How much do a head's scores depend on how they are defined?"
VIEWS = ("score_variant_changes",)
ORDER = 820
PER_STUDY = True
READS = {
    "definitions": """
        SELECT experiment, queries, variant, tau, same_kind, r_positional, r_symbolic, change_positional,
            change_symbolic, n_heads
        FROM score_variant_changes
        WHERE {study}
        ORDER BY experiment DESC, queries DESC, variant DESC, tau
    """,
}

COLUMNS = (
    ("same_kind", "heads of the same kind", ".0%"),
    ("r_positional", "r of positional scores", ".2f"),
    ("r_symbolic", "r of symbolic scores", ".2f"),
    ("change_positional", "mean change, positional", ".3f"),
    ("change_symbolic", "mean change, symbolic", ".3f"),
)


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    return (
        "Every row is a definition beside the default (attention weights, swaps of two keys, the smallest tau, the "
        "last token as query), over all heads and seeds of the last checkpoint. Compared are softmax "
        "weights or logits (row "
        "mean subtracted), over all swaps of two keys or over random permutations of all keys; tau is the temperature "
        "of the weights over swaps; every hop = all positions of the path that ask for a next one, in place of the "
        "last token. Same kind: positional, symbolic or mixed at 0.9 and 0.1."
    )


def chart(found: style.Found) -> Any:
    """A table a experiment, coloured by how little changes."""
    compared = found["definitions"]
    panels = [
        _panel([c for c in compared if c["experiment"] == experiment], experiment)
        for experiment in dict.fromkeys(c["experiment"] for c in compared)
    ]
    return style.finish(alt.hconcat(*panels, spacing=30).resolve_scale(y="independent"), TITLE)


def _panel(found: list[dict], experiment: str) -> Any:
    cells = [
        {
            "row": f"{f['variant']}, tau {f['tau']:g}" + ("" if f["queries"] == "last query" else ", every hop"),
            "column": title,
            "value": f[field],
            "shown": "–" if f[field] is None else format(f[field], form),
            "likeness": None if f[field] is None else (1 - f[field] if field.startswith("change") else f[field]),
        }
        for f in found
        for field, title, form in COLUMNS
    ]
    order = list(dict.fromkeys(cell["row"] for cell in cells))
    base = alt.Chart(style.data(cells)).encode(
        x=alt.X("column:N", sort=[c[1] for c in COLUMNS], title=None,
                axis=alt.Axis(orient="top", labelAngle=-30, labelLimit=200)),
        y=alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=300)),
    )  # fmt: skip
    square = base.mark_rect(stroke="white").encode(
        color=alt.Color(
            "likeness:Q",
            scale=alt.Scale(domain=[0.5, 1], range=["#E9B7A0", "#FFFFFF"], clamp=True),
            legend=None,
        )
    )
    return alt.layer(square, base.mark_text(fontSize=11).encode(text="shown:N")).properties(
        width=72 * len(COLUMNS),
        height=22 * len(order),
        title=alt.TitleParams(f"{experiment} ({found[0]['n_heads']} heads)", fontSize=13, anchor="start"),
    )
