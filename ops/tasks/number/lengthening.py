"""Longer inputs of the number task: more letters in front."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.number.task import NumberTask
from ops.tasks.sequences import Sequences, Solution
from ops.tasks.task import Lengthened, Lengthening


class LettersInFront(Lengthening[NumberTaskSpec]):
    """Integers count back from their own position, so letters in front change no path."""

    def behind_prefixes(
        self, inputs: Lengthened, n_tokens: int, rng: np.random.Generator, changes: np.random.Generator
    ) -> Lengthened:
        """Prefix letters are uniform; the sequences stay as they are."""
        return inputs._replace(prefixes=self._letters((len(inputs.ids), n_tokens), rng))

    def reach(self, length: int) -> int:
        """As far as the vocabulary's integers reach."""
        return self.spec.sequence_length - 1

    def point(
        self, ids: Int[Tensor, "*rows position"], here: Int[Tensor, "*rows 1"], there: Int[Tensor, "*rows 1"]
    ) -> Int[Tensor, "*rows position"]:
        """The integer is set to the new distance."""
        return ids.scatter(-1, here, here - there)

    def solve(self, ids: Int[Tensor, "n position"]) -> Solution:
        """In a task with that window, letters follow the integers, which reach further there."""
        window = ids.shape[1] - self.spec.pre_target_window - 1
        longer = self.spec.model_copy(update={"target_window": window})
        shift = longer.sequence_length - self.spec.sequence_length
        solution = NumberTask(longer).solve(ids + shift * (ids >= self.spec.sequence_length))
        return solution._replace(answer=solution.answer - shift)

    def before_rows(self, rows: Sequences, n_tokens: int, rng: np.random.Generator) -> Int[Tensor, "n token"]:
        """Uniform letters."""
        return self._letters((len(rows.ids), n_tokens), rng)

    def _letters(self, shape: tuple[int, int], rng: np.random.Generator) -> Tensor:
        return self.spec.sequence_length + torch.from_numpy(rng.integers(0, self.spec.n_letters, shape))


LENGTHENING = LettersInFront
