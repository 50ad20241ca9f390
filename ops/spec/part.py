"""The base of every part of a spec: frozen, strict, no unknown fields."""

from pydantic import BaseModel, ConfigDict


class SpecPart(BaseModel):
    """One part of a spec. Instances are hashable, immutable, and refuse unknown fields and wrong types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
