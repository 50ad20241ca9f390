"""Dropout masks that are a function of a seed, drawn with few memory passes.

The default generator of PyTorch's CPU dropout costs a sixth of a training step of the paper's model. Here one step's
masks come from one block of raw SFC64 bits, 16 bits an element, so the rate is exact to 1/65,536.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


class LayerMasks(NamedTuple):
    """One layer's masks: of the attention weights, and of the two branches added to the residual stream."""

    weights: Float[Tensor, "batch head query key"]
    attention: Float[Tensor, "batch position width"]
    mlp: Float[Tensor, "batch position width"]

    def last(self) -> "LayerMasks":
        """The same for the last position only."""
        return LayerMasks(self.weights[:, :, -1:], self.attention[:, -1:], self.mlp[:, -1:])


class Masks(NamedTuple):
    """One training forward's masks: 0 with probability `rate`, else 1 / (1 - rate)."""

    embedding: Float[Tensor, "batch position width"]
    layers: list[LayerMasks]


class DropoutStream:
    """A stream of masks that depends on the seed alone (a CPU and a GPU draw different ones)."""

    def __init__(self, seed: int):
        self._seed = seed
        self._bits = np.random.SFC64(seed)
        self._generators: dict[torch.device, torch.Generator] = {}

    def draw(self, n: int, rate: float, device: torch.device) -> Float[Tensor, "n"]:
        """n independent float32 factors: 0 with probability `rate` (to 1/65,536 on the CPU), else 1 / (1 - rate)."""
        if device.type != "cpu":
            if device not in self._generators:
                self._generators[device] = torch.Generator(device).manual_seed(self._seed)
            kept = torch.empty(n, device=device).bernoulli_(1.0 - rate, generator=self._generators[device])
            return kept.div_(1.0 - rate)
        words: np.ndarray = self._bits.random_raw((n + 3) // 4)  # pyright: ignore[reportAssignmentType]
        bits = torch.from_numpy(words.view(np.int16)[:n])  # uniform on -32768 … 32767
        dropped = round(rate * 65_536)
        return bits.ge(dropped - 32_768).to(torch.float32).mul_(65_536 / (65_536 - dropped))

    def masks(
        self, *, layers: int, heads: int, shape: tuple[int, int, int], rate: float, device: torch.device
    ) -> Masks:
        """The masks of one forward pass over ids of shape (batch, position), shape = (batch, position, width)."""
        square = (shape[0], heads, shape[1], shape[1])
        shapes = [shape] + [square, shape, shape] * layers
        sizes = [math.prod(each) for each in shapes]
        drawn = self.draw(sum(sizes), rate, device).split(sizes)
        masks = [flat.view(each) for flat, each in zip(drawn, shapes, strict=True)]
        return Masks(masks[0], [LayerMasks(*masks[i : i + 3]) for i in range(1, len(masks), 3)])
