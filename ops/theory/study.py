"""The theory's tables: constructions run on inputs, discrepancies beside their bounds."""

import itertools
from collections.abc import Callable, Iterator

import polars as pl
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import LetterTaskSpec, NumberTaskSpec, TaskSpec
from ops.spec.theory import TheorySpec
from ops.tasks.registry import generate, vocabulary_size
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

NAMES = ("index", "retrieval")
_SCORED = 200  # inputs whose scores are averaged
_EXHAUSTED = {"index": range(2, 6), "retrieval": range(2, 5)}  # n: all 5,040 and 20,736 … 248,832 inputs of n + 1
_CHAINED = (1, 2, 3, 4)


def small_task(name: str, n: int) -> TaskSpec:
    """A task of n keys before the query with an alphabet small enough to enumerate: 2 letters, or 3 and one digit."""
    windows = {"target_window": 1, "pre_target_window": n - 1, "hops": (1,)}
    if name == "index":
        return NumberTaskSpec(**windows, n_letters=2)
    return LetterTaskSpec(**windows, n_letters=3, n_digits=1)


def every_input(task: TaskSpec) -> Int[Tensor, "n position"]:
    """Every sequence of the task's length: tokens of any kind anywhere, integers that point into the sequence."""
    length = task.sequence_length
    if isinstance(task, NumberTaskSpec):
        letters = list(range(length, length + task.n_letters))
        options = [[*range(1, position + 1), *letters] for position in range(length)]
    else:
        options = [list(range(1, vocabulary_size(task)))] * length
    return torch.tensor(list(itertools.product(*options)))


def construction(name: str, task: TaskSpec, spec: TheorySpec) -> Construction:
    """The head for up to n = task.sequence_length − 1 keys, β by Lemma F.1's argument from the least discrepancy."""
    n = task.sequence_length - 1
    if isinstance(task, NumberTaskSpec):
        theta = spec.index_angles[0]
        least = index_discrepancy([n], theta).minimum[0]
        return build.index(task, theta, build.lemma_beta(float(least), n, spec.tolerance))
    theta = spec.retrieval_angles[0]
    least = retrieval_discrepancy([n], theta, task.n_letters).minimum[0]
    return build.retrieval(task, theta, build.lemma_beta(float(least), n, spec.tolerance))


def constructions_frame(spec: TheorySpec, report: Callable[[str], None]) -> pl.DataFrame:
    """Rows of `constructions`. `report` is told of each row as it is done."""
    rows = []
    for row in _constructions(spec):
        report(f"{row['construction']}, {row['sample']}, n = {row['length']}: exact on {row['exact_share']:.4%}")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _constructions(spec: TheorySpec) -> Iterator[dict]:
    for name in NAMES:
        for n in _EXHAUSTED[name]:
            task = small_task(name, n)
            yield _row(name, "exhaustive", construction(name, task, spec), every_input(task))
        for n in spec.construction_lengths:
            window = n // 2
            sizes = {"target_window": n - window, "pre_target_window": window, "hops": (1,)}
            task = NumberTaskSpec(**sizes, n_letters=26) if name == "index" else _letters(spec, **sizes)
            yield _row(name, "random", construction(name, task, spec), generate(task, spec.n_per_length, spec.seed).ids)
        task = NumberTaskSpec() if name == "index" else _letters(spec)
        head = construction(name, task, spec)
        yield _row(name, "task", head, generate(task, spec.n_random, spec.seed).ids)
        sequences = generate(task, spec.n_chained, spec.seed + 1)
        for hops in _CHAINED:
            rows = sequences.hops == hops
            held = head.run(sequences.ids[rows], hops)[:, -1]
            share = float((held == sequences.labels[rows]).double().mean())
            yield _described(name, "chained", head, share, int(rows.sum())) | {"times": hops}


def _letters(spec: TheorySpec, **sizes) -> LetterTaskSpec:
    return LetterTaskSpec(**sizes, n_letters=spec.n_letters)


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
        "positional": positional,
        "symbolic": symbolic,
    }


def _described(name: str, sample: str, head: Construction, share: float, n: int) -> dict:
    length = head.task.sequence_length - 1
    if isinstance(head.task, NumberTaskSpec):
        omega, gaps = None, build.index_worst_gaps(length, head.theta)
    else:
        omega = build.letter_angle(head.task)
        gaps = build.retrieval_worst_gaps(length, head.theta, omega)
    return {
        "construction": name,
        "sample": sample,
        "times": 1,
        "length": length,
        "theta": head.theta,
        "omega": omega,
        "beta": head.beta,
        "smallest_beta": build.smallest_beta(gaps),
        "exact_share": share,
        "positional": None,
        "symbolic": None,
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
