"""A small picture on an asset's page: series as lines, an inline SVG in Markdown."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#475569")
WIDTH, HEIGHT, MARGIN, LINE = 420, 150, 10, 14


def lines(
    title: str, series: Mapping[str, Sequence[float]], low: float | None = None, high: float | None = None
) -> str:
    """Markdown with one line a series (same x, from left to right). `low` and `high` fix the scale.

    Raises ValueError on an empty selection or unequal lengths.
    """
    lengths = {len(values) for values in series.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"{title}: series of lengths {sorted(lengths)} cannot share an axis")
    values = [value for each in series.values() for value in each]
    bottom = min(values) if low is None else low
    top = max(values) if high is None else high
    span = (top - bottom) or 1.0
    steps = max(lengths.pop() - 1, 1)
    inner = HEIGHT - 2 * MARGIN - LINE
    drawn = []
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(
            f"{MARGIN + step / steps * (WIDTH - 130):.1f},{MARGIN + LINE + (1 - (value - bottom) / span) * inner:.1f}"
            for step, value in enumerate(points)
        )
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{path}"/>')
        drawn.append(
            f'<text x="{WIDTH - 110}" y="{MARGIN + LINE * (index + 2)}" fill="{colour}">'
            f"{escape(name)} {points[-1]:.3g}</text>"
        )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="{MARGIN}" y="{MARGIN + 4}">'
        f"{escape(title)} ({bottom:.3g} to {top:.3g})</text>{''.join(drawn)}</svg>"
    )
    return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
