"""Which RoPE frequencies each head uses (arXiv 2605.31558, Table 1 and Fig. 8)."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "frequency_use"
TITLE = "Which RoPE frequencies does each head use?"
VIEWS = ("frequency_share", "frequency_comparison", "frequency_over_training")
ORDER = 130
PER_STUDY = True
READS = {
    "experiments": """
        SELECT experiment, max(n_frequencies) AS n_frequencies, max(step) AS last_step, count(paper_id) AS n_paper
        FROM frequency_comparison
        WHERE {study}
        GROUP BY experiment
        ORDER BY experiment DESC
    """,
    "shares": """
        SELECT experiment, layer, head, name, frequency_id, id_from, id_to, share, mean_use, theta
        FROM frequency_share
        WHERE share IS NOT NULL AND {study}
        ORDER BY ALL
    """,
    "means": """
        SELECT experiment, name, weighted_id, low, high, paper_id
        FROM frequency_comparison
        WHERE {study}
        ORDER BY experiment, layer, head
    """,
    "course": """
        SELECT experiment, name, step, next_step, weighted_id
        FROM frequency_over_training
        WHERE next_step IS NOT NULL AND weighted_id IS NOT NULL AND {study}
        ORDER BY experiment, layer, head, step
    """,
}

WIDTH = 430
ROW = 18


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    compared = any(run["n_paper"] for run in found["experiments"])
    beside = (
        "diamonds are the paper's Table 1 (one run)."
        if compared
        else "the paper's values are not drawn, since this model has other layers or other frequencies."
    )
    return (
        "A head's logit is a sum over RoPE planes; plane (frequency ID) 1 turns fastest, the last hardly at all. "
        "Top: how a head's use is shared out among the planes at the last checkpoint (use = a plane's largest "
        "contribution to a logit of the last token, averaged over inputs; shares of its square, a row sums to 1). "
        f"Middle: the mean frequency ID weighted by that square, with the lowest and highest seed; {beside} Bottom: "
        "the same mean at every checkpoint. A contribution that is the same on all keys counts as use. Read beside an "
        "untrained model: with 64 planes its means lay at 30 to 31 in layers 1 to 11."
    )


def chart(found: style.Found) -> Any:
    """Experiments of a study as columns."""
    experiments = found["experiments"]
    entries = [("this run: squared-weight mean, lowest to highest seed", style.LINE, "circle")]
    if any(run["n_paper"] for run in experiments):
        entries.append(("the paper's Table 1", style.PAPER, "diamond"))
    columns = [_column(found, run) for run in experiments]
    body = alt.hconcat(*columns, spacing=28).resolve_scale(color="independent")
    return style.finish(alt.vconcat(style.key(entries), body, spacing=14).resolve_scale(color="independent"), TITLE)


def _head_axis(records: list[dict]) -> alt.Y:
    names = list(dict.fromkeys(record["name"] for record in records))
    return alt.Y("name:N", sort=names, title="head", axis=alt.Axis(grid=False))


def _column(found: style.Found, run: dict[str, Any]) -> Any:
    experiment, n = run["experiment"], run["n_frequencies"]
    shares, means, course = (style.only(found[name], experiment=experiment) for name in ("shares", "means", "course"))
    panels: list[Any] = [_shares(shares, n, experiment), _means(means, n)]
    if course:
        panels.append(_course(course, n, run["last_step"]))
    return alt.vconcat(*panels, spacing=14).resolve_scale(color="independent")


def _shares(shares: list[dict], n: int, experiment: str) -> alt.Chart:
    return (
        alt.Chart(style.data(shares))
        .mark_rect()
        .encode(
            x=alt.X("id_from:Q", scale=alt.Scale(domain=[0.5, n + 0.5], nice=False), title="frequency ID (1 fastest)"),
            x2="id_to:Q",
            y=_head_axis(shares),
            color=alt.Color(
                "share:Q",
                scale=alt.Scale(range=["#FFFFFF", "#111111"], interpolate="lab", domainMin=0, type="sqrt"),
                legend=alt.Legend(title="share of squared use", format=".0%", orient="top", gradientLength=160),
            ),
            tooltip=["name:N", "frequency_id:Q", alt.Tooltip("share:Q", format=".3f"),
                     alt.Tooltip("mean_use:Q", format=".2f"), alt.Tooltip("theta:Q", format=".4f")],
        )
        .properties(
            width=WIDTH, height=alt.Step(ROW), title=alt.TitleParams(experiment, anchor="middle", fontSize=14)
        )
    )  # fmt: skip


def _means(means: list[dict], n: int) -> Any:
    scale = alt.Scale(domain=[0.5, n + 0.5], nice=False)
    base = alt.Chart(style.data(means)).encode(y=_head_axis(means))
    span = base.mark_rule(color=style.LINE, strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title="mean frequency ID"), x2="high:Q"
    )
    dot = base.mark_point(filled=True, color=style.LINE, size=55, opacity=1).encode(
        x=alt.X("weighted_id:Q", scale=scale, title="mean frequency ID"),
        tooltip=["name:N", alt.Tooltip("weighted_id:Q", format=".2f"), "paper_id:Q"],
    )
    paper = (
        base.transform_filter("isValid(datum.paper_id)")
        .mark_point(shape="diamond", color=style.PAPER, filled=False, size=75, strokeWidth=2, opacity=1)
        .encode(x=alt.X("paper_id:Q", scale=scale, title="mean frequency ID"))
    )
    return alt.layer(span, paper, dot).properties(width=WIDTH, height=alt.Step(ROW))


def _course(course: list[dict], n: int, last_step: int) -> alt.Chart:
    return (
        alt.Chart(style.data(course))
        .mark_rect()
        .encode(
            x=alt.X(
                "step:Q",
                scale=alt.Scale(domain=[0, last_step], nice=False),
                title="optimiser step",
                axis=alt.Axis(tickCount=6),
            ),
            x2="next_step:Q",
            y=_head_axis(course),
            color=alt.Color(
                "weighted_id:Q",
                scale=alt.Scale(scheme="viridis", domain=[1, n]),
                legend=alt.Legend(title="mean frequency ID", orient="top", gradientLength=160, tickCount=4),
            ),
            tooltip=["name:N", "step:Q", alt.Tooltip("weighted_id:Q", format=".2f")],
        )
        .properties(width=WIDTH, height=alt.Step(ROW))
    )
