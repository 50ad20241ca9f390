"""Retrieval, the ideal function of tasks of pairs, and what else a mechanism is tested with (arXiv 2605.31558 §3.2)."""

import torch
from jaxtyping import Int
from torch import Tensor

from ops.tasks.pair_spec import PairTaskSpec
from ops.tasks.pairs import first_letter_pair, lefts_and_rights
from ops.tasks.sequences import another
from ops.tasks.task import Applied, Mechanism


class RetrievalMechanism(Mechanism[PairTaskSpec]):
    """A letter-letter pair (x, y) looks at the pair whose left letter is y."""

    def ideal_hop(self, ids: Int[Tensor, "n position"]) -> Applied:
        """A letter-letter pair (x, y) copies the nearest earlier pair whose left letter is y.

        A letter-digit pair, and a pair without such a predecessor, looks at itself. Any length.
        """
        left, right = lefts_and_rights(ids, self.spec)
        positions = torch.arange(ids.shape[1])
        match = (left[:, None, :] == right[:, :, None]) & (positions < positions[:, None])
        nearest = torch.where(match, positions, -1).amax(-1)
        asks = (ids >= first_letter_pair(self.spec)) & (nearest >= 0)
        attends_to = torch.where(asks, nearest, positions.expand_as(ids))
        return Applied(ids.gather(1, attends_to), attends_to)

    def other_answers(self, labels: Int[Tensor, "n"], generator: torch.Generator) -> Int[Tensor, "n"]:
        """Another digit beside the same left letter, so that the path stays, uniformly."""
        digits = (labels - 1) % self.spec.n_digits
        return labels - digits + another(digits, self.spec.n_digits, generator)

    @property
    def token_kinds(self) -> tuple[str, ...]:
        """Padding, (letter, digit), (letter, letter)."""
        n_targets, n_letters = first_letter_pair(self.spec) - 1, self.spec.alphabet
        return ("padding", *["letter-digit"] * n_targets, *["letter-letter"] * n_letters**2)
