"""The whole sweep of one canonical task and seed: train all sets of angles side by side, then measure each."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from torch import Tensor

from ops.canonical.evaluation import accuracy_rows, angles, no_planes, plane_rows, right_answers, score_models
from ops.canonical.model import Heads
from ops.canonical.tasks import Questions, generate
from ops.canonical.training import train
from ops.spec.canonical import CanonicalSweepSpec


def sweep(
    spec: CanonicalSweepSpec, seed: int, report: Callable[[str], None] = lambda line: None
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Rows of `canonical_accuracy` and of `canonical_plane`, and the number of parameters of a one-plane model."""
    questions = generate(spec.task, spec.n_test, np.random.SeedSequence(seed, spawn_key=(2,)))
    few = Questions(*(part[: spec.n_score_inputs] for part in questions))
    accuracy, planes, n_parameters = [], [], 0
    for sets, theta in stacks(spec):

        def told(step: int, loss: float, sets: tuple[tuple[int, ...], ...] = sets) -> None:
            report(
                f"{spec.task.name}: {len(sets)} models of {len(sets[0])} plane{'s'[: len(sets[0]) - 1]}, "
                f"step {step}/{spec.training.steps}, mean loss {loss:.3f}"
            )

        heads = train(spec.task, theta, [seed] * len(sets), spec.training, told)
        n_parameters = n_parameters or _n_parameters(heads)
        right, scores = right_answers(heads, theta, questions), score_models(heads, theta, few, spec.tau)
        accuracy.append(accuracy_rows(spec.task, sets, theta, questions, right, scores))
        planes += [
            plane_rows(spec.task, ids, heads, model, theta[model])
            for model, ids in enumerate(sets)
            if ids in spec.shown
        ]
    return pl.concat(accuracy), pl.concat(planes) if planes else no_planes(), n_parameters


def stacks(spec: CanonicalSweepSpec) -> Iterator[tuple[tuple[tuple[int, ...], ...], Float[Tensor, "model plane"]]]:
    """Sets of frequency IDs with equally many planes, and their angles: what can be trained in one stack."""
    for n_planes in sorted({len(ids) for ids in spec.sets}):
        sets = tuple(ids for ids in spec.sets if len(ids) == n_planes)
        yield sets, torch.stack([angles(ids, spec.n_frequencies, spec.rope_base) for ids in sets])


def _n_parameters(heads: Heads) -> int:
    return sum(part[0].numel() for part in heads)
