"""Cache keys: what a result depends on, as one hash, and the parts that it was made of.

A key covers the stage's name, the spec fields that the stage reads, the keys of its inputs and the definitions of the
code that decides the result (`warehouse.code`). Whatever only tells of a computation or protects it has no part in it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ops.spec.study import canonical_json
from warehouse.code import definitions


def made_of(stage: str, reads: Mapping[str, Any], inputs: Mapping[str, str], code: Sequence[str]) -> dict[str, Any]:
    """All that a key is made of: {stage, reads, inputs, code}, the code as {definition: digest}.

    `reads` are the spec fields (JSON values) that the stage reads, `inputs` its inputs' keys by stage name, `code` the
    roots of the code that decides the result. A field of `reads` that is None was left unset and does not count, at
    any depth, so that a spec can gain an optional field. Raises CodeError like `warehouse.code.definitions`.
    """
    return {"stage": stage, "reads": set_fields(reads), "inputs": dict(inputs), "code": dict(definitions(code))}


def code_of(roots: Sequence[str]) -> dict[str, Any]:
    """What a manifest records of the code: {roots, definitions}, the second as in `made_of`."""
    return {"roots": sorted(set(roots)), "definitions": dict(definitions(roots))}


def key_of(parts: Mapping[str, Any]) -> str:
    """The key of what `made_of` gave: 64 hexadecimal digits, equal on every machine.

    Raises TypeError or ValueError on values that JSON does not have.
    """
    return hashlib.sha256(canonical_json(dict(parts)).encode()).hexdigest()


def stage_key(stage: str, reads: Mapping[str, Any], inputs: Mapping[str, str], code: Sequence[str]) -> str:
    """`key_of` `made_of` the same arguments."""
    return key_of(made_of(stage, reads, inputs, code))


def set_fields(value: Any) -> Any:
    """A JSON value without the fields of mappings that are None."""
    if isinstance(value, Mapping):
        return {name: set_fields(part) for name, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [set_fields(part) for part in value]
    return value
