"""Index, Retrieval, Partial induction (arXiv 2511.11579 §5): generators, vocabularies and oracle solvers.

A sequence is `length` tokens and a query token at position `length`. Token ids count from 0, without padding:

    index               symbols 0 … S-1, then the integers 0 … length-1 as S …          answer: a symbol
    retrieval,          pair (e, a) is e · A + a, then the entities alone as E · A + e  answer: an attribute
    partial induction
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.canonical import CanonicalTaskSpec, IndexTaskSpec


class Questions(NamedTuple):
    """Sequences of a canonical task, all int64. `positions`: where the answer stands."""

    ids: Int[Tensor, "n position"]
    answers: Int[Tensor, "n"]
    positions: Int[Tensor, "n"]


def vocabulary_size(task: CanonicalTaskSpec) -> int:
    """Number of token ids."""
    if isinstance(task, IndexTaskSpec):
        return task.n_symbols + task.length
    return task.n_entities * (task.n_attributes + 1)


def n_answers(task: CanonicalTaskSpec) -> int:
    """Number of possible answers, each equally likely before the sequence is read."""
    return task.n_symbols if isinstance(task, IndexTaskSpec) else task.n_attributes


def vocabulary(task: CanonicalTaskSpec) -> list[str]:
    """Readable tokens by id: symbols s0 …, integers 0 …; pairs e0:a0 …, entities e0? …"""
    if isinstance(task, IndexTaskSpec):
        return [f"s{i}" for i in range(task.n_symbols)] + [str(i) for i in range(task.length)]
    entities = range(task.n_entities)
    return [f"e{e}:a{a}" for e in entities for a in range(task.n_attributes)] + [f"e{e}?" for e in entities]


def generate(task: CanonicalTaskSpec, n: int, seed: int | np.random.SeedSequence) -> Questions:
    """n questions, answer positions balanced to ±1 and shuffled; all else is uniform given the task's rule.

    Partial induction: the entity asked for stands at the answer position and nowhere later; before it anything goes.
    Raises ValueError if n < 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}; ask for at least 1 question")
    rng = np.random.default_rng(seed)
    positions = rng.permutation(np.arange(n) % task.length)
    if isinstance(task, IndexTaskSpec):
        symbols = rng.integers(task.n_symbols, size=(n, task.length))
        ids = np.concatenate([symbols, task.n_symbols + positions[:, None]], 1)
        answers = symbols[np.arange(n), positions]
        return _questions(ids, answers, positions)
    if task.name == "retrieval":
        entities = rng.random((n, task.n_entities)).argsort(1)[:, : task.length]
    else:
        entities = rng.integers(task.n_entities, size=(n, task.length))
        asked = entities[np.arange(n), positions][:, None]
        others = rng.integers(task.n_entities - 1, size=entities.shape)
        later = np.arange(task.length) > positions[:, None]
        entities = np.where(later, others + (others >= asked), entities)
    attributes = rng.integers(task.n_attributes, size=(n, task.length))
    asked = entities[np.arange(n), positions]
    queries = task.n_entities * task.n_attributes + asked
    ids = np.concatenate([entities * task.n_attributes + attributes, queries[:, None]], 1)
    return _questions(ids, attributes[np.arange(n), positions], positions)


def _questions(ids: np.ndarray, answers: np.ndarray, positions: np.ndarray) -> Questions:
    return Questions(
        *(torch.from_numpy(np.ascontiguousarray(part, dtype=np.int64)) for part in (ids, answers, positions))
    )


def solve(task: CanonicalTaskSpec, ids: Int[Tensor, "n position"]) -> Questions:
    """The oracle: reads each sequence token by token and gives answer and answer position.

    Raises ValueError naming the first row that is not a question of the task: wrong length, a token out of place, an
    entity that is not bound, or (Retrieval) bound twice.
    """
    if ids.ndim != 2 or ids.shape[1] != task.length + 1:
        raise ValueError(f"ids have shape {tuple(ids.shape)}; the task needs (n, {task.length + 1})")
    found = [_solve_row(task, row, tokens) for row, tokens in enumerate(ids.tolist())]
    answers, positions = zip(*found, strict=True) if found else ((), ())
    return Questions(ids, torch.tensor(answers, dtype=torch.int64), torch.tensor(positions, dtype=torch.int64))


def _solve_row(task: CanonicalTaskSpec, row: int, tokens: list[int]) -> tuple[int, int]:
    *context, query = tokens
    first_query = task.n_symbols if isinstance(task, IndexTaskSpec) else task.n_entities * task.n_attributes
    if not all(0 <= token < first_query for token in context) or not first_query <= query < vocabulary_size(task):
        raise ValueError(f"row {row} has a token out of place")
    if isinstance(task, IndexTaskSpec):
        position = query - first_query
        return context[position], position
    bound = [p for p, token in enumerate(context) if token // task.n_attributes == query - first_query]
    if not bound:
        raise ValueError(f"row {row} asks for an entity that is not bound")
    if task.name == "retrieval" and len({token // task.n_attributes for token in context}) < len(context):
        raise ValueError(f"row {row} binds an entity twice")
    return context[bound[-1]] % task.n_attributes, bound[-1]
