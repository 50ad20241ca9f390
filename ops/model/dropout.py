"""Dropout masks that are a function of a seed, drawn with few memory passes.

The default generator of PyTorch's CPU dropout costs a sixth of a training step of the paper's model. Here one step's
masks come from one block of raw SFC64 bits, 16 bits an element, so the rate is exact to 1/65,536.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


class Masks(NamedTuple):
    """One training forward's masks: 0 with probability `rate`, else 1 / (1 - rate)."""

    embedding: Float[Tensor, "batch position width"]
    attention: list[Float[Tensor, "batch head query key"]]
    attention_branch: list[Float[Tensor, "batch position width"]]
    mlp_branch: list[Float[Tensor, "batch position width"]]


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
        batch, length, width = shape
        branch, square = batch * length * width, batch * heads * length * length
        sizes = [branch] + [square, branch, branch] * layers
        parts = iter(self.draw(sum(sizes), rate, device).split(sizes))
        embedding = next(parts).view(shape)
        attention, attention_branch, mlp_branch = [], [], []
        for _ in range(layers):
            attention.append(next(parts).view(batch, heads, length, length))
            attention_branch.append(next(parts).view(shape))
            mlp_branch.append(next(parts).view(shape))
        return Masks(embedding, attention, attention_branch, mlp_branch)
