"""The protocol that each task fulfils, and the way from a spec to its task.

A task is a folder with `spec.py` (one class on top of `ops.spec.task.TaskSpec`, no torch) and these modules, each with
one class on top of the one named here:

    task.py          TASK = …          Task          sequences, oracle, vocabulary, answers
    mechanism.py     MECHANISM = …     Mechanism     ideal hop, donors for patching, kinds of tokens
    lengthening.py   LENGTHENING = …   Lengthening   longer inputs
    shortcuts.py     SHORTCUTS = …     Shortcuts     rules that follow no path
    construction.py  CONSTRUCTION = …  Construction  the ideal hop as one attention head

Only the first is needed: without another, the stages that need it leave the task out. Modules are found by name, so a
stage's key covers those modules of its own task that it uses, and no other task's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.sequences import Seed, Sequences, Solution

Spec = TypeVar("Spec", bound=TaskSpec)


class _Part(Generic[Spec]):
    """Something that is bound to a spec."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec


class Task(_Part[Spec], ABC):
    """One task, bound to its spec."""

    @abstractmethod
    def generate(self, n: int, *, seed: Seed) -> Sequences:
        """n sequences, shuffled; hop classes, targets and answers balanced (±1). Raises ValueError if n < 1."""

    @abstractmethod
    def solve(self, ids: Tensor) -> Solution:
        """The oracle's answers and chains of `ids`, integers (n, position).

        Raises ValueError naming a row that is no sequence of the task, or has no unique path.
        """

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """Readable tokens by id, "<pad>" first."""

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, padding included."""
        return len(self.vocabulary)

    @property
    @abstractmethod
    def answers(self) -> range:
        """The token ids that labels can be. Hop class × target position × answer are the cells that are balanced."""

    @property
    def mechanism(self) -> "Mechanism":
        """Raises ValueError if the task has none, as the following do."""
        return self._part("mechanism")

    @property
    def lengthening(self) -> "Lengthening":
        """How its inputs are made longer."""
        return self._part("lengthening")

    @property
    def shortcuts(self) -> "Shortcuts":
        """Its shortcuts."""
        return self._part("shortcuts")

    @property
    def construction(self) -> "Construction":
        """Its ideal hop as one head."""
        return self._part("construction")

    def _part(self, name: str) -> Any:
        return _found(self.spec, name)(self.spec)


class Applied(NamedTuple):
    """What every position holds after one application, and the position that it looked at (itself = it kept)."""

    ids: Int[Tensor, "n position"]
    attends_to: Int[Tensor, "n position"]


class Mechanism(_Part[Spec], ABC):
    """What an ideal model does with the task's tokens, and how a trained one is tested for it."""

    @abstractmethod
    def ideal_hop(self, ids: Int[Tensor, "n position"]) -> Applied:
        """One application of the ideal function (Index, Retrieval; arXiv 2605.31558 §3.2). Any length."""

    def taken(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """Which tokens a position takes over from another one; not told otherwise, all."""
        return torch.ones_like(ids, dtype=torch.bool)

    @abstractmethod
    def other_answers(self, labels: Int[Tensor, "n"], generator: torch.Generator) -> Int[Tensor, "n"]:
        """For each label another one that may stand in its place with the path as it is, uniformly.

        Raises ValueError if the task has no other.
        """

    @property
    @abstractmethod
    def token_kinds(self) -> tuple[str, ...]:
        """The kind of each token id, by which figures group tokens: "padding", "integer", …"""


class Lengthened(NamedTuple):
    """Prefixes, and for each its own sequences of the trained length; all int64.

    `chain` holds positions as if the sequence stood alone: add the prefix's length.
    """

    prefixes: Int[Tensor, "prefix token"]
    ids: Int[Tensor, "prefix sequence position"]
    labels: Int[Tensor, "prefix sequence"]
    hops: Int[Tensor, "prefix sequence"]
    chain: Int[Tensor, "prefix sequence link"]

    def first(self, n: int) -> "Lengthened":
        """With the first n sequences of every prefix."""
        return Lengthened(self.prefixes, *(column[:, :n] for column in self[1:]))


class Lengthening(_Part[Spec], ABC):
    """Valid inputs longer than the task's sequences: the target window grows in front, in the trained vocabulary."""

    def __init__(self, spec: Spec) -> None:
        """Raises ValueError if the spec's sizes allow no longer inputs."""
        super().__init__(spec)
        if why := spec.not_lengthened:
            raise ValueError(f"lengthening {why}")

    @abstractmethod
    def behind_prefixes(
        self, inputs: Lengthened, n_tokens: int, rng: np.random.Generator, changes: np.random.Generator
    ) -> Lengthened:
        """Inert: prefixes of `n_tokens` target-window tokens that leave the paths of their own sequences as they are.

        `inputs` have prefixes of no tokens. Prefixes are drawn from `rng`; what must change in the sequences behind
        them, if anything, from `changes`.
        """

    def reach(self, length: int) -> int:
        """Active: how far back from the chain's last but one position the answer may lie in inputs of `length`."""
        return length

    def point(
        self, ids: Int[Tensor, "*rows position"], here: Int[Tensor, "*rows 1"], there: Int[Tensor, "*rows 1"]
    ) -> Int[Tensor, "*rows position"]:
        """Active: `ids` after the answer's token came to stand at `there`, with the token `here` pointing to it."""
        return ids

    @abstractmethod
    def solve(self, ids: Int[Tensor, "n position"]) -> Solution:
        """The oracle on inputs whose target window is longer. Raises ValueError as `Task.solve` does."""

    @abstractmethod
    def before_rows(self, rows: Sequences, n_tokens: int, rng: np.random.Generator) -> Int[Tensor, "n token"]:
        """Target-window tokens in front of each of `rows`, each row's own, which leave its path as it is."""


class Shortcuts(_Part[Spec], ABC):
    """Rules that answer without following the path from the query to its end."""

    @property
    @abstractmethod
    def meanings(self) -> Mapping[str, str]:
        """What each rule does, by its name."""

    @abstractmethod
    def guesses(self, ids: Int[Tensor, "n position"]) -> Mapping[str, Float[Tensor, "n target"]]:
        """How each rule spreads one guess over the target window: weights that sum to 1."""


class Head(NamedTuple):
    """One attention head with one RoPE plane on one-hot tokens: linear maps from token coordinates, at sharpness 1."""

    query: Float[Tensor, "vocabulary 2"]
    key: Float[Tensor, "vocabulary 2"]
    key_bias: Float[Tensor, "2"]
    value: Float[Tensor, "vocabulary"]
    residual: bool


class Construction(_Part[Spec], ABC):
    """The ideal hop as one head (arXiv 2605.31558 Thm 3.1, App. F)."""

    @abstractmethod
    def head(self, theta: float) -> Head:
        """The head whose plane turns by `theta` radians a position."""

    @abstractmethod
    def defined(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """Where the ideal hop names one position to look at."""

    @abstractmethod
    def tokens_at(self, position: int) -> list[int]:
        """Every token that can stand at a position of an input."""


def task_of(spec: TaskSpec) -> Task:
    """The task that a spec declares, bound to it."""
    return _found(spec, "task")(spec)


def _found(spec: TaskSpec, part: str) -> Any:
    name = spec.module(part)
    if name is None:
        raise ValueError(f"the {spec.name} task has no {part}.py in its folder; leave out what needs it, or write it")
    return getattr(import_module(name), part.upper())
