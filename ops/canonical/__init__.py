"""Canonical tasks (arXiv 2511.11579 §5): generators, oracle solvers, one attention head, its training and scores."""
