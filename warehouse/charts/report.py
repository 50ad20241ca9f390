"""The report: verdicts, what ran, every figure with the SQL behind it, in one folder that needs no network."""

import shutil
from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import vl_convert

from warehouse.charts.drawing import VEGA_LITE, Drawing, load
from warehouse.charts.style import rows

SQL = files("warehouse") / "sql"
PAPERS = {"PVS": "https://arxiv.org/abs/2605.31558", "DPS": "https://arxiv.org/abs/2511.11579"}
VERDICT_MARKS = {"reproduced": "✓", "not reproduced": "✗", "not run": "–"}

STYLE = """
body { font: 15px/1.5 "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1b1b1b; margin: 2rem auto; max-width: 1180px; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem } h2 { margin-top: 2.6rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem }
h3 { margin: 2rem 0 .4rem; font-size: 1.05rem } nav a { margin-right: 1.2rem }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin: .8rem 0 } th, td { text-align: left; vertical-align: top; padding: .35rem .55rem; border-bottom: 1px solid #e4e4e4 }
th { background: #f5f5f5; font-weight: 600 } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.scroll { overflow-x: auto } .figure { overflow-x: auto } .figure img { max-width: 100% } .caption { max-width: 62rem; color: #333 }
.verdict { white-space: nowrap; font-weight: 600 } .reproduced { color: #00664d } .not-reproduced { color: #a33b00 } .not-run { color: #767676; font-weight: 400 }
.small { color: #666; font-size: 12px } pre { background: #f7f7f7; border: 1px solid #e4e4e4; padding: .7rem; overflow-x: auto; font-size: 12px } summary { cursor: pointer; color: #444 }
"""  # noqa: E501

EMBED = """
for (const place of document.querySelectorAll("[data-spec]")) {
  const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  const drawn = document.createElement("div");
  vegaEmbed(drawn, spec, {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}})
    .then(() => place.replaceChildren(drawn))
    .catch(error => console.error(place.dataset.spec, error));
}
"""


def render(connection: duckdb.DuckDBPyConnection, figures: Iterable[Path], folder: Path) -> Path:
    """Write index.html, figures/ (SVG, PNG, Vega-Lite) and sql/ (every view) into `folder`; return index.html.

    `connection` is open on a results database (`warehouse.catalog.build`), `figures` are the files that
    `warehouse.charts.drawing.save` wrote; they are copied. Everything shown is a row of a view; text from the database
    is escaped. Without a script the page shows the figures as pictures.
    """
    drawings = folder / "figures"
    drawings.mkdir(parents=True, exist_ok=True)
    for path in figures:
        shutil.copyfile(path, drawings / path.name)
    queries = {entry.name: entry.read_text(encoding="utf-8") for entry in SQL.iterdir() if entry.name.endswith(".sql")}
    (folder / "sql").mkdir(exist_ok=True)
    for name, text in sorted(queries.items()):
        (folder / "sql" / name).write_text(text, encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(connection, load(drawings), queries), encoding="utf-8")
    return page


def _page(connection: duckdb.DuckDBPyConnection, drawn: list[Drawing], queries: dict[str, str]) -> str:
    headings = list(dict.fromkeys(_heading(drawing) for drawing in drawn))
    links = [("claims", "Claims"), ("runs", "What ran"), *((_anchor(h), h) for h in headings)]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Ropewalk: results</title><style>{STYLE}</style></head><body>",
        "<h1>Ropewalk: results</h1>",
        "<p>Which attention heads act on position and which on content, how they grow, and which RoPE frequencies they "
        f"use: the claims of {_paper('PVS', 'arXiv 2605.31558')} (PVS) and {_paper('DPS', 'arXiv 2511.11579')} (DPS), "
        "decided from the results in this store.</p>",
        "<nav>" + "".join(f'<a href="#{escape(anchor)}">{escape(text)}</a>' for anchor, text in links) + "</nav>",
        _claims(connection),
        _runs(connection),
    ]
    for heading in headings:
        parts.append(f'<h2 id="{_anchor(heading)}">{escape(heading)}</h2>')
        parts += [_figure(drawing, queries) for drawing in drawn if _heading(drawing) == heading]
    parts.append(f"<script>{vl_convert.javascript_bundle(EMBED, vl_version=VEGA_LITE)}</script></body></html>")
    return "\n".join(parts) + "\n"


def _heading(drawing: Drawing) -> str:
    return f"Study {drawing.study}" if drawing.study is not None else "Over all studies"


def _anchor(heading: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in heading.lower())


def _paper(source: str, text: str) -> str:
    return f'<a href="{PAPERS[source]}">{escape(text)}</a>' if source in PAPERS else escape(text)


def _claims(connection: duckdb.DuckDBPyConnection) -> str:
    """The table of verdicts, in the order in which the claims are stated."""
    claims = rows(connection, "SELECT * FROM claims")
    counts = rows(connection, "SELECT verdict, count(*) AS n FROM claims GROUP BY verdict ORDER BY verdict DESC")

    def decided_by(claim: dict[str, Any]) -> str:
        if claim["verdict"] == "not run":
            return ""
        runs = f"holds on {claim['n_holds']} of {claim['n_runs']} run{'s' if claim['n_runs'] != 1 else ''}"
        detail = "".join(f"<div>{escape(part)}</div>" for part in str(claim["detail"] or "").split("; "))
        return (
            f"study {escape(str(claim['basis']))}: {escape(str(claim['experiment']))}"
            f'<details><summary class="small">{runs}</summary><div class="small">{detail}</div></details>'
        )

    def measured(claim: dict[str, Any]) -> str:
        low, high = claim["interval_low"], claim["interval_high"]
        spread = "" if low is None or high is None else f'<div class="small">{_number(low)} to {_number(high)}</div>'
        return _number(claim["measured"]) + spread

    def verdict(claim: dict[str, Any]) -> str:
        name = claim["verdict"]
        return f'<span class="verdict {name.replace(" ", "-")}">{VERDICT_MARKS[name]} {name}</span>'

    table = _table(
        claims,
        [
            (
                "claim",
                lambda c: (
                    f"{escape(c['statement'])}<div class='small'>{_paper(c['source'], c['source'])} "
                    f"{escape(c['place_in_source'])} · {escape(c['id'])}</div>"
                ),
            ),
            ("verdict", verdict),
            ("measure and criterion", lambda c: f"{escape(c['measure'])}: {escape(c['criterion'])}"),
            ("paper", lambda c: escape(c["paper_value"] or "")),
            ("measured (lowest to highest run or interval)", measured),
            ("decided by", decided_by),
        ],
    )
    summary = ", ".join(f"{row['n']} {row['verdict']}" for row in counts)
    return (
        f'<h2 id="claims">Claims</h2><p>{escape(summary)}. A claim counts as reproduced only if its criterion holds on '
        "every run that decides it. Runs of the study paper (the published size) decide; a claim that names no size "
        "falls back to the study quick, a smaller model, and says so. No null is asked: an untrained model or one that "
        "failed to learn may meet a criterion too, and one run decides little. Not run = the store has nothing to "
        "decide it by.</p>" + table
    )


def _runs(connection: duckdb.DuckDBPyConnection) -> str:
    """The table of runs."""
    runs = rows(connection, "SELECT * FROM overview ORDER BY study, experiment, seed")
    body = _table(
        runs,
        [
            ("study", lambda r: escape(r["study"])),
            ("experiment", lambda r: escape(r["experiment"])),
            ("seed", lambda r: str(r["seed"])),
            ("size", lambda r: escape(f"{r['n_layers']} layers × {r['n_heads']} heads × {r['width']}")),
            ("steps", lambda r: _number(r["last_step"])),
            ("test accuracy by hops", lambda r: escape(r["accuracy_by_hop"] or "not run")),
            ("best at step", lambda r: _number(r["maximal_at_step"])),
            ("pure positional heads", lambda r: _heads(r["n_positional"], r["positional_heads"])),
            ("pure symbolic heads", lambda r: _heads(r["n_symbolic"], r["symbolic_heads"])),
            ("artifacts in the cache", lambda r: _number(r["n_artifacts"])),
            ("seconds to compute", lambda r: _number(r["wall_s"], ",.0f")),
        ],
    )
    if not runs:
        body = "<p>Nothing has run yet.</p>"
    return (
        '<h2 id="runs">What ran</h2><p>Accuracy at the last checkpoint. A head is pure positional if its positional '
        "score is at least 0.9 and its symbolic score at most 0.1 from some step to the end, pure symbolic likewise. "
        "Seconds are what the cached artifacts cost when they were computed; a run that finds them computes nothing."
        "</p>" + body
    )


def _heads(n: int | None, names: str | None) -> str:
    return "" if n is None else f"{n}" + (f" <span class='small'>{escape(names)}</span>" if names else "")


def _number(value: float | int | None, form: str = ",.4g") -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:{form}}"


def _table(records: Iterable[dict[str, Any]], columns: list[tuple[str, Callable[[dict[str, Any]], str]]]) -> str:
    """An HTML table; each column is a heading and a function from a row to HTML that is escaped already."""
    head = "".join(f"<th>{escape(name)}</th>" for name, _ in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{cell(r)}</td>" for _, cell in columns) + "</tr>" for r in records)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _figure(drawing: Drawing, queries: dict[str, str]) -> str:
    """A figure as a picture that the script replaces by the live chart, its caption and its SQL."""
    stem = escape(drawing.stem, quote=True)
    title = escape(drawing.title, quote=True)
    spec = drawing.spec.replace("<", "\\u003c")
    sql = "\n".join(
        f"<details><summary>SQL: {escape(view)}</summary>"
        f'<a href="sql/{escape(view)}.sql">as a file</a><pre>{escape(queries[f"{view}.sql"])}</pre></details>'
        for view in drawing.views
    )
    return (
        f'<section><h3>{title}</h3>\n<div class="figure" data-spec="spec-{stem}"><img src="figures/{stem}.svg" '
        f'alt="{title}"></div>\n<p class="caption">{escape(drawing.caption)}</p>\n<p class="small">'
        f'<a href="figures/{stem}.svg">SVG</a> · <a href="figures/{stem}.png">PNG</a> · '
        f'<a href="figures/{stem}.vl.json">Vega-Lite</a></p>\n{sql}\n'
        f'<script type="application/json" id="spec-{stem}">{spec}</script></section>'
    )
