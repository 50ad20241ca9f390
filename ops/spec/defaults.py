"""A study's defaults by themselves: what they say is checked though no experiment may use it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from json import dumps
from typing import Annotated, Any, get_args

from pydantic import ValidationError, create_model

from ops.spec.document import complaint, dotted, quoted
from ops.spec.part import SpecPart


def wrong_default(
    defaults: Mapping[str, Any], parts: Sequence[type[SpecPart]], where: tuple[str, ...] = ("defaults",)
) -> str | None:
    """The first default that none of `parts` could have, as a field and a sentence.

    Each value is held against its own field: a part may be incomplete (the experiments add the rest), and what fields
    say together (warm-up within the steps) is checked of each experiment.
    """
    for name, value in defaults.items():
        holders = [part for part in parts if name in part.model_fields]
        if not holders:
            return f"{dotted(*where, name)}: unknown field; remove it or correct its name"
        inner = [part for holder in holders for part in _parts(holder.model_fields[name].annotation)]
        if isinstance(value, dict) and inner:
            found = wrong_default(value, inner, (*where, name))
        else:
            found = _fits_none(name, value, holders, where)
        if found:
            return found
    return None


def _fits_none(name: str, value: Any, holders: Sequence[type[SpecPart]], where: tuple[str, ...]) -> str | None:
    """What is wrong with a value that fits no holder's field of that name."""
    wrong: list[ValidationError] = []
    for holder in holders:
        try:
            _alone(holder, name).model_validate_json(dumps({name: value}))
        except ValidationError as error:
            wrong.append(error)
        else:
            return None
    expected = [error.errors()[0].get("ctx", {}).get("expected") for error in wrong]
    if len(wrong) > 1 and all(expected):  # names of alternatives, of which each holder knows its own
        return f"{dotted(*where, name)}: must be {' or '.join(map(str, expected))} (given: {quoted(value)})"
    return complaint(wrong[0], {name: value}, *where)


@cache
def _alone(part: type[SpecPart], name: str) -> type[SpecPart]:
    """A part with one field of another one, and none of its rules over several fields."""
    field = part.model_fields[name]
    kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    fields: dict[str, Any] = {name: (kind, ...)}
    return create_model("Default", __base__=SpecPart, **fields)


def _parts(annotation: Any) -> Iterator[type[SpecPart]]:
    """The parts that a field may hold, itself or as one of several or none; not those in a list."""
    if isinstance(annotation, type) and issubclass(annotation, SpecPart):
        yield annotation
    elif not hasattr(annotation, "__origin__") or annotation.__origin__ is not tuple:
        for each in get_args(annotation):
            yield from _parts(each)
