"""The number task: an integer i at position p points to position p - i; the target window holds letters.

Token ids: 0 = padding, integer i → i, letters follow in order. Source: arXiv 2605.31558 §2.1, App. B.
"""

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from ops.tasks.chain import follow
from ops.tasks.graph import Encoding, HopClass, balanced_answers, generate_from_graphs, pointers
from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.sequences import Seed, Sequences, Solution, checked_ids, letter_name, refuse_rows
from ops.tasks.task import Task


class NumberTask(Task[NumberTaskSpec]):
    """Integers and letters."""

    def generate(self, n: int, *, seed: Seed) -> Sequences:
        """n sequences of the number task, shuffled, balanced (±1) over hops × target position × answer letter.

        Raises ValueError if n < 1.
        """
        return generate_from_graphs(self.spec, n, seed, _encoding)

    def solve(self, ids: Tensor) -> Solution:
        """Follows the pointers from the last token to a letter. `ids`: integers, (n, position).

        Raises ValueError naming the row for: a wrong shape or id, a letter or an integer in the other's window, a
        pointer of the path to before the first position, a path of more hops than the task has.
        """
        length, window = self.spec.sequence_length, self.spec.target_window
        ids = checked_ids(ids, length, self.vocabulary_size)
        letters = ids >= length
        refuse_rows(~letters[:, :window], "has an integer in the target window")
        # pad with False so that positions in the message are positions of the sequence
        late = letters.clone()
        late[:, :window] = False
        refuse_rows(late, "has a letter outside the target window")
        row = torch.arange(len(ids))

        def step(position: Tensor, alive: Tensor) -> Tensor:
            there = position - ids[row, position]
            refuse_rows(alive & (there < 0), "has a path that leaves the sequence: it points before position 0")
            return there

        return follow(ids, self.spec, step)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Readable tokens by id: "<pad>", "1", "2", …, "a", …, "z", "aa", …"""
        integers = (str(i) for i in range(1, self.spec.sequence_length))
        return ("<pad>", *integers, *(letter_name(i) for i in range(self.spec.n_letters)))

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, padding included."""
        return self.spec.sequence_length + self.spec.n_letters

    @property
    def answers(self) -> range:
        """The letters."""
        return range(self.spec.sequence_length, self.vocabulary_size)


TASK = NumberTask


def _encoding(task: NumberTaskSpec, graph_rng: np.random.Generator, rng: np.random.Generator) -> Encoding:
    window, length = task.target_window, task.sequence_length

    def encode(hop_class: HopClass) -> Int[ndarray, "position row"]:
        n_rows = len(hop_class.rows)
        tokens = np.empty((length, n_rows), np.int16)
        tokens[:window] = rng.integers(0, task.n_letters, (window, n_rows), dtype=np.int16)
        answers = balanced_answers(task, hop_class, task.n_letters, rng)
        tokens[hop_class.chain[-1], np.arange(n_rows)] = answers
        tokens[:window] += length
        tokens[window:] = np.arange(window, length, dtype=np.int16)[:, None] - pointers(task, hop_class, graph_rng)
        return tokens

    return encode
