"""Training on inputs of mixed lengths."""

from typing import Annotated

from pydantic import Field, model_validator

from ops.spec.part import SpecPart

Length = Annotated[int, Field(ge=2, le=1_000_000)]


class MixedLengthsSpec(SpecPart):
    """Every training batch has one length, uniform over all whole numbers from `shortest` to `longest`.

    Lengths are whole ones, the sequence included; the target window is lengthened in front by tokens that leave the
    path as it is, drawn for each row anew (`ops.length.mixed_lengths`). A step costs about as many times more as the
    mean length exceeds the task's.
    """

    shortest: Length
    longest: Length

    @model_validator(mode="after")
    def _range_is_one(self):
        if self.shortest > self.longest:
            raise ValueError(f"shortest {self.shortest} is more than longest {self.longest}; exchange them")
        return self
