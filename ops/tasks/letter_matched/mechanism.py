"""Retrieval, as in all tasks of pairs."""

from ops.tasks.pair_mechanism import RetrievalMechanism

MECHANISM = RetrievalMechanism
