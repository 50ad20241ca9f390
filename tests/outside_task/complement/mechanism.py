"""The ideal hop, donors, kinds of tokens."""

import torch

from complement.spec import ComplementTaskSpec
from ops.tasks.sequences import another
from ops.tasks.task import Applied, Mechanism


class ComplementMechanism(Mechanism[ComplementTaskSpec]):
    """As Index."""

    def ideal_hop(self, ids):
        """Looks as many positions back as the complement says, and takes a letter."""
        length, positions = self.spec.sequence_length, torch.arange(ids.shape[1]).expand_as(ids)
        back = positions - (length - ids)
        there = torch.where((ids < length) & (back >= 0), back, positions)
        seen = ids.gather(1, there)
        return Applied(torch.where(self.taken(seen), seen, ids), there)

    def taken(self, ids):
        """Letters."""
        return ids >= self.spec.sequence_length

    def other_answers(self, labels, generator):
        """Another letter."""
        first = self.spec.sequence_length
        return first + another(labels - first, self.spec.n_letters, generator)

    @property
    def token_kinds(self):
        """Padding, complements, letters."""
        return ("padding", *["complement"] * (self.spec.sequence_length - 1), *["letter"] * self.spec.n_letters)


MECHANISM = ComplementMechanism
