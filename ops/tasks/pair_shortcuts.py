"""What tasks of pairs give away: beside the rules on pointers, those that count letters."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.tasks.pair_spec import PairTaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.pointer_shortcuts import POINTER_RULES, Pointed, Rule, share
from ops.tasks.task import Shortcuts


@dataclass(frozen=True)
class PointedPairs(Pointed):
    """With the letters: which positions have equal lefts, and whether a source's right is a position's left."""

    same_left: Bool[Tensor, "n position position"]
    held_right: Bool[Tensor, "n source position"]


def _counts(view: PointedPairs) -> tuple[Int[Tensor, "n position"], Int[Tensor, "n position"]]:
    """How many lefts, and how many rights of sources, are each position's left letter."""
    return view.same_left.sum(2), view.held_right.sum(1)


def _rarest_letter(view: PointedPairs) -> Tensor:
    lefts, rights = _counts(view)
    occurrences = (lefts + rights)[:, : view.target_window]
    return share(occurrences == occurrences.amin(1, keepdim=True))


def _lone_letter(view: PointedPairs) -> Tensor:
    lefts, rights = _counts(view)
    return share(((lefts == 1) & (rights == 1))[:, : view.target_window])


def _lone_letter_twice(view: PointedPairs) -> Tensor:
    lefts, rights = _counts(view)
    lone = (lefts == 1) & (rights == 1)
    holder = lone[:, view.target_window :].clone()
    holder[:, -1] = True
    held = (view.held_right & holder[..., None]).any(1)
    return share((lone & held)[:, : view.target_window], _lone_letter(view))


PAIR_RULES: dict[str, Rule] = {
    "rarest_letter": Rule(_rarest_letter, "the target pair whose left letter occurs least as a letter"),
    "lone_letter": Rule(
        _lone_letter,
        "the target pair whose left letter occurs once among all lefts and once among pre-target and query rights",
    ),
    "lone_letter_twice": Rule(
        _lone_letter_twice,
        "as lone_letter, and the pair with that right is the query or has a lone left letter too",
    ),
}


class PairShortcuts(Shortcuts[PairTaskSpec]):
    """The rules on pointers, and those on letters."""

    RULES = POINTER_RULES | PAIR_RULES

    @property
    def meanings(self) -> Mapping[str, str]:
        """What each rule does."""
        return {name: rule.meaning for name, rule in self.RULES.items()}

    def guesses(self, ids: Int[Tensor, "n position"]) -> Mapping[str, Float[Tensor, "n target"]]:
        """A pair points to every earlier pair whose left letter is its right."""
        window, positions = self.spec.target_window, torch.arange(self.spec.sequence_length)
        left, right = lefts_and_rights(ids, self.spec)
        held_right = right[:, window:, None] == left[:, None, :]
        points_at = held_right & (positions < positions[window:, None])
        view = PointedPairs(ids, window, points_at, left[:, :, None] == left[:, None, :], held_right)
        return {name: rule.guess(view) for name, rule in self.RULES.items()}
