"""Validation accuracy by hop class while training: a small even sample at intervals, the whole split at the end."""

from collections.abc import Sequence
from typing import Any

import lightning as L
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.model.evaluating import evaluating
from ops.training.data import TrainingData
from ops.training.module import LastTokenTraining


class ValidationAccuracy(L.Callback):
    """`latest` is hop class → accuracy, over `sample` evenly spread rows every `every` steps, all rows at `steps`.

    Draws no random number and leaves every submodule's mode as it was.
    """

    def __init__(self, data: TrainingData, steps: int, every: int, sample: int = 512, batch_size: int = 64) -> None:
        self.data, self.steps, self.every, self.batch_size = data, steps, every, batch_size
        n = len(data.validation_ids)
        self._sample = torch.linspace(0, max(n - 1, 0), min(n, sample)).round().long()
        self.latest: dict[int, float] = {}

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Evaluate where due."""
        step = trainer.global_step
        if step != self.steps and step % self.every:
            return
        rows = torch.arange(len(self.data.validation_ids)) if step == self.steps else self._sample
        assert isinstance(pl_module, LastTokenTraining)
        with trainer.precision_plugin.forward_context():
            right = self._right(pl_module, rows)
        hops = self.data.validation_hops[rows]
        classes: Sequence[int] = hops.unique().tolist()
        self.latest = {hop: float(right[hops == hop].double().mean()) for hop in classes}

    def _right(self, module: LastTokenTraining, rows: Int[Tensor, " m"]) -> Bool[Tensor, " m"]:
        parts = []
        with evaluating(module.model):
            for part in rows.split(self.batch_size):
                logits = module.model.last_logits(self.data.validation_ids[part].to(module.device))
                parts.append(logits.argmax(-1).cpu() == self.data.validation_labels[part])
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.bool)

    def state_dict(self) -> dict[str, Any]:
        """The latest accuracies, as JSON values."""
        return {"latest": {str(hop): value for hop, value in self.latest.items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state of `state_dict`."""
        self.latest = {int(hop): value for hop, value in state_dict["latest"].items()}
