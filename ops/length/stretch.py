"""What is done at inference so that a model trained on short inputs reads long ones: another table of angles."""

import math

import torch

from ops.model.rope import RotaryTable
from ops.spec.length import InferenceSpec, LogNSpec, PositionInterpolationSpec


def stretched(table: RotaryTable, change: InferenceSpec, length: int, trained: int) -> RotaryTable:
    """The table for inputs of `length` tokens, of a model trained at `trained`; up to that length nothing changes.

    log_n: logits times ln(length) / ln(trained). position_interpolation: angles times trained / length
    (arXiv 2306.15595). yarn: angles of planes that turn often over the trained length stay, others are interpolated,
    with a linear ramp between, and logits times (0.1 ln(length / trained) + 1)^2 (arXiv 2309.00071, §3.2 and §3.4).
    In 17 trained tokens no plane turns often (at most 2.7 times, and beta is 32 unless set): there yarn is nearly
    position interpolation with a temperature.
    """
    if length <= trained:
        return table
    scale, theta = length / trained, table.theta
    if isinstance(change, LogNSpec):
        return table.replaced(logit_scale=table.logit_scale * (math.log(length) / math.log(trained)))
    if isinstance(change, PositionInterpolationSpec):
        return table.replaced(theta=theta / scale)
    turns = trained * theta / (2 * math.pi)
    kept = ((turns - change.alpha) / (change.beta - change.alpha)).clamp(0, 1)
    temperature = (0.1 * math.log(scale) + 1) ** 2
    return table.replaced(theta=torch.lerp(theta / scale, theta, kept), logit_scale=table.logit_scale * temperature)
