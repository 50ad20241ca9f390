"""The letter-matched task: the number task's pointer graphs written in letters: encoding and alphabet differ.

The non-query positions carry distinct left letters; each right letter is the left letter of the pair pointed to.
Ours; the published letter task (ops/tasks/letter) has other graphs.
"""

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from ops.tasks.graph import Encoding, HopClass, balanced_answers, generate_from_graphs, pointers
from ops.tasks.letter_matched.spec import LetterMatchedTaskSpec
from ops.tasks.pairs import PairTask
from ops.tasks.sequences import Seed, Sequences


class LetterMatchedTask(PairTask[LetterMatchedTaskSpec]):
    """Pairs on the number task's graphs."""

    def generate(self, n: int, *, seed: Seed) -> Sequences:
        """n sequences, shuffled, balanced (±1) over hops × target position × answer letter × digit.

        Equal windows, hops, `off_chain`, n and seed give the number task the same pointer graphs, whatever the
        alphabet. Raises ValueError if n < 1.
        """
        return generate_from_graphs(self.spec, n, seed, _encoding)


TASK = LetterMatchedTask


def _encoding(task: LetterMatchedTaskSpec, graph_rng: np.random.Generator, rng: np.random.Generator) -> Encoding:
    window, length, n_letters, n_digits = task.target_window, task.sequence_length, task.alphabet, task.n_digits

    def encode(hop_class: HopClass) -> Int[ndarray, "position row"]:
        n_rows, target = len(hop_class.rows), hop_class.chain[-1]
        row = np.arange(n_rows)
        to = pointers(task, hop_class, graph_rng)
        answers = balanced_answers(task, hop_class, n_letters * n_digits, rng)
        left = np.empty((length, n_rows), np.int16)
        left[:-1] = _permutations(rng, n_letters, n_rows)[: length - 1]
        # rotating the alphabet gives the target its balanced letter and keeps the letters uniform and distinct
        left[:-1] += ((answers // n_digits - left[target, row]) % n_letters).astype(np.int16)
        left[:-1] -= n_letters * (left[:-1] >= n_letters)
        left[-1] = rng.integers(0, n_letters, n_rows, dtype=np.int16)
        tokens = left.astype(np.int32)
        tokens[:window] *= n_digits
        tokens[:window] += rng.integers(1, n_digits + 1, (window, n_rows), dtype=np.int16)
        tokens[target, row] = 1 + answers
        tokens[window:] *= n_letters
        tokens[window:] += 1 + n_letters * n_digits
        tokens[window:] += left[to, row]
        return tokens

    return encode


def _permutations(rng: np.random.Generator, n_letters: int, n_rows: int) -> Int[ndarray, "letter row"]:
    """One uniform permutation of 0 … n_letters - 1 a row."""
    alphabet = np.broadcast_to(np.arange(n_letters, dtype=np.int16), (n_rows, n_letters))
    return rng.permuted(alphabet, axis=1).T
