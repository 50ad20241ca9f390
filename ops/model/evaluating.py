"""How a model is run outside training."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, `model` runs without dropout and without gradients; afterwards every submodule's mode is as before.

    So it is after an error too. Tensors made inside are inference tensors: no backward goes through them.
    """
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True
