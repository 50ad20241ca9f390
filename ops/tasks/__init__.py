"""Task generators, vocabularies, oracle solvers and shortcut baselines."""
