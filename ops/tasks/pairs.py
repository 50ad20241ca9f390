"""Pair tokens: (letter, digit) in the target window, (letter, letter) after it, each one atomic token.

Token ids, with L letters and D digits, a and b from 0, d from 1: 0 = padding, (a, d) → 1 + D a + (d - 1),
(a, b) → 1 + L D + L a + b. Source: arXiv 2605.31558 §2.1.
"""

from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from ops.tasks.chain import follow
from ops.tasks.pair_spec import PairTaskSpec
from ops.tasks.sequences import Solution, checked_ids, letter_name, refuse_rows
from ops.tasks.task import Task

PairSpec = TypeVar("PairSpec", bound=PairTaskSpec)


class PairTask(Task[PairSpec]):
    """What tasks of pairs share: all but the generator."""

    def solve(self, ids: Tensor) -> Solution:
        """From the last token on, goes to the earlier pair whose left letter is this one's right, until the target.

        `ids`: integers, (n, position). Raises ValueError naming the row for: a wrong shape or id, a pair in the other
        kind's window, a right letter of the path that no earlier pair or several have on their left, a path of more
        hops than the task has.
        """
        window = self.spec.target_window
        ids = checked_ids(ids, self.spec.sequence_length, self.vocabulary_size)
        digits = ids < self.answers.stop
        refuse_rows(~digits[:, :window], "has a letter-letter pair in the target window")
        late = digits.clone()
        late[:, :window] = False
        refuse_rows(late, "has a letter-digit pair outside the target window")
        left, right = lefts_and_rights(ids, self.spec)
        row, positions = torch.arange(len(ids)), torch.arange(self.spec.sequence_length)

        def step(position: Tensor, alive: Tensor) -> Tensor:
            match = (left == right[row, position, None]) & (positions < position[:, None])
            n_matches = match.sum(1)
            early = alive & (n_matches == 0)
            refuse_rows(early, "has a path that ends early: no earlier pair has the left letter sought")
            several = alive & (n_matches > 1)
            refuse_rows(several, "has no unique path: several earlier pairs have the left letter sought")
            return match.to(torch.uint8).argmax(1)

        return follow(ids, self.spec, step)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Readable tokens by id: "<pad>", "a1", "a2", …, "aa", "ab", …; beyond 26 letters pairs read "aa-b"."""
        letters = [letter_name(i) for i in range(self.spec.alphabet)]
        joint = "" if len(letters) <= 26 else "-"
        digits = range(1, self.spec.n_digits + 1)
        return (
            "<pad>",
            *(f"{a}{d}" for a in letters for d in digits),
            *(f"{a}{joint}{b}" for a in letters for b in letters),
        )

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, padding included."""
        return pair_vocabulary_size(self.spec)

    @property
    def answers(self) -> range:
        """The (letter, digit) pairs."""
        return range(1, first_letter_pair(self.spec))


def first_letter_pair(task: PairTaskSpec) -> int:
    """The id of the first (letter, letter) pair; (letter, digit) pairs have ids from 1 to before it."""
    return 1 + task.alphabet * task.n_digits


def pair_vocabulary_size(task: PairTaskSpec) -> int:
    """Number of token ids, padding included."""
    return first_letter_pair(task) + task.alphabet**2


def lefts_and_rights(
    ids: Int[Tensor, "n position"], task: PairTaskSpec
) -> tuple[Int[Tensor, "n position"], Int[Tensor, "n position"]]:
    """Left letters, and right letters (digits counted from 0 in the target window), from 0."""
    first_pair = first_letter_pair(task)
    target = ids < first_pair
    left = torch.where(target, (ids - 1) // task.n_digits, (ids - first_pair) // task.alphabet)
    right = torch.where(target, (ids - 1) % task.n_digits, (ids - first_pair) % task.alphabet)
    return left, right
