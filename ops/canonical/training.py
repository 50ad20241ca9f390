"""Train a stack of one-head models at once; each learns exactly what it would learn alone."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from ops.canonical.model import Heads, answer_logits
from ops.canonical.tasks import Questions, generate, n_answers, vocabulary_size
from ops.spec.canonical import CanonicalTaskSpec, CanonicalTrainingSpec

_STEPS_PER_DRAW = 100


def initial_heads(
    task: CanonicalTaskSpec, n_planes: int, seeds: Sequence[int], training: CanonicalTrainingSpec
) -> Heads:
    """Float32 parameters from N(0, initial_std), a model a seed: equal seeds give equal parameters."""
    width, dim = training.width, 2 * n_planes
    shapes = ((vocabulary_size(task), width), (width, dim), (width, dim), (width, width), (width, n_answers(task)))
    drawn: dict[int, list[Tensor]] = {}
    for seed in set(seeds):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        drawn[seed] = [torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes]
    return Heads(*(torch.stack([drawn[seed][i] for seed in seeds]) * training.initial_std for i in range(len(shapes))))


def train(
    task: CanonicalTaskSpec,
    theta: Float[Tensor, "model plane"],
    seeds: Sequence[int],
    training: CanonicalTrainingSpec,
    report: Callable[[int, float], None] = lambda step, loss: None,
) -> Heads:
    """The trained parameters of one model a row of `theta` (radians per position) and seed.

    Initial parameters and batches are functions of (task, seed), never of the angle, so models of one seed differ in
    their angles alone. Fresh questions every step. `report(step, mean loss)` is called every 100 steps.
    Raises ValueError if lengths differ, or on a loss that is not finite.
    """
    if len(seeds) != len(theta) or len(seeds) == 0:
        raise ValueError(f"{len(theta)} sets of angles and {len(seeds)} seeds; give as many of one as of the other")
    heads = Heads(*(part.requires_grad_() for part in initial_heads(task, theta.shape[1], seeds, training)))
    optimiser = torch.optim.Adam(heads, lr=training.learning_rate, betas=training.betas, foreach=True)
    streams = {s: np.random.SeedSequence(s, spawn_key=(1,)) for s in seeds}
    distinct = list(streams)
    row = torch.tensor([distinct.index(s) for s in seeds])
    for start in range(0, training.steps, _STEPS_PER_DRAW):
        n_steps = min(_STEPS_PER_DRAW, training.steps - start)
        drawn = [_batches(task, n_steps, training.batch_size, streams[s], start) for s in distinct]
        ids = torch.stack([questions.ids for questions in drawn], 1)  # (step, seed, B, T)
        answers = torch.stack([questions.answers for questions in drawn], 1)
        loss = torch.zeros(())
        for i in range(n_steps):
            for group in optimiser.param_groups:
                group["lr"] = training.learning_rate * schedule(start + i, training)
            logits = answer_logits(heads, theta, ids[i, row])
            loss = F.cross_entropy(logits.flatten(0, 1), answers[i, row].flatten(), reduction="sum") / len(ids[i, 0])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        mean = float(loss.detach()) / len(seeds)
        if not math.isfinite(mean):
            raise ValueError(f"the loss is {mean} after step {start + n_steps}; lower training.learning_rate")
        report(start + n_steps, mean)
    return Heads(*(part.detach() for part in heads))


def schedule(step: int, training: CanonicalTrainingSpec) -> float:
    """Factor on the learning rate of step `step` (from 0): linear warm-up, then half a cosine down to 0."""
    if step < training.warmup_steps:
        return (step + 1) / training.warmup_steps
    done = (step - training.warmup_steps) / max(1, training.steps - training.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def _batches(
    task: CanonicalTaskSpec, n_steps: int, batch_size: int, stream: np.random.SeedSequence, start: int
) -> Questions:
    """n_steps batches: each field with a leading axis step."""
    seed = np.random.SeedSequence(stream.entropy, spawn_key=(*stream.spawn_key, start))
    return Questions(*(part.unflatten(0, (n_steps, batch_size)) for part in generate(task, n_steps * batch_size, seed)))
