"""Longer inputs, as in all tasks of pairs."""

from ops.tasks.pair_lengthening import PairsInFront

LENGTHENING = PairsInFront
