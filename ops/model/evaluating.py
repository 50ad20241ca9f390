"""How a model is run outside training."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ops.model.gptj import GPTJ

HIDDEN_PER_CHUNK = 2**21  # numbers in one layer's hidden state


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


def inputs_per_chunk(model: GPTJ, length: int, hidden: int = HIDDEN_PER_CHUNK) -> int:
    """Inputs of `length` positions to run at once for `hidden` numbers in one layer's hidden state, 1 or more."""
    return max(1, hidden // (length * model.spec.width))
