"""Task generators, vocabularies, oracle solvers and shortcut baselines."""

from ops.tasks import dataset, letter, letter_matched, number, registry, shortcuts

__all__ = ["dataset", "letter", "letter_matched", "number", "registry", "shortcuts"]
