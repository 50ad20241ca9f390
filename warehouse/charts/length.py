"""Length extrapolation (arXiv 2605.31558, Fig. 5): the theory's bounds, accuracy by length, and what changes it."""

from collections.abc import Callable
from typing import Any

import altair as alt

from warehouse.charts import style

NAME = "length"
TITLE = "How far beyond its training length does each model get?"
VIEWS = ("length_curve", "length_summary", "discrepancy_bounds")
ORDER = 210
PER_STUDY = True
READS = {
    "points": """
        SELECT experiment, task, lengthening, inference, hop, length, accuracy, low, high
        FROM length_curve
        WHERE {study}
        ORDER BY ALL
    """,
    "summary": """
        SELECT * EXCLUDE (study)
        FROM length_summary
        WHERE lengthening = 'inert' AND {study}
        ORDER BY experiment, inference <> 'none', inference
    """,
    "runs": """
        SELECT experiment, max(n_seeds) AS n, max(n_prefixes) AS prefixes, max(n) AS sequences
        FROM length_curve
        WHERE {study}
        GROUP BY experiment
        ORDER BY ALL
    """,
    "bounds": """
        SELECT *
        FROM discrepancy_bounds
        WHERE bound IS NOT NULL AND bound > 0
        ORDER BY ALL
    """,
}

DASHES = ([1, 0], [5, 3], [1, 2])  # a dash each time that the colours begin anew
MOST_BANDS = 8  # more intervals on top of each other hide the curves
CHANGES = {
    "none": "plain",
    "log_n": "logits × ln n",
    "position_interpolation": "position interpolation",
    "yarn": "YaRN",
    "active": "plain, answer anywhere",
}
Draw = Callable[[list[dict], str], Any]  # one experiment's panel
SUMMARY = (
    ("at_trained", "trained"), ("at_2", "2 ×"), ("at_10", "10 ×"), ("at_50", "50 ×"), ("reach", "above 0.9 up to"),
)  # fmt: skip


def caption(found: style.Found) -> str:
    """What the figure shows, in plain words."""
    runs = found["runs"]
    behind = "; ".join(
        f"{run['experiment']}: {run['n']} seed{'s' if run['n'] > 1 else ''}, {run['prefixes']} prefixes, "
        f"{run['sequences']:,} sequences a length"
        for run in runs[:4]
    )
    return (
        "A: how far the best key can lead the second best in the constructions of Thm 3.2 (largest minus "
        "second-largest logit, Index with angle 0.8, Retrieval with 0.0027 and 8 letters); dashed, the bound as "
        "corrected by this project. B: share of sequences answered correctly when random tokens stand in front of the "
        "target window and nothing that the task needs moves. Below: the same by the number of hops; with changes at "
        "inference, and with the answer anywhere in the longer window; and how far each model gets (accuracy at "
        "multiples of the trained length, and the longest length up to which it stays above 0.9). Bands are 95 % "
        "intervals that allow for the sequences behind one prefix being alike; with several seeds they run from the "
        f"lowest end to the highest; with more than eight curves B has none ({behind or 'no runs'}"
        f"{'; …' if len(runs) > 4 else ''})."
    )


def chart(found: style.Found) -> Any:
    """Fig. 5 A and B side by side, then hop classes, changes at inference and a table."""
    points = found["points"]
    experiments = list(dict.fromkeys(point["experiment"] for point in points))
    plain = [p for p in points if p["lengthening"] == "inert" and p["inference"] == "none"]
    overall = [p for p in plain if p["hop"] is None]
    rows: list[Any] = [
        alt.hconcat(_bounds(found["bounds"]), _accuracy(overall, experiments), spacing=28).resolve_scale(
            color="independent", strokeDash="independent"
        ),
        _panels([p for p in plain if p["hop"] is not None], experiments, _by_hop(plain)),
    ]
    changed = [
        p | {"series": CHANGES["active" if p["lengthening"] == "active" else p["inference"]]}
        for p in points
        if p["hop"] is None
    ]
    tried = [e for e in experiments if len({p["series"] for p in changed if p["experiment"] == e}) > 1]
    if tried:
        rows.append(_panels(changed, tried, _by_change([p for p in changed if p["experiment"] in tried])))
    rows.append(_table(found["summary"]))
    return style.finish(alt.vconcat(*rows, spacing=26).resolve_scale(color="independent"), TITLE)


def _x(points: list[dict]) -> alt.X:
    ends = [min(p["length"] for p in points), max(p["length"] for p in points)]
    ticks = [n for n in (17, 50, 100, 200, 500, 1_000, 2_000, 5_000) if ends[0] <= n <= ends[1]]
    return alt.X(
        "length:Q", scale=alt.Scale(type="log", domain=ends, nice=False), title="tokens",
        axis=alt.Axis(values=ticks, format="d"),
    )  # fmt: skip


Y = alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1.02], nice=False), title="accuracy",
          axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 0.9, 1], format=".2~f"))  # fmt: skip


def _curves(points: list[dict], field: str, domain: list[str], colours: list[str], title: str, size: tuple) -> Any:
    scale = alt.Scale(domain=domain, range=colours)
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2,
        labelLimit=260,
        symbolStrokeWidth=3,
        symbolType="stroke",
        symbolOpacity=1,
    )
    base = alt.Chart(style.data(points)).encode(x=_x(points))
    colour = alt.Color(f"{field}:N", scale=scale, legend=legend)
    band = base.mark_area(opacity=0.2, clip=True).encode(y="low:Q", y2="high:Q", color=colour)
    line = base.mark_line(strokeWidth=2, clip=True, point=alt.OverlayMarkDef(size=18)).encode(
        y=Y,
        color=colour,
        tooltip=[f"{field}:N", "length:Q", alt.Tooltip("accuracy:Q", format=".3f"),
                 alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f")],
    )  # fmt: skip
    if len(domain) > len(style.PALETTE):
        dashes = [DASHES[i // len(style.PALETTE) % len(DASHES)] for i in range(len(domain))]
        line = line.encode(
            strokeDash=alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=domain, range=dashes), legend=legend)
        )
    heading = alt.TitleParams(title, anchor="start", fontSize=13)
    layers = [band, line] if len(domain) <= MOST_BANDS else [line]
    return alt.layer(*layers).properties(width=size[0], height=size[1], title=heading)


def _bounds(points: list[dict]) -> Any:
    lines = (
        alt.Chart(style.data(points))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=_x(points),
            y=alt.Y("bound:Q", scale=alt.Scale(type="log", domain=[1e-7, 1]), title="bound on the discrepancy",
                    axis=alt.Axis(values=[1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1], format=".0e")),
            color=alt.Color(
                "construction:N",
                scale=alt.Scale(domain=["index", "retrieval"], range=[style.POSITIONAL, style.SYMBOLIC]),
                legend=alt.Legend(title=None, orient="bottom"),
            ),
            strokeDash=alt.StrokeDash(
                "statement:N",
                scale=alt.Scale(domain=["as printed", "corrected"], range=[[1, 0], [5, 3]]),
                legend=alt.Legend(title=None, orient="bottom"),
            ),
            tooltip=["construction:N", "statement:N", "length:Q", alt.Tooltip("bound:Q", format=".2e")],
        )
    )  # fmt: skip
    heading = alt.TitleParams("A  theory: the largest lead of the right token", anchor="start", fontSize=13)
    return lines.properties(width=400, height=230, title=heading)


def _accuracy(points: list[dict], experiments: list[str]) -> Any:
    colours = style.palette(len(experiments))
    return _curves(points, "experiment", experiments, colours, "B  measured: accuracy over all hops", (480, 230))


def _panels(points: list[dict], experiments: list[str], draw: Draw) -> Any:
    """A panel an experiment, three in a row."""
    drawn = [draw([p for p in points if p["experiment"] == e], e) for e in experiments]
    lines = [alt.hconcat(*drawn[i : i + 3], spacing=20) for i in range(0, len(drawn), 3)]
    return alt.vconcat(*lines, spacing=14)


def _by_hop(every: list[dict]) -> Draw:
    """Panels by hop class; all share the legend, so all name the hop classes of `every` experiment."""
    hops = sorted({p["hop"] for p in every if p["hop"] is not None})
    names = {hop: "1 hop" if hop == 1 else f"{hop} hops" for hop in hops}
    colours = [style.hop_colour(hop) for hop in hops]

    def draw(points: list[dict], experiment: str) -> Any:
        named = [p | {"hops": names[p["hop"]]} for p in points]
        return _curves(named, "hops", list(names.values()), colours, experiment, (290, 130))

    return draw


def _by_change(every: list[dict]) -> Draw:
    """Panels by change at inference; all share the legend, so all name the changes tried on `every` experiment."""
    series = [name for name in CHANGES.values() if any(p["series"] == name for p in every)]
    colours = [style.PALETTE[list(CHANGES.values()).index(name)] for name in series]

    def draw(points: list[dict], experiment: str) -> Any:
        return _curves(points, "series", series, colours, f"{experiment}: changes at inference", (290, 130))

    return draw


def _table(summary: list[dict]) -> Any:
    """Accuracies as shaded cells, reach as a number."""
    names = [name for _, name in SUMMARY]
    cells = []
    for row in summary:
        variant = row["experiment"] + ("" if row["inference"] == "none" else f", {CHANGES[row['inference']]}")
        for field, name in SUMMARY:
            value = row[field]
            share = row["reach"] / row["longest"] if field == "reach" and value is not None else value
            text = "–" if value is None else f"{value:,}" if field == "reach" else f"{value:.2f}"
            cells.append({"variant": variant, "column": name, "shade": share if field != "reach" else None,
                          "text": text})  # fmt: skip
    variants = list(dict.fromkeys(cell["variant"] for cell in cells))
    base = alt.Chart(style.data(cells)).encode(
        x=alt.X("column:N", sort=names, title=None,
                axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)),
        y=alt.Y("variant:N", sort=variants, title=None, axis=alt.Axis(labelLimit=380, domain=False, ticks=False)),
    )  # fmt: skip
    scale = alt.Scale(domain=[0, 1], range=["#F1F5F3", "#12704F"], interpolate="rgb")
    rect = (
        base.transform_filter("datum.shade != null")
        .mark_rect(stroke="white", strokeWidth=2)
        .encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    )
    text = base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition("datum.shade > 0.6", alt.value("white"), alt.value("#222222"))
    )
    heading = alt.TitleParams("Accuracy at multiples of the trained length", anchor="start", fontSize=13)
    return alt.layer(rect, text).properties(width=110 * len(names), height=24 * len(variants), title=heading)
