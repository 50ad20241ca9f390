"""Retrieval as one attention head on pair tokens.

query = R(ω)^(-right) v of a letter-letter pair, R(ω)^(-left) v of a letter-digit pair; key = R(ω)^(-left) v;
value = identity; no residual. Logit on the key at distance d: cos((left_j − asked) ω + d θ), ω = 2π / |alphabet|.
"""

import math

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.tasks.pair_spec import PairTaskSpec
from ops.tasks.pairs import first_letter_pair, lefts_and_rights, pair_vocabulary_size
from ops.tasks.task import Construction, Head


class RetrievalConstruction(Construction[PairTaskSpec]):
    """The theorem wants 0 < θ < ω / (2 n₀) for up to n₀ keys before the query."""

    def head(self, theta: float) -> Head:
        """The Retrieval head."""
        ids = torch.arange(1, pair_vocabulary_size(self.spec))
        left, right = (part[0] for part in lefts_and_rights(ids[None], self.spec))
        asked = torch.where(ids >= first_letter_pair(self.spec), right, left)
        omega = 2 * math.pi / self.spec.alphabet

        def directions(letters: Tensor) -> Tensor:
            turn = -letters.to(torch.float64) * omega
            padding = torch.zeros(1, 2, dtype=torch.float64)
            return torch.cat((padding, torch.stack((turn.cos(), turn.sin()), -1)))

        return Head(
            query=directions(asked),
            key=directions(left),
            key_bias=torch.zeros(2, dtype=torch.float64),
            value=torch.ones(len(ids) + 1, dtype=torch.float64),
            residual=False,
        )

    def defined(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """At a pair (x, y), x ≠ y, with exactly one earlier pair of left letter y; and at some letter-digit pairs.

        These are those without an earlier pair of the same left letter.
        """
        positions = torch.arange(ids.shape[1])
        left, right = lefts_and_rights(ids, self.spec)
        pairs = ids >= first_letter_pair(self.spec)
        asked = torch.where(pairs, right, left)
        n_earlier = ((left[:, None, :] == asked[:, :, None]) & (positions < positions[:, None])).sum(-1)
        return torch.where(pairs, (n_earlier == 1) & (left != right), n_earlier == 0)

    def tokens_at(self, position: int) -> list[int]:
        """Any pair."""
        return list(range(1, pair_vocabulary_size(self.spec)))
