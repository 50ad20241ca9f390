"""What a YAML file says of the complement task."""

from typing import Annotated, Literal

from pydantic import Field

from ops.spec.task import TaskSpec


class ComplementTaskSpec(TaskSpec):
    """A token i at position p points to position p - (length - i); the target window holds letters."""

    name: Literal["complement"] = "complement"
    n_letters: Annotated[int, Field(ge=2, le=26)] = 4
    note: str | None = None
