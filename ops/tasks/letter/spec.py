"""The letter task as data."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ops.tasks.graph_spec import OffChain
from ops.tasks.pair_spec import PairTaskSpec


class LetterTaskSpec(PairTaskSpec):
    """A pair (x, y) points to the earlier pair whose left letter is y; target pairs are (letter, digit).

    Published, right letters off the chain are never the chain's; with `off_chain: anywhere` they are any letters.
    """

    PUBLISHED: ClassVar[OffChain] = "never_onto_chain"
    name: Literal["letter"] = "letter"
    n_letters: Annotated[int, Field(ge=2, le=1_000)] = 8

    @property
    def alphabet(self) -> int:
        """Number of letters."""
        return self.n_letters

    @model_validator(mode="after")
    def _alphabet_suffices(self):
        if self.n_letters <= self.hops[-1]:
            raise ValueError(
                f"n_letters is {self.n_letters}, but a unique path of {self.hops[-1]} hops uses as many letters "
                f"and needs at least one more for the tokens off the path; set n_letters to {self.hops[-1] + 1} or more"
            )
        return self
