"""Index, Retrieval, Partial induction (arXiv 2511.11579 §5): generators, vocabularies and oracle solvers.

A sequence is `length` tokens and a query token at position `length`. Token ids count from 0, without padding:

    index               symbols 0 … S-1, then the integers 0 … length-1 as S …          answer: a symbol
    retrieval,          pair (e, a) is e · A + a, then the entities alone as E · A + e  answer: an attribute
    partial induction
"""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.canonical import CanonicalTaskSpec, IndexTaskSpec, PartialInductionTaskSpec, RetrievalTaskSpec


class Questions(NamedTuple):
    """Sequences of a canonical task, all int64. `positions`: where the answer stands."""

    ids: Int[Tensor, "n position"]
    answers: Int[Tensor, "n"]
    positions: Int[Tensor, "n"]


Spec = TypeVar("Spec", IndexTaskSpec, RetrievalTaskSpec, PartialInductionTaskSpec)
BoundSpec = TypeVar("BoundSpec", RetrievalTaskSpec, PartialInductionTaskSpec)


class CanonicalTask(ABC, Generic[Spec]):
    """One canonical task, bound to its spec. Query tokens have the ids from `len(key_items)` on."""

    asks_for_position = False  # or for an item that stands somewhere

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    @abstractmethod
    def n_answers(self) -> int:
        """Number of possible answers, each equally likely before the sequence is read."""

    @property
    @abstractmethod
    def key_items(self) -> list[int | None]:
        """The item (entity) of each token that is a key, by token id; None if it has none."""

    @property
    @abstractmethod
    def vocabulary(self) -> list[str]:
        """Readable tokens by id."""

    @abstractmethod
    def draw(
        self, positions: Int[np.ndarray, "n"], rng: np.random.Generator
    ) -> tuple[Int[np.ndarray, "n position"], Int[np.ndarray, "n"]]:
        """Sequences whose answers stand at `positions`, and the answers."""

    @abstractmethod
    def answer(self, row: int, context: list[int], asked: int) -> tuple[int, int]:
        """Answer and its position, of a query with the id `asked` above the first query's. Raises ValueError."""


class Index(CanonicalTask[IndexTaskSpec]):
    """Symbols, then an integer."""

    asks_for_position = True

    @property
    def n_answers(self) -> int:
        """The symbols."""
        return self.spec.n_symbols

    @property
    def key_items(self) -> list[int | None]:
        """Symbols have no item."""
        return [None] * self.spec.n_symbols

    @property
    def vocabulary(self) -> list[str]:
        """Symbols s0 …, integers 0 …"""
        return [f"s{i}" for i in range(self.spec.n_symbols)] + [str(i) for i in range(self.spec.length)]

    def draw(
        self, positions: Int[np.ndarray, "n"], rng: np.random.Generator
    ) -> tuple[Int[np.ndarray, "n position"], Int[np.ndarray, "n"]]:
        """Uniform symbols."""
        n = len(positions)
        symbols = rng.integers(self.spec.n_symbols, size=(n, self.spec.length))
        ids = np.concatenate([symbols, self.spec.n_symbols + positions[:, None]], 1)
        return ids, symbols[np.arange(n), positions]

    def answer(self, row: int, context: list[int], asked: int) -> tuple[int, int]:
        """The symbol at the position asked for."""
        return context[asked], asked


class _Bound(CanonicalTask[BoundSpec]):
    """(Entity, attribute) tokens, then an entity."""

    @property
    def n_answers(self) -> int:
        """The attributes."""
        return self.spec.n_attributes

    @property
    def key_items(self) -> list[int | None]:
        """Entities."""
        return [entity for entity in range(self.spec.n_entities) for _ in range(self.spec.n_attributes)]

    @property
    def vocabulary(self) -> list[str]:
        """Pairs e0:a0 …, entities e0? …"""
        entities = range(self.spec.n_entities)
        return [f"e{e}:a{a}" for e in entities for a in range(self.spec.n_attributes)] + [f"e{e}?" for e in entities]

    @abstractmethod
    def entities(self, positions: Int[np.ndarray, "n"], rng: np.random.Generator) -> Int[np.ndarray, "n position"]:
        """The entities of sequences whose answers stand at `positions`."""

    def draw(
        self, positions: Int[np.ndarray, "n"], rng: np.random.Generator
    ) -> tuple[Int[np.ndarray, "n position"], Int[np.ndarray, "n"]]:
        """Uniform attributes."""
        row, spec = np.arange(len(positions)), self.spec
        entities = self.entities(positions, rng)
        attributes = rng.integers(spec.n_attributes, size=(len(row), spec.length))
        queries = spec.n_entities * spec.n_attributes + entities[row, positions]
        ids = np.concatenate([entities * spec.n_attributes + attributes, queries[:, None]], 1)
        return ids, attributes[row, positions]

    def answer(self, row: int, context: list[int], asked: int) -> tuple[int, int]:
        """The last attribute bound to the entity."""
        bound = [p for p, token in enumerate(context) if token // self.spec.n_attributes == asked]
        if not bound:
            raise ValueError(f"row {row} asks for an entity that is not bound")
        return context[bound[-1]] % self.spec.n_attributes, bound[-1]


class Retrieval(_Bound[RetrievalTaskSpec]):
    """Every entity at most once."""

    def entities(self, positions: Int[np.ndarray, "n"], rng: np.random.Generator) -> Int[np.ndarray, "n position"]:
        """Distinct ones."""
        return rng.random((len(positions), self.spec.n_entities)).argsort(1)[:, : self.spec.length]

    def answer(self, row: int, context: list[int], asked: int) -> tuple[int, int]:
        """The attribute bound to the entity; no entity may be bound twice."""
        found = super().answer(row, context, asked)
        if len({token // self.spec.n_attributes for token in context}) < len(context):
            raise ValueError(f"row {row} binds an entity twice")
        return found


class PartialInduction(_Bound[PartialInductionTaskSpec]):
    """Entities repeat."""

    def entities(self, positions: Int[np.ndarray, "n"], rng: np.random.Generator) -> Int[np.ndarray, "n position"]:
        """The entity asked for stands at the answer position and nowhere later; before it anything goes."""
        entities = rng.integers(self.spec.n_entities, size=(len(positions), self.spec.length))
        asked = entities[np.arange(len(positions)), positions][:, None]
        others = rng.integers(self.spec.n_entities - 1, size=entities.shape)
        later = np.arange(self.spec.length) > positions[:, None]
        return np.where(later, others + (others >= asked), entities)


TASKS = {IndexTaskSpec: Index, RetrievalTaskSpec: Retrieval, PartialInductionTaskSpec: PartialInduction}


def bound(task: CanonicalTaskSpec) -> CanonicalTask:
    """The task that a spec declares."""
    return TASKS[type(task)](task)


def vocabulary_size(task: CanonicalTaskSpec) -> int:
    """Number of token ids."""
    return len(vocabulary(task))


def n_answers(task: CanonicalTaskSpec) -> int:
    """Number of possible answers, each equally likely before the sequence is read."""
    return bound(task).n_answers


def vocabulary(task: CanonicalTaskSpec) -> list[str]:
    """Readable tokens by id: symbols s0 …, integers 0 …; pairs e0:a0 …, entities e0? …"""
    return bound(task).vocabulary


def generate(task: CanonicalTaskSpec, n: int, seed: int | np.random.SeedSequence) -> Questions:
    """n questions, answer positions balanced to ±1 and shuffled; all else is uniform given the task's rule.

    Raises ValueError if n < 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}; ask for at least 1 question")
    rng = np.random.default_rng(seed)
    positions = rng.permutation(np.arange(n) % task.length)
    ids, answers = bound(task).draw(positions, rng)
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
    own = bound(task)
    first_query, size = len(own.key_items), len(own.vocabulary)
    found = []
    for row, (*context, query) in enumerate(ids.tolist()):
        if not all(0 <= token < first_query for token in context) or not first_query <= query < size:
            raise ValueError(f"row {row} has a token out of place")
        found.append(own.answer(row, context, query - first_query))
    answers, positions = zip(*found, strict=True) if found else ((), ())
    return Questions(ids, torch.tensor(answers, dtype=torch.int64), torch.tensor(positions, dtype=torch.int64))
