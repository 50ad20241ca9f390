"""What the task gives away."""

import torch

from complement.spec import ComplementTaskSpec
from ops.tasks.pointer_shortcuts import POINTER_RULES, Pointed
from ops.tasks.task import Shortcuts


class ComplementShortcuts(Shortcuts[ComplementTaskSpec]):
    """The rules on pointers."""

    @property
    def meanings(self):
        """What each does."""
        return {name: rule.meaning for name, rule in POINTER_RULES.items()}

    def guesses(self, ids):
        """Tokens point as far back as their complement says."""
        positions, window = torch.arange(self.spec.sequence_length), self.spec.target_window
        there = (positions - self.spec.sequence_length + ids)[:, window:, None]
        view = Pointed(ids, window, there == positions)
        return {name: rule.guess(view) for name, rule in POINTER_RULES.items()}


SHORTCUTS = ComplementShortcuts
