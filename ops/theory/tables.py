"""The theory's tables: constructions run on inputs, discrepancies beside their bounds."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import polars as pl
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.spec.theory import TheorySpec
from ops.tasks.letter.spec import LetterTaskSpec
from ops.tasks.number.spec import NumberTaskSpec
from ops.tasks.task import task_of
from ops.theory import constructions as build
from ops.theory.constructions import Construction
from ops.theory.discrepancy import (
    in_range,
    index_corrected_bound,
    index_discrepancy,
    index_printed_bound,
    index_sharp_bound,
    retrieval_discrepancy,
    retrieval_printed_bound,
)

_SCORED = 200  # inputs whose scores are averaged
_CHAINED = (1, 2, 3, 4)


class Theorem(ABC):
    """One half of Thm 3.1: its task in the sizes that are computed, its head's least discrepancy and worst inputs."""

    exhausted: range  # n whose every input is run: 5,040, resp. 20,736 … 248,832 inputs of n + 1 tokens at most

    @abstractmethod
    def small(self, n: int) -> TaskSpec:
        """A task of n keys before the query with an alphabet small enough to enumerate."""

    @abstractmethod
    def sized(self, spec: TheorySpec, target_window: int, pre_target_window: int) -> TaskSpec:
        """A one-hop task with these windows."""

    @abstractmethod
    def papers(self, spec: TheorySpec) -> TaskSpec:
        """The task as published, apart from the theory's alphabet."""

    @abstractmethod
    def theta(self, spec: TheorySpec) -> float:
        """The angle at which the head runs."""

    @abstractmethod
    def least(self, task: TaskSpec, theta: float) -> float:
        """The least discrepancy of the task's inputs at β = 1."""

    @abstractmethod
    def worst(self, task: TaskSpec, theta: float) -> tuple[float | None, Tensor]:
        """ω, if letters have an angle, and the worst inputs' gaps (`ops.theory.constructions.smallest_beta`)."""


class IndexTheorem(Theorem):
    """The number task; 2 letters where every input is run."""

    exhausted = range(2, 6)

    def small(self, n: int) -> TaskSpec:
        return NumberTaskSpec(target_window=1, pre_target_window=n - 1, hops=(1,), n_letters=2)

    def sized(self, spec: TheorySpec, target_window: int, pre_target_window: int) -> TaskSpec:
        return NumberTaskSpec(target_window=target_window, pre_target_window=pre_target_window, hops=(1,), n_letters=26)

    def papers(self, spec: TheorySpec) -> TaskSpec:
        return NumberTaskSpec()

    def theta(self, spec: TheorySpec) -> float:
        return spec.index_angles[0]

    def least(self, task: TaskSpec, theta: float) -> float:
        return float(index_discrepancy([task.sequence_length - 1], theta).minimum[0])

    def worst(self, task: TaskSpec, theta: float) -> tuple[float | None, Tensor]:
        return None, build.index_worst_gaps(task.sequence_length - 1, theta)


class RetrievalTheorem(Theorem):
    """The letter task; 3 letters and one digit where every input is run."""

    exhausted = range(2, 5)

    def small(self, n: int) -> TaskSpec:
        return LetterTaskSpec(target_window=1, pre_target_window=n - 1, hops=(1,), n_letters=3, n_digits=1)

    def sized(self, spec: TheorySpec, target_window: int, pre_target_window: int) -> TaskSpec:
        return LetterTaskSpec(
            target_window=target_window, pre_target_window=pre_target_window, hops=(1,), n_letters=spec.n_letters
        )

    def papers(self, spec: TheorySpec) -> TaskSpec:
        return LetterTaskSpec(n_letters=spec.n_letters)

    def theta(self, spec: TheorySpec) -> float:
        return spec.retrieval_angles[0]

    def least(self, task: TaskSpec, theta: float) -> float:
        assert task.alphabet is not None
        return float(retrieval_discrepancy([task.sequence_length - 1], theta, task.alphabet).minimum[0])

    def worst(self, task: TaskSpec, theta: float) -> tuple[float | None, Tensor]:
        assert task.alphabet is not None
        omega = build.letter_angle(task.alphabet)
        return omega, build.retrieval_worst_gaps(task.sequence_length - 1, theta, omega)


THEOREMS: dict[str, Theorem] = {"index": IndexTheorem(), "retrieval": RetrievalTheorem()}


def every_input(task: TaskSpec) -> Int[Tensor, "n position"]:
    """Every sequence of the task's length: tokens of any kind anywhere, integers that point into the sequence."""
    construction = task_of(task).construction
    options = [construction.tokens_at(position) for position in range(task.sequence_length)]
    return torch.tensor(list(itertools.product(*options)))


def construction(name: str, task: TaskSpec, spec: TheorySpec) -> Construction:
    """The head for up to n = task.sequence_length − 1 keys, β by Lemma F.1's argument from the least discrepancy."""
    theta = THEOREMS[name].theta(spec)
    least = THEOREMS[name].least(task, theta)
    return build.construct(task, theta, build.lemma_beta(least, task.sequence_length - 1, spec.tolerance))


def constructions_frame(spec: TheorySpec, report: Callable[[str], None]) -> pl.DataFrame:
    """Rows of `constructions`. `report` is told of each row as it is done."""
    rows = []
    for row in _constructions(spec):
        report(f"{row['construction']}, {row['sample']}, n = {row['length']}: exact on {row['exact_share']:.4%}")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _constructions(spec: TheorySpec) -> Iterator[dict]:
    for name, theorem in THEOREMS.items():
        for n in theorem.exhausted:
            task = theorem.small(n)
            yield _row(name, "exhaustive", construction(name, task, spec), every_input(task))
        for n in spec.construction_lengths:
            window = n // 2
            task = theorem.sized(spec, n - window, window)
            ids = task_of(task).generate(spec.n_per_length, seed=spec.seed).ids
            yield _row(name, "random", construction(name, task, spec), ids)
        task = theorem.papers(spec)
        head = construction(name, task, spec)
        yield _row(name, "task", head, task_of(task).generate(spec.n_random, seed=spec.seed).ids)
        sequences = task_of(task).generate(spec.n_chained, seed=spec.seed + 1)
        for hops in _CHAINED:
            rows = sequences.hops == hops
            held = head.run(sequences.ids[rows], hops)[:, -1]
            share = float((held == sequences.labels[rows]).double().mean())
            yield _described(name, "chained", head, share, int(rows.sum())) | {"times": hops}


def _row(name: str, sample: str, head: Construction, ids: Tensor) -> dict:
    """One application on every position of `ids` at which the function is defined."""
    defined = build.defined(ids, head.task)
    exact = head.exact(ids)[defined]
    positional, symbolic = (None, None)
    asking = ids[defined[:, -1]][:_SCORED]
    if sample != "exhaustive":
        positional, symbolic = head.scores(asking)
    return _described(name, sample, head, float(exact.double().mean()), len(ids)) | {
        "n_positions": int(defined.sum()),
        "positional_score": positional,
        "symbolic_score": symbolic,
    }


def _described(name: str, sample: str, head: Construction, share: float, n: int) -> dict:
    omega, gaps = THEOREMS[name].worst(head.task, head.theta)
    return {
        "construction": name,
        "sample": sample,
        "times": 1,
        "length": head.task.sequence_length - 1,
        "theta": head.theta,
        "omega": omega,
        "beta": head.beta,
        "smallest_beta": build.smallest_beta(gaps),
        "exact_share": share,
        "positional_score": None,
        "symbolic_score": None,
        "n_positions": n,
        "n": n,
    }


def discrepancy_frame(spec: TheorySpec) -> pl.DataFrame:
    """Rows of `discrepancy` of the constructions at every n from 2 to `longest` and every angle, β = 1."""
    lengths = range(2, spec.longest + 1)
    parts = []
    for theta in spec.index_angles:
        found = index_discrepancy(lengths, theta)
        parts.append(
            _table("index", lengths, theta, found, index_printed_bound(lengths, theta)).with_columns(
                bound_corrected=pl.Series(index_corrected_bound(lengths, theta)),
                bound_sharp=pl.Series(index_sharp_bound(lengths, theta)),
                in_range=pl.lit(True),
            )
        )
    for theta in spec.retrieval_angles:
        found = retrieval_discrepancy(lengths, theta, spec.n_letters)
        printed = retrieval_printed_bound(lengths, theta, spec.n_letters)
        parts.append(
            _table("retrieval", lengths, theta, found, printed).with_columns(
                bound_corrected=pl.lit(None, pl.Float64),
                bound_sharp=pl.lit(None, pl.Float64),
                in_range=pl.Series(in_range(lengths, theta, spec.n_letters)),
            )
        )
    return pl.concat(parts)


def _table(source: str, lengths: range, theta: float, found, bound) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "source": source,
            "length": list(lengths),
            "theta": theta,
            "measured": found.maximum,
            "measured_mean": found.mean,
            "measured_min": found.minimum,
            "bound": bound,
        }
    ).with_columns(layer=pl.lit(None, pl.Int64), head=pl.lit(None, pl.Int64), n=pl.lit(None, pl.Int64))
