"""The letter task: a pair (x, y) points to the earlier pair whose left letter is y.

Letters of the chain are on no other left, which is what makes the path unique. As published they are on no other right
either, which is what gives the answer away (ops/tasks/pair_shortcuts.py). Source: arXiv 2605.31558 §2.1, App. B.
"""

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from ops.tasks.graph import (
    Encoding,
    HopClass,
    among_others,
    balanced_answers,
    distinct,
    generate_from_graphs,
    sorted_rows,
)
from ops.tasks.letter.spec import LetterTaskSpec
from ops.tasks.pairs import PairTask
from ops.tasks.sequences import Seed, Sequences


class LetterTask(PairTask[LetterTaskSpec]):
    """Pairs with a graph of their own."""

    def generate(self, n: int, *, seed: Seed) -> Sequences:
        """n sequences, shuffled, balanced (±1) over hops × target position × answer letter × digit.

        Raises ValueError if n < 1.
        """
        return generate_from_graphs(self.spec, n, seed, _encoding)


TASK = LetterTask


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
        off_chain = () if task.may_point_onto_chain else taken
        for position in range(window, length):
            right[position] = among_others(rng, n_letters, n_rows, off_chain)
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
