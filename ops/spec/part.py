"""The base of every part of a spec: frozen, strict, no unknown fields."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = r"^[a-z][a-z0-9_]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]


def rising(values: tuple) -> tuple:
    """A list that rises. Raises ValueError."""
    if not values or list(values) != sorted(set(values)):
        raise ValueError("must be a non-empty list of distinct integers in rising order, e.g. [1, 2, 3, 4]")
    return values


def once(values: tuple) -> tuple:
    """A list that names nothing twice. Raises ValueError."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value} stands twice; name each once")
        seen.add(value)
    return values


Distinct = AfterValidator(once)
Rising = AfterValidator(rising)
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1), Distinct]
Tau = Annotated[float, Field(ge=1e-12, le=1e6)]  # attention mass; smaller ones vanish beside it in single precision


class SpecPart(BaseModel):
    """One part of a spec. Instances are hashable, immutable, and refuse unknown fields and wrong types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
