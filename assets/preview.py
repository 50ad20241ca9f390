"""A small picture on an asset's page: series as lines, an inline SVG in Markdown."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#475569")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 640, 220, 56, 220, 26, 24, 14


def lines(title: str, series: Mapping[str, Sequence[float]]) -> str:
    """Markdown with one line a series (same x, from left to right), named with its last value.

    Raises ValueError on an empty selection or unequal lengths.
    """
    lengths = {len(values) for values in series.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"{title}: series of lengths {sorted(lengths)} cannot share an axis")
    values = [value for each in series.values() for value in each]
    bottom = min(values)
    span = (max(values) - bottom) or 1.0
    n_points = lengths.pop()
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(step: int) -> float:
        return LEFT + step / max(n_points - 1, 1) * (right - LEFT)

    def y(value: float) -> float:
        return floor - (value - bottom) / span * (floor - TOP)

    drawn = [f'<text x="{LEFT}" y="14" font-weight="bold">{escape(title)}</text>']
    for value in (bottom, bottom + span / 2, bottom + span):
        drawn.append(f'<line x1="{LEFT}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#555">{value:.3g}</text>')
    x_axis = f"{n_points} points, first to last" if n_points > 1 else "1 point"
    drawn.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle" fill="#555">{x_axis}</text>')
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in enumerate(points))
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{path}"/>')
        drawn.append(f'<circle cx="{x(n_points - 1):.1f}" cy="{y(points[-1]):.1f}" r="2.5" fill="{colour}"/>')
        drawn.append(
            f'<text x="{right + 12}" y="{TOP + 4 + LINE * index}" fill="{colour}">'
            f"{escape(name)}: {points[-1]:.3g}</text>"
        )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>{"".join(drawn)}</svg>'
    )
    return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
