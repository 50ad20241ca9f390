"""The base of every part of a spec: frozen, strict, no unknown fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[a-z][a-z0-9_]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1)]


class SpecPart(BaseModel):
    """One part of a spec. Instances are hashable, immutable, and refuse unknown fields and wrong types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
