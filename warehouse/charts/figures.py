"""The list of figures, and how each is drawn and saved. A new figure is a module and a line in FIGURES."""

import json
from pathlib import Path
from typing import Any, Protocol

import duckdb

import warehouse.charts.ablation as ablation
import warehouse.charts.ablation_cumulative as ablation_cumulative
import warehouse.charts.canonical_angles as canonical_angles
import warehouse.charts.canonical_planes as canonical_planes
import warehouse.charts.canonical_positions as canonical_positions
import warehouse.charts.constructions as constructions
import warehouse.charts.discrepancy as discrepancy
import warehouse.charts.exclusion as exclusion
import warehouse.charts.flow_agreement as flow_agreement
import warehouse.charts.frequency_use as frequency_use
import warehouse.charts.geometry as geometry
import warehouse.charts.information_flow as information_flow
import warehouse.charts.language_frequencies as language_frequencies
import warehouse.charts.language_layers as language_layers
import warehouse.charts.language_lengths as language_lengths
import warehouse.charts.language_plane as language_plane
import warehouse.charts.learning_dynamics as learning_dynamics
import warehouse.charts.length as length
import warehouse.charts.matched_pair as matched_pair
import warehouse.charts.restricted_training as restricted_training
import warehouse.charts.score_definitions as score_definitions
import warehouse.charts.score_plane as score_plane
import warehouse.charts.shortcuts as shortcuts
import warehouse.charts.trained_discrepancy as trained_discrepancy
import warehouse.charts.training_loss as training_loss
import warehouse.charts.value_patching as value_patching
import warehouse.charts.where_it_breaks as where_it_breaks
from warehouse.charts.drawing import Drawing, save
from warehouse.charts.style import rows


class Figure(Protocol):
    """A module that draws one figure: its views go in, a chart comes out, nothing is computed in between.

    With PER_STUDY there is one drawing a study that the first view has rows of (the view has a column study), or one
    that says "not run yet" if there is none; without, there is one over everything (`study` is None).
    """

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def VIEWS(self) -> tuple[str, ...]: ...

    @property
    def PER_STUDY(self) -> bool: ...

    def caption(self, connection: duckdb.DuckDBPyConnection, study: str | None = None) -> str: ...

    def chart(self, connection: duckdb.DuckDBPyConnection, study: str | None = None) -> Any: ...


FIGURES: tuple[Figure, ...] = (
    learning_dynamics,
    score_plane,
    frequency_use,
    shortcuts,
    training_loss,
    length,
    where_it_breaks,
    matched_pair,
    ablation,
    ablation_cumulative,
    restricted_training,
    canonical_angles,
    canonical_positions,
    canonical_planes,
    language_plane,
    language_layers,
    language_frequencies,
    language_lengths,
    information_flow,
    value_patching,
    flow_agreement,
    geometry,
    exclusion,
    score_definitions,
    trained_discrepancy,
    constructions,
    discrepancy,
)


def draw_all(connection: duckdb.DuckDBPyConnection) -> list[Drawing]:
    """Every figure for every study of the database, studies in alphabetical order, figures in that of FIGURES."""
    studies = [
        row["study"] for row in rows(connection, "SELECT DISTINCT profile AS study FROM experiments ORDER BY ALL")
    ]
    pairs = [(figure, study) for study in studies for figure in FIGURES if figure.PER_STUDY]
    drawn = [draw(connection, figure, study) for figure, study in pairs if _has_rows(connection, figure, study)]
    done = {drawing.name for drawing in drawn}
    return drawn + [draw(connection, figure, None) for figure in FIGURES if figure.NAME not in done]


def _has_rows(connection: duckdb.DuckDBPyConnection, figure: Figure, study: str) -> bool:
    return bool(rows(connection, f'SELECT 1 FROM "{figure.VIEWS[0]}" WHERE study = ? LIMIT 1', study))


def draw(connection: duckdb.DuckDBPyConnection, figure: Figure, study: str | None) -> Drawing:
    """One figure of one study (None = everything)."""
    stem = figure.NAME if study is None else f"{figure.NAME}_{study}"
    spec = _text(figure.chart(connection, study).to_dict())
    return Drawing(figure.NAME, figure.TITLE, figure.VIEWS, study, stem, figure.caption(connection, study), spec)


def save_all(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Drawing]:
    """Draw every figure and write it to `folder` as files (`warehouse.charts.drawing.save`)."""
    drawn = draw_all(connection)
    save(drawn, folder)
    return drawn


def _text(spec: dict[str, Any]) -> str:
    """The chart as JSON. Numbers keep six digits, absent values are left out: half the size, the same picture."""
    return json.dumps(_short(spec), separators=(",", ":"), allow_nan=False)


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value
