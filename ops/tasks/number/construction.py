"""Index as one attention head on the number task's tokens.

query of integer i = R(θ)^(-i) v, of a letter = v; key = v; value = 2 on letters, 0 elsewhere; x + a.
Logit on the key at distance d: cos((d − i) θ).
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.task import Construction, Head


class IndexConstruction(Construction[NumberTaskSpec]):
    """Angles θ that are no multiple of 2π."""

    def head(self, theta: float) -> Head:
        """The Index head."""
        ids = torch.arange(self.spec.sequence_length + self.spec.n_letters)
        letters = ids >= self.spec.sequence_length
        turn = torch.where(letters, 0.0, -ids.to(torch.float64) * theta)
        return Head(
            query=torch.stack((turn.cos(), turn.sin()), -1),
            key=torch.zeros(len(ids), 2, dtype=torch.float64),
            key_bias=torch.tensor([1.0, 0.0], dtype=torch.float64),
            value=2.0 * letters.to(torch.float64),
            residual=True,
        )

    def defined(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """At a letter, or an integer that points to a position of the sequence."""
        return (ids >= self.spec.sequence_length) | (ids <= torch.arange(ids.shape[1]))

    def tokens_at(self, position: int) -> list[int]:
        """Integers that point into the sequence, and every letter."""
        length = self.spec.sequence_length
        return [*range(1, position + 1), *range(length, length + self.spec.n_letters)]


CONSTRUCTION = IndexConstruction
