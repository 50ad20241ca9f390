"""How a model is run outside training."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module, *, inference: bool = True) -> Iterator[None]:
    """Inside, `model` runs without dropout and without gradients; afterwards every submodule's mode is as before.

    So it is after an error too. Tensors made inside are inference tensors: no backward goes through them. With
    `inference=False` they are ordinary ones, for a model that is not ours and may keep what it makes (rotary tables).
    """
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.inference_mode() if inference else torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True
