"""Pair tokens: (letter, digit) in the target window, (letter, letter) after it, each one atomic token.

Token ids, with L letters and D digits, a and b from 0, d from 1: 0 = padding, (a, d) → 1 + D a + (d - 1),
(a, b) → 1 + L D + L a + b. Source: arXiv 2605.31558 §2.1.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import LetterMatchedTaskSpec, LetterTaskSpec
from ops.tasks.chain import follow
from ops.tasks.sequences import Solution, checked_ids, letter_name, refuse_rows

PairTaskSpec = LetterTaskSpec | LetterMatchedTaskSpec


def pair_vocabulary_size(task: PairTaskSpec) -> int:
    """Number of token ids, padding included."""
    return 1 + task.n_letters * (task.n_digits + task.n_letters)


def pair_vocabulary(task: PairTaskSpec) -> list[str]:
    """Readable tokens by id: "<pad>", "a1", "a2", …, "aa", "ab", …; beyond 26 letters pairs read "aa-b"."""
    letters = [letter_name(i) for i in range(task.n_letters)]
    joint = "" if task.n_letters <= 26 else "-"
    digits = range(1, task.n_digits + 1)
    return [
        "<pad>",
        *(f"{a}{d}" for a in letters for d in digits),
        *(f"{a}{joint}{b}" for a in letters for b in letters),
    ]


def lefts_and_rights(
    ids: Int[Tensor, "n position"], task: PairTaskSpec
) -> tuple[Int[Tensor, "n position"], Int[Tensor, "n position"]]:
    """Left letters, and right letters (digits counted from 0 in the target window), from 0."""
    first_pair = 1 + task.n_letters * task.n_digits
    target = ids < first_pair
    left = torch.where(target, (ids - 1) // task.n_digits, (ids - first_pair) // task.n_letters)
    right = torch.where(target, (ids - 1) % task.n_digits, (ids - first_pair) % task.n_letters)
    return left, right


def solve_pairs(ids: Tensor, task: PairTaskSpec) -> Solution:
    """From the last token on, goes to the earlier pair whose left letter is this one's right, until the target window.

    `ids`: integers, (n, position). Raises ValueError naming the row for: a wrong shape or id, a pair in the other
    kind's window, a right letter of the path that no earlier pair or several have on their left, a path of more hops
    than the task has.
    """
    ids = checked_ids(ids, task.sequence_length, pair_vocabulary_size(task))
    digits = ids <= task.n_letters * task.n_digits
    refuse_rows(~digits[:, : task.target_window], "has a letter-letter pair in the target window")
    late = digits.clone()
    late[:, : task.target_window] = False
    refuse_rows(late, "has a letter-digit pair outside the target window")
    left, right = lefts_and_rights(ids, task)
    row, positions = torch.arange(len(ids)), torch.arange(task.sequence_length)

    def step(position: Tensor, alive: Tensor) -> Tensor:
        match = (left == right[row, position, None]) & (positions < position[:, None])
        n_matches = match.sum(1)
        refuse_rows(alive & (n_matches == 0), "has a path that ends early: no earlier pair has the left letter sought")
        refuse_rows(alive & (n_matches > 1), "has no unique path: several earlier pairs have the left letter sought")
        return match.to(torch.uint8).argmax(1)

    return follow(ids, task, step)
