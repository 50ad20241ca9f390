"""The letter-matched task as data."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ops.tasks.graph_spec import PointerTaskSpec
from ops.tasks.pair_spec import PairTaskSpec


class LetterMatchedTaskSpec(PairTaskSpec, PointerTaskSpec):
    """The number task's pointer graphs written in letters: every non-query position has its own left letter.

    `n_letters` is the alphabet's size; if not set, as many letters as there are non-query positions.
    """

    name: Literal["letter_matched"] = "letter_matched"
    n_letters: Annotated[int, Field(ge=2, le=1_000)] | None = None

    @property
    def alphabet(self) -> int:
        """Number of letters."""
        return self.n_letters or self.sequence_length - 1

    @model_validator(mode="after")
    def _a_letter_for_each_position(self):
        if self.alphabet < self.sequence_length - 1:
            raise ValueError(
                f"n_letters is {self.n_letters}, but each of the {self.sequence_length - 1} non-query positions has "
                f"a left letter of its own; set n_letters to {self.sequence_length - 1} or more"
            )
        return self
