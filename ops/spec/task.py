"""The tasks of arXiv 2605.31558 §2.1 as data: windows, alphabets, hops, split sizes."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ops.spec.part import Rising, SpecPart

Size = Annotated[int, Field(ge=1, le=100_000_000)]
Window = Annotated[int, Field(ge=1, le=4096)]


class _MultiHopTask(SpecPart):
    """What the multi-hop tasks share. Token windows are counted in tokens, splits in sequences."""

    target_window: Window = 8
    pre_target_window: Window = 8
    hops: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Rising] = (1, 2, 3, 4)
    n_train: Size = 432_000
    n_validation: Size = 2_400
    n_test: Size = 45_600

    @property
    def sequence_length(self) -> int:
        """Target window + pre-target window + the query token."""
        return self.target_window + self.pre_target_window + 1

    @model_validator(mode="after")
    def _hops_fit(self):
        if self.hops[-1] - 1 > self.pre_target_window:
            raise ValueError(
                f"hops up to {self.hops[-1]} need {self.hops[-1] - 1} intermediate positions, but pre_target_window "
                f"is {self.pre_target_window}; lower hops or widen pre_target_window"
            )
        return self


class NumberTaskSpec(_MultiHopTask):
    """An integer i at position p points to position p - i; the target window holds letters."""

    name: Literal["number"] = "number"
    n_letters: Annotated[int, Field(ge=2, le=10_000)] = 120


class LetterTaskSpec(_MultiHopTask):
    """A pair (x, y) points to the earlier pair whose left letter is y; target pairs are (letter, digit)."""

    name: Literal["letter"] = "letter"
    n_letters: Annotated[int, Field(ge=2, le=1_000)] = 8
    n_digits: Annotated[int, Field(ge=1, le=1_000)] = 8

    @model_validator(mode="after")
    def _alphabet_suffices(self):
        if self.n_letters <= self.hops[-1]:
            raise ValueError(
                f"n_letters is {self.n_letters}, but a unique path of {self.hops[-1]} hops uses as many letters "
                f"and needs at least one more for the tokens off the path; set n_letters to {self.hops[-1] + 1} or more"
            )
        return self


class LetterMatchedTaskSpec(_MultiHopTask):
    """The number task's pointer graphs written in letters: every non-query position has its own left letter."""

    name: Literal["letter_matched"] = "letter_matched"
    n_digits: Annotated[int, Field(ge=1, le=1_000)] = 8

    @property
    def n_letters(self) -> int:
        """One left letter for each non-query position."""
        return self.target_window + self.pre_target_window


TaskSpec = Annotated[NumberTaskSpec | LetterTaskSpec | LetterMatchedTaskSpec, Field(discriminator="name")]
