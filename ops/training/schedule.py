"""The learning rate of each step: linear warm-up, then linear, cosine or no decay."""

import math

from ops.spec.training import TrainingSpec


def learning_rate(training: TrainingSpec, step: int) -> float:
    """Learning rate of the update that turns step `step` into `step + 1`, for 0 ≤ step < training.steps.

    Warm-up reaches the full rate at its last update; linear and cosine decay would reach 0 one update after the
    last, so no update is wasted. Source: arXiv:2605.31558 App. C (linear warm-up, linear decay).
    """
    if step < training.warmup_steps:
        return training.learning_rate * (step + 1) / training.warmup_steps
    if training.schedule == "constant":
        return training.learning_rate
    done = (step - training.warmup_steps) / (training.steps - training.warmup_steps)
    if training.schedule == "cosine":
        return training.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))
    return training.learning_rate * (1.0 - done)
