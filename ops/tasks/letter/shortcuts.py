"""What it gives away, as in all tasks of pairs."""

from ops.tasks.pair_shortcuts import PairShortcuts

SHORTCUTS = PairShortcuts
