"""The number task as data."""

from typing import Annotated, Literal

from pydantic import Field

from ops.tasks.graph_spec import PointerTaskSpec


class NumberTaskSpec(PointerTaskSpec):
    """An integer i at position p points to position p - i; the target window holds letters."""

    name: Literal["number"] = "number"
    n_letters: Annotated[int, Field(ge=2, le=10_000)] = 120
