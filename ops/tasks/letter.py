"""The letter task: a pair (x, y) points to the earlier pair whose left letter is y.

Letters of the chain occur nowhere else, which is what makes the path unique, and what gives the answer away
(ops/tasks/shortcuts.py). Source: arXiv 2605.31558 §2.1, App. B.
"""

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from ops.spec.task import LetterTaskSpec
from ops.tasks.graph import (
    Encoding,
    HopClass,
    among_others,
    balanced_answers,
    distinct,
    generate_from_graphs,
    sorted_rows,
)
from ops.tasks.pairs import pair_vocabulary, pair_vocabulary_size, solve_pairs
from ops.tasks.sequences import Seed, Sequences, Solution

PAPER_SIZE = LetterTaskSpec()


def generate(n: int, *, seed: Seed, task: LetterTaskSpec = PAPER_SIZE) -> Sequences:
    """n sequences of the letter task, shuffled, balanced (±1) over hops × target position × answer letter × digit.

    Raises ValueError if n < 1.
    """
    return generate_from_graphs(task, n, seed, _encoding)


def _encoding(task: LetterTaskSpec, graph_rng: np.random.Generator, rng: np.random.Generator) -> Encoding:
    window, length, n_letters, n_digits = task.target_window, task.sequence_length, task.n_letters, task.n_digits

    def encode(hop_class: HopClass) -> Int[ndarray, "position row"]:
        n_rows, chain = len(hop_class.rows), hop_class.chain
        row = np.arange(n_rows)
        answers = balanced_answers(task, hop_class, n_letters * n_digits, rng)
        answer_letter = (answers // n_digits).astype(np.int16)
        # chain_letters[i]: the left letter of chain link i + 1, and so the right letter of link i
        others = distinct(rng, hop_class.hops - 1, n_letters, n_rows, [answer_letter])
        chain_letters = [*others, answer_letter]
        taken = sorted_rows(chain_letters)
        left = np.stack([among_others(rng, n_letters, n_rows, taken) for _ in range(length)])
        right = np.empty_like(left)
        right[:window] = rng.integers(0, n_digits, (window, n_rows), dtype=np.int16)
        for position in range(window, length):
            right[position] = among_others(rng, n_letters, n_rows, taken)
        for link, letter in enumerate(chain_letters):
            right[chain[link], row] = letter
            left[chain[link + 1], row] = letter
        right[chain[-1], row] = answers % n_digits
        tokens = left.astype(np.int32)
        tokens[:window] *= n_digits
        tokens[window:] *= n_letters
        tokens[window:] += n_letters * n_digits
        tokens += right
        tokens += 1
        return tokens

    return encode


def solve(ids: Tensor, task: LetterTaskSpec = PAPER_SIZE) -> Solution:
    """Follows the letters of `ids` (integers, (n, position)) from the last token to a target pair.

    Raises ValueError as `pairs.solve_pairs` does.
    """
    return solve_pairs(ids, task)


def vocabulary_size(task: LetterTaskSpec = PAPER_SIZE) -> int:
    """Number of token ids, padding included."""
    return pair_vocabulary_size(task)


def vocabulary(task: LetterTaskSpec = PAPER_SIZE) -> list[str]:
    """Readable tokens by id: "<pad>", "a1", "a2", …, "aa", "ab", …"""
    return pair_vocabulary(task)
