"""Longer inputs of tasks of pairs: more (letter, digit) pairs in front, whose left letters no path behind them uses.

Each prefix has letters of its own, which the paths of the sequences behind it never use. Sequences get there by
renaming their letters, which changes nothing about them: the alphabet has no order.
"""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.tasks.pair_spec import PairTaskSpec
from ops.tasks.pairs import first_letter_pair, lefts_and_rights
from ops.tasks.sequences import Sequences, Solution
from ops.tasks.task import Lengthened, Lengthening, task_of


class PairsInFront(Lengthening[PairTaskSpec]):
    """As many letters as the task has hops at most are kept for paths; prefixes have the others."""

    def behind_prefixes(
        self, inputs: Lengthened, n_tokens: int, rng: np.random.Generator, changes: np.random.Generator
    ) -> Lengthened:
        """Prefix pairs have uniform digits, and lefts uniform among the letters that their paths leave; see above."""
        task, (n_prefixes, _, _) = self.spec, inputs.ids.shape
        alphabets = rng.permuted(np.tile(np.arange(task.alphabet), (n_prefixes, 1)), axis=1)  # the paths' letters first
        shape = (n_prefixes, n_tokens)
        lefts = np.take_along_axis(alphabets, rng.integers(task.hops[-1], task.alphabet, shape), axis=1)
        prefixes = torch.from_numpy(1 + task.n_digits * lefts + rng.integers(0, task.n_digits, shape))
        ids = _renamed(task, inputs, alphabets, changes)
        last = inputs.chain.gather(2, inputs.hops[..., None])
        return Lengthened(prefixes, ids, ids.gather(2, last)[..., 0], inputs.hops, inputs.chain)

    def solve(self, ids: Int[Tensor, "n position"]) -> Solution:
        """In the same task with that window and the trained alphabet."""
        window = ids.shape[1] - self.spec.pre_target_window - 1
        longer = self.spec.model_copy(update={"target_window": window, "n_letters": self.spec.alphabet})
        return task_of(longer).solve(ids)

    def before_rows(self, rows: Sequences, n_tokens: int, rng: np.random.Generator) -> Int[Tensor, "n token"]:
        """Uniform digits, and lefts uniform among letters of the row's own.

        These are all but as many as the task has hops at most, its path's among those left out.
        """
        left, _ = lefts_and_rights(rows.ids, self.spec)
        links = rows.chain[:, 1:]
        path = left.gather(1, links.clamp(min=0)).numpy()
        row, link = (links >= 0).numpy().nonzero()
        order = rng.random((len(path), self.spec.alphabet))
        order[row, path[row, link]] = -1.0  # the path's letters first, the others at random
        letters = np.argsort(order, axis=1)[:, self.spec.hops[-1] :]
        shape = (len(path), n_tokens)
        lefts = np.take_along_axis(letters, rng.integers(0, letters.shape[1], shape), axis=1)
        return torch.from_numpy(1 + self.spec.n_digits * lefts + rng.integers(0, self.spec.n_digits, shape))


def _renamed(
    task: PairTaskSpec, inputs: Lengthened, alphabets: Int[np.ndarray, "prefix letter"], rng: np.random.Generator
) -> Int[Tensor, "prefix sequence position"]:
    """The sequences with their letters renamed at random, such that paths use the first letters of their alphabet."""
    ids, chain = inputs.ids, inputs.chain
    n_kept, window = task.hops[-1], task.target_window
    shape = (*inputs.hops.shape, task.alphabet)
    left, right = lefts_and_rights(ids.flatten(0, 1), task)
    left, right = left.reshape(ids.shape), right.reshape(ids.shape)
    on_path = torch.zeros(shape, dtype=torch.bool)
    for link in range(1, chain.shape[2]):
        letter = left.gather(2, chain[..., link : link + 1].clamp(min=0))
        on_path |= torch.zeros_like(on_path).scatter_(2, letter, chain[..., link : link + 1] >= 0)
    order = np.argsort(rng.random(shape) - on_path.numpy(), axis=-1)  # the path's letters first, else at random
    kept = np.broadcast_to(alphabets[:, None, :n_kept], (*shape[:2], n_kept))
    others = np.broadcast_to(alphabets[:, None, n_kept:], (*shape[:2], task.alphabet - n_kept))
    names = np.empty(shape, np.int64)
    np.put_along_axis(names, order, np.concatenate((rng.permuted(kept, axis=-1), others), -1), axis=-1)
    name = torch.from_numpy(names)
    left = name.gather(2, left)
    ids = torch.empty_like(ids)
    ids[..., :window] = 1 + task.n_digits * left[..., :window] + right[..., :window]
    rights = name.gather(2, right[..., window:])
    ids[..., window:] = first_letter_pair(task) + task.alphabet * left[..., window:] + rights
    return ids
