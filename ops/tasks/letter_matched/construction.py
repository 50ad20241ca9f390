"""Retrieval as one head, as in all tasks of pairs."""

from ops.tasks.pair_construction import RetrievalConstruction

CONSTRUCTION = RetrievalConstruction
