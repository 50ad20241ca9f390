"""A drawn figure as files: <stem>.svg, <stem>.png and <stem>.vl.json, and drawings.json, which lists them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import vl_convert

VEGA_LITE = "6.4"
PIXEL_RATIO = 1.5
LIST = "drawings.json"


@dataclass(frozen=True)
class Drawing:
    """A figure drawn for one study (None = over everything).

    `name`, `title` and `views` are the figure's, `stem` names the files, `spec` is the Vega-Lite text with its data.
    `sql` are the queries that gave `rows`, by name, as they ran, and `rows_digest` is equal where the rows are. The
    rows themselves are in no file: a drawing that was loaded has none.
    """

    name: str
    title: str
    views: tuple[str, ...]
    study: str | None
    stem: str
    caption: str
    spec: str
    sql: Mapping[str, str]
    rows_digest: str
    rows: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict, compare=False, repr=False)


LISTED = [each.name for each in fields(Drawing) if each.name not in ("spec", "rows")]


def save(drawings: Sequence[Drawing], folder: Path) -> None:
    """Write three files a drawing, and the list, into `folder`, which is created if absent."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in drawings:
        svg = vl_convert.vegalite_to_svg(drawing.spec, vl_version=VEGA_LITE)
        (folder / f"{drawing.stem}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{drawing.stem}.png").write_bytes(vl_convert.svg_to_png(svg, scale=PIXEL_RATIO))
        (folder / f"{drawing.stem}.vl.json").write_text(drawing.spec, encoding="utf-8")
    listed = [{name: getattr(drawing, name) for name in LISTED} for drawing in drawings]
    (folder / LIST).write_text(json.dumps(listed, indent=1), encoding="utf-8")


def load(folder: Path) -> list[Drawing]:
    """The drawings that `save` wrote, in its order. Raises FileNotFoundError if the list or a spec is missing."""
    return [
        Drawing(
            **entry | {"views": tuple(entry["views"])},
            spec=(folder / f"{entry['stem']}.vl.json").read_text(encoding="utf-8"),
        )
        for entry in json.loads((folder / LIST).read_text(encoding="utf-8"))
    ]
