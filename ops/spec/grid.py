"""A grid: experiments that differ in a few fields, every combination of them, in ten lines of YAML.

    grid:
      hops_{encoding}_{letters}:                   # the experiments' names
        training: {steps: 1_000}                   # what they share, beside the study's defaults
        over:
          encoding:
            integer: {task: {name: number}}        # hops_integer_16, hops_integer_32
            pair: {task: {name: letter_matched}}   # hops_pair_16, hops_pair_32
          letters:
            "16": {task: {target_window: 8}}       # a word for the name is text: numbers need quotes
            "32": {task: {target_window: 16}}

A cell says what the same experiment, written out, would say: it has its key, and its name seeds its data.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ops.spec.document import SpecError, dotted, quoted

MOST_CELLS = 10_000
_PLACE = re.compile(r"\{([^{}]*)\}")


def cells(grid: Any, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, body) of each experiment that the field `grid` of a study declares. Raises SpecError."""
    if not isinstance(grid, dict) or not grid:
        raise SpecError(source, f": grid: must be a mapping of name to experiment with over (given: {quoted(grid)})")
    for template, body in grid.items():
        where = ("grid", template)
        if not isinstance(body, dict) or not isinstance(axes := body.get("over"), dict) or not axes:
            raise SpecError(source, f": {dotted(*where)}: must have over, a mapping of what varies to its values")
        _refuse_odd_axes(template, axes, where, source)
        shared = {field: value for field, value in body.items() if field != "over"}
        for labels in itertools.product(*axes.values()):
            fragments = [axes[axis][label] for axis, label in zip(axes, labels, strict=True)]
            filled = dict(zip(axes, labels, strict=True))
            name = _PLACE.sub(lambda place, filled=filled: filled[place[1]], template)
            yield name, _joined(shared, fragments, (*where, "over"), source)


def _refuse_odd_axes(template: str, axes: Mapping[str, Any], where: tuple[str, ...], source: str) -> None:
    places = _PLACE.findall(template)
    if sorted(places) != sorted(axes):
        wanted = " ".join(f"{{{axis}}}" for axis in axes)
        raise SpecError(source, f": {dotted(*where)}: the name must hold each thing that varies once: {wanted}")
    n = 1
    for axis, values in axes.items():
        if not isinstance(values, dict) or not values:
            raise SpecError(
                source,
                f": {dotted(*where, 'over', axis)}: must be a mapping of a word for the name to fields "
                f"(given: {quoted(values)})",
            )
        for label, fields in values.items():
            if not isinstance(fields, dict):
                raise SpecError(
                    source,
                    f": {dotted(*where, 'over', axis, label)}: must be a mapping of an experiment's fields "
                    f"(given: {quoted(fields)})",
                )
        n *= len(values)
    if n > MOST_CELLS:
        raise SpecError(source, f": {dotted(*where)}: has {n:,} combinations; {MOST_CELLS:,} at most")


def _joined(shared: dict[str, Any], fragments: list[dict[str, Any]], where: tuple[str, ...], source: str) -> Any:
    """The fields of a cell: what is shared, then each fragment; two fragments that say the same field are refused."""
    taken: dict[tuple[str, ...], Any] = {}
    body = shared
    for fragment in fragments:
        for path, value in _leaves(fragment):
            if path in taken:
                raise SpecError(source, f": {dotted(*where)}: {dotted(*path)} is set by two of them; let one set it")
            taken[path] = value
        body = _over(body, fragment)
    return body


def _leaves(fields: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _over(base: Any, over: Any) -> Any:
    """`over` laid over `base`, mappings field by field."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {name: _over(base.get(name), value) for name, value in over.items()}
    return over
