"""Generator, oracle and vocabulary. Token ids: 0 = padding, 1 … length - 1 the complements, then the letters."""

import numpy as np

from complement.spec import ComplementTaskSpec
from ops.tasks.chain import follow
from ops.tasks.graph import balanced_answers, generate_from_graphs
from ops.tasks.sequences import checked_ids, refuse_rows
from ops.tasks.task import Task


class ComplementTask(Task[ComplementTaskSpec]):
    """Complements and letters."""

    def generate(self, n, *, seed):
        """n sequences."""
        return generate_from_graphs(self.spec, n, seed, _encoding)

    def solve(self, ids):
        """The oracle."""
        length = self.spec.sequence_length
        ids = checked_ids(ids, length, self.vocabulary_size)
        rows = range(len(ids))

        def step(position, alive):
            there = position - (length - ids[rows, position])
            refuse_rows(alive & ((there < 0) | (there >= position)), "points out of the sequence")
            return there

        return follow(ids, self.spec, step)

    @property
    def vocabulary(self):
        """Numbers, then letters."""
        numbers = (str(i) for i in range(1, self.spec.sequence_length))
        return ("<pad>", *numbers, *"abcdefghijklmnopqrstuvwxyz"[: self.spec.n_letters])

    @property
    def answers(self):
        """The letters."""
        return range(self.spec.sequence_length, self.vocabulary_size)


TASK = ComplementTask


def _encoding(task, graph_rng, rng):
    window, length = task.target_window, task.sequence_length

    def encode(hop_class):
        n = len(hop_class.rows)
        tokens = np.empty((length, n), np.int16)
        tokens[:window] = length + rng.integers(0, task.n_letters, (window, n))
        tokens[hop_class.chain[-1], np.arange(n)] = length + balanced_answers(task, hop_class, task.n_letters, rng)
        for position in range(window, length):
            tokens[position] = length - position + graph_rng.integers(0, position, n)
        for here, there in zip(hop_class.chain[:-1], hop_class.chain[1:], strict=True):
            tokens[here, np.arange(n)] = length - here + there
        return tokens

    return encode
