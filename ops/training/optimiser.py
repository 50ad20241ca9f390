"""The optimiser of a TrainingSpec, in the form that is fastest on every device."""

from collections.abc import Iterable

import torch
from torch import nn

from ops.spec.training import TrainingSpec


def make_optimiser(parameters: Iterable[nn.Parameter], training: TrainingSpec) -> torch.optim.AdamW:
    """AdamW over all parameters with the spec's peak learning rate, betas and weight decay, in one fused kernel.

    Clip with `torch.nn.utils.clip_grad_norm_(parameters, training.gradient_clip, foreach=True)`, and zero with
    `zero_grad(set_to_none=True)`. Source of the settings: arXiv 2605.31558 App. C.
    """
    return torch.optim.AdamW(
        parameters,
        lr=training.learning_rate,
        betas=training.betas,
        weight_decay=training.weight_decay,
        fused=True,
    )
