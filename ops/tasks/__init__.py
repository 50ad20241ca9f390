"""Task generators, vocabularies, oracle solvers and shortcut baselines."""

from ops.tasks import dataset, letter, letter_matched, number, registry

__all__ = ["dataset", "letter", "letter_matched", "number", "registry"]
