"""Longer inputs: more letters in front. Distances count from a token's own place, so paths stay."""

import torch

from complement.spec import ComplementTaskSpec
from complement.task import ComplementTask
from ops.tasks.task import Lengthening


class ComplementLengthening(Lengthening[ComplementTaskSpec]):
    """Letters in front."""

    def behind_prefixes(self, inputs, n_tokens, rng, changes):
        """Uniform letters."""
        return inputs._replace(prefixes=self._letters((len(inputs.ids), n_tokens), rng))

    def reach(self, length):
        """The vocabulary's numbers reach no further."""
        return self.spec.sequence_length - 1

    def point(self, ids, here, there):
        """The number that points to the new place."""
        return ids.scatter(-1, here, self.spec.sequence_length - (here - there))

    def solve(self, ids):
        """By the same task with a longer window: its numbers are larger by as much, and so are the letters' ids."""
        longer = self.spec.model_copy(update={"target_window": ids.shape[1] - self.spec.pre_target_window - 1})
        shift = longer.sequence_length - self.spec.sequence_length
        solution = ComplementTask(longer).solve(ids + shift)
        return solution._replace(answer=solution.answer - shift)

    def before_rows(self, rows, n_tokens, rng):
        """Uniform letters."""
        return self._letters((len(rows.ids), n_tokens), rng)

    def _letters(self, shape, rng):
        return self.spec.sequence_length + torch.from_numpy(rng.integers(0, self.spec.n_letters, shape))


LENGTHENING = ComplementLengthening
