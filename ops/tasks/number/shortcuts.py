"""What the number task gives away."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.pointer_shortcuts import POINTER_RULES, Pointed
from ops.tasks.task import Shortcuts


class NumberShortcuts(Shortcuts[NumberTaskSpec]):
    """The rules on pointers."""

    @property
    def meanings(self) -> Mapping[str, str]:
        """What each rule does."""
        return {name: rule.meaning for name, rule in POINTER_RULES.items()}

    def guesses(self, ids: Int[Tensor, "n position"]) -> Mapping[str, Float[Tensor, "n target"]]:
        """Integers point as many positions back."""
        positions = torch.arange(self.spec.sequence_length)
        points_at = (positions - ids)[:, self.spec.target_window :, None] == positions
        view = Pointed(ids, self.spec.target_window, points_at)
        return {name: rule.guess(view) for name, rule in POINTER_RULES.items()}


SHORTCUTS = NumberShortcuts
