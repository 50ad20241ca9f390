"""What tasks of pairs declare: pairs (letter, digit) in the target window, (letter, letter) after it."""

from typing import Annotated

from pydantic import Field

from ops.tasks.graph_spec import GraphTaskSpec


class PairTaskSpec(GraphTaskSpec):
    """Digits and letters of the pairs. Each task says how many letters its `alphabet` has."""

    n_digits: Annotated[int, Field(ge=1, le=1_000)] = 8

    @property
    def alphabet(self) -> int:
        """Number of letters that there are."""
        raise NotImplementedError

    @property
    def not_lengthened(self) -> str | None:
        """Extra pairs take letters that no path may use."""
        if self.hops[-1] < self.alphabet:
            return None
        return (
            f"needs letters off the path, but paths of {self.hops[-1]} hops may use all {self.alphabet} letters of the "
            "task; use fewer hops or more letters"
        )
