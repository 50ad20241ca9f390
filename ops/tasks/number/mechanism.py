"""Index, the number task's ideal function, and what else a mechanism is tested with (arXiv 2605.31558 §3.2)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.sequences import another
from ops.tasks.task import Applied, Mechanism


class IndexMechanism(Mechanism[NumberTaskSpec]):
    """A position that holds the integer i looks i positions back."""

    def ideal_hop(self, ids: Int[Tensor, "n position"]) -> Applied:
        """A position that holds the integer i looks i positions back, and copies the token there if it is a letter.

        A letter looks at itself; so does an integer that points to before the first position. Any length.
        """
        positions = torch.arange(ids.shape[1]).expand_as(ids)
        back = positions - ids
        points = (ids < self.spec.sequence_length) & (back >= 0)
        attends_to = torch.where(points, back, positions)
        seen = ids.gather(1, attends_to)
        return Applied(torch.where(self.taken(seen), seen, ids), attends_to)

    def taken(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """Letters. An integer is never taken over: its position keeps it in the residual stream."""
        return ids >= self.spec.sequence_length

    def other_answers(self, labels: Int[Tensor, "n"], generator: torch.Generator) -> Int[Tensor, "n"]:
        """Another letter, uniformly."""
        return another(labels - self.spec.sequence_length, self.spec.n_letters, generator) + self.spec.sequence_length

    @property
    def token_kinds(self) -> tuple[str, ...]:
        """Padding, integers, letters."""
        integers = ["integer"] * (self.spec.sequence_length - 1)
        return ("padding", *integers, *["letter"] * self.spec.n_letters)


MECHANISM = IndexMechanism
