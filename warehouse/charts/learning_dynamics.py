"""Learning dynamics (arXiv 2605.31558, Fig. 2): accuracy, scores and entropy of every layer, and purity over steps."""

from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "learning_dynamics"
TITLE = "When is each hop solved, and which heads turn positional or symbolic on the way?"
VIEWS = ("learning_dynamics", "learning_moments", "pure_heads", "pure_head_names")
ORDER = 110
PER_STUDY = True
READS = {
    "experiments": """
        SELECT experiment, max(step) AS last_step, max(n_seeds) AS n_seeds
        FROM learning_dynamics
        WHERE {study}
        GROUP BY experiment
        ORDER BY experiment DESC
    """,
    "hops": """
        SELECT DISTINCT hop
        FROM learning_dynamics
        WHERE hop IS NOT NULL AND {study}
        ORDER BY hop
    """,
    "points": """
        SELECT experiment, panel, layer, head, name, hop, series, step, value, low, high
        FROM learning_dynamics
        WHERE value IS NOT NULL AND {study}
        ORDER BY ALL
    """,
    "moments": """
        SELECT experiment, step
        FROM learning_moments
        WHERE {study}
        ORDER BY ALL
    """,
    "spans": """
        SELECT experiment, layer, head, kind, name, seed, since_step, last_step, lane
        FROM pure_heads
        JOIN (SELECT DISTINCT experiment, study FROM experiments) USING (experiment)
        WHERE gamma = 0.1::DOUBLE AND {study}
        ORDER BY ALL
    """,
    "names": """
        SELECT experiment, kind, names
        FROM pure_head_names
        JOIN (SELECT DISTINCT experiment, study FROM experiments) USING (experiment)
        WHERE gamma = 0.1::DOUBLE AND {study}
        ORDER BY experiment, kind
    """,
}

WIDTH = 430
MOMENT_RULE = {"color": style.MOMENT, "strokeDash": [4, 3], "strokeWidth": 1.5, "clip": True}
SERIES = ["positional", "symbolic", "normalised entropy"]


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    runs = reversed(found["experiments"])
    seeds = ", ".join(f"{run['experiment']}: {run['n_seeds']} seed{'s' if run['n_seeds'] > 1 else ''}" for run in runs)
    return (
        "Top: share of test sequences answered correctly, by the number of hops to follow. Middle: one strip a head "
        "(L3 = layer 3, L3H1 = its second head) with its positional score (1 = attention depends on where a token "
        "stands), its symbolic score (1 = on what it says), and the entropy of its layer's attention, scaled to the "
        "layer's own smallest and largest value; near 1 in both scores means attention spread evenly. The bar above "
        "a strip runs from the step at which a head became pure (one score at least 0.9, the other at most 0.1) and "
        "stayed so; one bar a seed. Bottom: how many heads are pure. The dashed vertical line is the moment of "
        "maximal accuracy (first step within 0.001 of the best; mean over seeds). Lines are means over seeds, bands "
        f"run from the lowest to the highest ({seeds or 'no runs'})."
    )


def chart(found: style.Found) -> Any:
    """Experiments of a study as columns; panels share the axis of steps."""
    columns = [_column(found, run["experiment"], run["last_step"]) for run in found["experiments"]]
    key = alt.vconcat(
        style.key(
            [(_hop_name(h["hop"]), style.hop_colour(h["hop"]), "line") for h in found["hops"]]
            + [
                ("moment of maximal accuracy", style.MOMENT, "dash"),
                ("lowest to highest over seeds", style.NEUTRAL, "band"),
            ]
        ),
        style.key(
            [
                ("positional", style.POSITIONAL, "line"),
                ("symbolic", style.SYMBOLIC, "line"),
                ("normalised entropy", style.NEUTRAL, "dash"),
                ("pure positional head", style.POSITIONAL, "bar"),
                ("pure symbolic head", style.SYMBOLIC, "bar"),
            ]
        ),
        spacing=4,
    )
    return style.finish(
        alt.vconcat(
            key,
            alt.hconcat(*columns, spacing=24).resolve_scale(color="independent", strokeDash="independent"),
            spacing=14,
        ).resolve_scale(color="independent", strokeDash="independent"),
        TITLE,
    )


def _hop_name(hop: int) -> str:
    return "1 hop" if hop == 1 else f"{hop} hops"


HIDDEN = alt.Axis(labels=False, ticks=False, title=None, tickCount=6)
SHOWN = alt.Axis(tickCount=6, title="optimiser step")


def _x(last_step: int, axis: alt.Axis | None = HIDDEN, field: str = "step") -> alt.X:
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, last_step], nice=False), axis=axis)


def _moment(moment: list[dict], last_step: int, axis: alt.Axis) -> alt.Chart:
    return alt.Chart(style.data(moment)).mark_rule(**MOMENT_RULE).encode(x=_x(last_step, axis))


def _column(found: style.Found, experiment: str, last_step: int) -> Any:
    """One experiment, from accuracy at the top to the pure heads at the bottom."""

    def panel(name: str) -> list[dict]:
        return style.only(found["points"], experiment=experiment, panel=name)

    moment, spans, names = (style.only(found[name], experiment=experiment) for name in ("moments", "spans", "names"))
    scores, counts = panel("scores"), panel("pure heads")
    panels: list[Any] = [_accuracy(panel("accuracy"), moment, last_step, experiment, HIDDEN if counts else SHOWN)]
    if scores:
        panels.append(_strips(scores, spans, moment, last_step))
    if counts:
        panels += [_names(names), _counts(counts, moment, last_step)]
    return alt.vconcat(*panels, spacing=8).resolve_scale(color="independent", strokeDash="independent")


def _accuracy(points: list[dict], moment: list[dict], last_step: int, experiment: str, axis: alt.Axis) -> Any:
    hops = sorted({p["hop"] for p in points})
    colour = alt.Color(
        "hop:O", scale=alt.Scale(domain=hops, range=[style.hop_colour(h) for h in hops]), legend=None, title="hops"
    )
    base = alt.Chart(style.data(points)).encode(x=_x(last_step, axis))
    band = base.mark_area(opacity=0.25, clip=True).encode(y="low:Q", y2="high:Q", color=colour)
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=alt.Y("value:Q", scale=alt.Scale(domain=[0, 1.02], nice=False), axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1]),
                title="test accuracy"),
        color=colour,
        tooltip=["hop:O", "step:Q", alt.Tooltip("value:Q", format=".3f"), alt.Tooltip("low:Q", format=".3f"),
                 alt.Tooltip("high:Q", format=".3f")],
    )  # fmt: skip
    return alt.layer(band, line, _moment(moment, last_step, axis)).properties(
        width=WIDTH, height=130, title=alt.TitleParams(experiment, anchor="middle", fontSize=14)
    )


def _strips(points: list[dict], spans: list[dict], moment: list[dict], last_step: int) -> Any:
    """A strip a head: scores and entropy as lines with bands, above them a bar from each head's purity on."""
    names = [name for _, _, name in sorted({(p["layer"], p["head"], p["name"]) for p in points})]
    lines = [{"mark": "line", **point} for point in points]
    bars = [{"mark": "bar", "series": span["kind"], **span} for span in spans]
    rules = [{"mark": "rule", "name": name, **at} for name in names for at in moment]
    colour = alt.Color("series:N", scale=style.kind_scale(*SERIES), legend=None)
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=SERIES, range=[[1, 0], [1, 0], [3, 2]]), legend=None)
    scale = alt.Scale(domain=[-0.05, 1.4], nice=False)
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(values=[0, 1], grid=True), title=None)
    base = alt.Chart().transform_filter(alt.datum.mark == "line").encode(x=_x(last_step))
    band = base.mark_area(opacity=0.22, clip=True).encode(
        y=alt.Y("low:Q", scale=scale, title=None), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=1.7, clip=True).encode(
        y=y,
        color=colour,
        strokeDash=dash,
        tooltip=["name:N", "series:N", "step:Q", alt.Tooltip("value:Q", format=".3f")],
    )
    rule = alt.Chart().transform_filter(alt.datum.mark == "rule").mark_rule(**MOMENT_RULE).encode(x=_x(last_step))
    bar = (
        alt.Chart()
        .transform_filter(alt.datum.mark == "bar")
        .mark_rule(strokeWidth=2.2, clip=True)
        .encode(
            x=_x(last_step, field="since_step"),
            x2="last_step:Q",
            y=alt.Y("lane:Q", scale=scale, title=None),
            color=colour,
            tooltip=["name:N", "series:N", "seed:O", "since_step:Q"],
        )
    )
    header = alt.Header(labelAngle=0, labelAlign="left", labelFontSize=12, labelFontWeight="bold")
    return (
        alt.layer(band, line, bar, rule, data=style.data([*lines, *bars, *rules]))
        .properties(width=WIDTH, height=42)
        .facet(row=alt.Row("name:N", sort=names, header=header, title=None), spacing=4)
    )


def _names(names: list[dict]) -> Any:
    """Names of the pure heads at the end, one line a kind."""
    lines = []
    for i, entry in enumerate(names):
        lines.append(
            alt.Chart(style.data([{"text": f"pure {entry['kind']}: {entry['names']}"}]))
            .mark_text(align="left", fontSize=11, color=style.KIND_COLOURS[entry["kind"]], limit=WIDTH)
            .encode(text="text:N", x=alt.value(2), y=alt.value(8 + 14 * i))
        )
    return alt.layer(*lines).properties(width=WIDTH, height=28, view=alt.ViewBackground(stroke=None))


def _counts(points: list[dict], moment: list[dict], last_step: int) -> Any:
    colour = alt.Color("series:N", scale=style.kind_scale("positional", "symbolic"), legend=None)
    base = alt.Chart(style.data(points)).encode(x=_x(last_step, SHOWN))
    band = base.mark_area(opacity=0.25, interpolate="step-after", clip=True).encode(
        y="low:Q", y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2, interpolate="step-after", clip=True).encode(
        y=alt.Y("value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=alt.Axis(tickMinStep=1, tickCount=6),
                title="pure heads"),
        color=colour,
        tooltip=["series:N", "step:Q", "value:Q", "low:Q", "high:Q"],
    )  # fmt: skip
    return alt.layer(band, line, _moment(moment, last_step, SHOWN)).properties(width=WIDTH, height=90)
