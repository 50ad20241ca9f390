"""What two keys of one stage differ in: spec fields, inputs, definitions of the code."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from warehouse.store import Artifact

SHOWN = 12


class Parts(NamedTuple):
    """What a key was made of. `spec` are the fields read, `inputs` keys by stage, `code` digests by definition.

    `code` is empty where it is not known (a result of the first edition).
    """

    stage: str
    spec: Mapping[str, Any]
    inputs: Mapping[str, str]
    code: Mapping[str, str]


class Difference(NamedTuple):
    """One field, input or definition: `kind` is spec, input or code; `before`, `after` None where there is none."""

    kind: str
    name: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.kind == "code":
            what = "added" if self.before is None else "removed" if self.after is None else "changed"
            return f"`{self.name}` {what}"
        if self.kind == "input":
            return f"its {self.name} ({_short(self.before)} -> {_short(self.after)})"
        return f"{self.name}: {_short(self.before)} -> {_short(self.after)}"


def parts_of(artifact: Artifact) -> Parts:
    """What an artifact's key was made of, from its manifest."""
    content = artifact.manifest
    return Parts(artifact.stage, content["spec"], content["inputs"], content["code"].get("definitions", {}))


def differences(before: Parts, after: Parts) -> list[Difference]:
    """All that differs, spec fields first, then code, then inputs. Code is compared only where both know theirs."""
    found = [Difference("spec", *each) for each in _fields(before.spec, after.spec)]
    if before.code and after.code:
        found += [Difference("code", *each) for each in _entries(before.code, after.code)]
    return found + [Difference("input", *each) for each in _entries(before.inputs, after.inputs)]


def sentence(found: list[Difference], code_known: bool = True) -> str:
    """The differences in one line, the first few by name."""
    if not found:
        return "nothing differs" if code_known else "the code (which definitions, was not recorded)"
    named = "; ".join(str(each) for each in found[:3])
    return named + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _entries(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _fields(before: Any, after: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted field, before, after) of nested mappings."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            yield from _fields(before.get(name), after.get(name), f"{where}.{name}" if where else name)
    elif before != after:
        yield where, before, after


def _short(value: Any) -> str:
    text = "unset" if value is None else value[:12] if _is_key(value) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
