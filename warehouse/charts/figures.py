"""The figures, found in this package, and how each is read, drawn and saved.

A new figure is one module here, and an SQL view if no view has its rows yet; nothing lists the modules.
"""

import hashlib
import json
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, Protocol, cast

import duckdb

import warehouse.charts as package
from warehouse.charts import style
from warehouse.charts.drawing import Drawing, save

STUDY = "{study}"
DRAWN_DIGITS = 6  # of a number in a picture's data
DIGEST_DIGITS = 9  # of one in the digest of a figure's rows: what a caption shows at most, less than sums differ by


class Figure(Protocol):
    """A module that draws one figure: the rows of its queries go in, a chart comes out, nothing is read in between.

    `READS` are its queries by name; `{study}` in one stands for the condition that a row is of the study that is drawn.
    The first query decides: if it has no rows, nothing ran, the picture says "not run yet", `chart` is not called and
    `caption` gets no rows of any. `VIEWS` are the views that the report shows beside the figure, those that it reads
    among them. `ORDER` is its place; the hundreds are chapters.
    With PER_STUDY there is one drawing a study that the first query has rows of, or one that says "not run yet" if
    there is none; without, there is one over everything (the study is None).
    """

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def VIEWS(self) -> tuple[str, ...]: ...

    @property
    def ORDER(self) -> int: ...

    @property
    def PER_STUDY(self) -> bool: ...

    @property
    def READS(self) -> Mapping[str, str]: ...

    def caption(self, found: style.Found) -> str: ...

    def chart(self, found: style.Found) -> Any: ...


def find() -> tuple[Figure, ...]:
    """The modules of this package that define NAME and chart, in their order."""
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    figures = [cast(Figure, module) for module in modules if hasattr(module, "NAME") and hasattr(module, "chart")]
    return tuple(sorted(figures, key=lambda figure: (figure.ORDER, figure.NAME)))


FIGURES = find()


def draw_all(connection: duckdb.DuckDBPyConnection) -> list[Drawing]:
    """Every figure for every study of the database, studies in alphabetical order, figures in that of FIGURES."""
    experiments = style.rows(connection, "SELECT DISTINCT study FROM experiments ORDER BY ALL")
    drawn: list[Drawing] = []
    for study in (row["study"] for row in experiments):
        for figure in FIGURES:
            if figure.PER_STUDY and _ran(found := read(connection, figure, study)):
                drawn.append(_drawing(figure, study, found))
    done = {drawing.name for drawing in drawn}
    return drawn + [draw(connection, figure, None) for figure in FIGURES if figure.NAME not in done]


def draw(connection: duckdb.DuckDBPyConnection, figure: Figure, study: str | None) -> Drawing:
    """One figure of one study (None = everything)."""
    return _drawing(figure, study, read(connection, figure, study))


def read(connection: duckdb.DuckDBPyConnection, figure: Figure, study: str | None) -> style.Found:
    """The rows of a figure's queries for one study (None = all of them).

    If the first query has none, nothing ran: the others are not asked and have none either.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for name, sql in queries(figure, study).items():
        found[name] = style.rows(connection, sql) if not found or _ran(found) else []
    return found


def queries(figure: Figure, study: str | None) -> dict[str, str]:
    """A figure's queries for one study (None = all of them) as SQL that runs as it stands."""
    condition = "true" if study is None else "study = '" + study.replace("'", "''") + "'"
    return {name: cleandoc(sql).replace(STUDY, condition) for name, sql in figure.READS.items()}


def _ran(found: style.Found) -> bool:
    """Whether there is something to draw."""
    return bool(next(iter(found.values())))


def _drawing(figure: Figure, study: str | None, found: style.Found) -> Drawing:
    title, rows_digest = figure.TITLE, digest(found)
    chart = figure.chart(found) if _ran(found) else style.finish(style.not_run(title), title)
    return Drawing(
        name=figure.NAME,
        title=title,
        views=figure.VIEWS,
        study=study,
        stem=figure.NAME if study is None else f"{figure.NAME}_{study}",
        caption=figure.caption(found),
        spec=json.dumps(_short(chart.to_dict(), DRAWN_DIGITS), separators=(",", ":"), allow_nan=False),
        sql=queries(figure, study),
        rows_digest=rows_digest,
        rows=found,
    )


def digest(found: style.Found) -> str:
    """SHA-256 of a figure's rows, numbers to nine digits, so that another order of a sum is no change."""
    text = json.dumps(_short(found, DIGEST_DIGITS), separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _short(value: Any, digits: int) -> Any:
    """JSON values whose numbers keep so many digits: half the size, the same picture."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, list):
        return [_short(item, digits) for item in value]
    if isinstance(value, dict):
        return {name: _short(item, digits) for name, item in value.items()}
    return value


def save_all(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Drawing]:
    """Draw every figure and write it to `folder` as files (`warehouse.charts.drawing.save`)."""
    drawn = draw_all(connection)
    save(drawn, folder)
    return drawn
