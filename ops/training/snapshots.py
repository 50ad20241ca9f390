"""Weights snapshots: one folder a checkpoint step with config.json and model.safetensors, each whole or absent."""

import json
import logging
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from safetensors.torch import save
from torch import Tensor

from ops.model.checkpoint import state_config
from ops.model.gptj import GPTJ
from ops.spec.training import TrainingSpec
from ops.training.durable import problem_with, remove_unfinished, write_folder
from ops.training.log import diverged
from ops.training.module import LastTokenTraining

logger = logging.getLogger(__name__)


def snapshot_name(step: int) -> str:
    """Folder name of a step's snapshot or state: step_000050."""
    return f"step_{step:06d}"


def snapshot_step(folder: Path) -> int | None:
    """The step of a folder that is named as one, else None."""
    digits = folder.name.removeprefix("step_")
    return int(digits) if folder.name.startswith("step_") and digits.isdecimal() else None


def weights_on_cpu(model: GPTJ, training: TrainingSpec, step: int) -> dict[str, Tensor]:
    """The weights as contiguous CPU tensors. Raises TrainingDiverged when one is not finite."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise diverged(f"The weights of {name} are not finite", step, None, training)
    return weights


def write_snapshot(folder: Path, model: GPTJ, weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Write `folder` with config.json and model.safetensors; returns file name → SHA-256.

    The folder loads in ops.model.load_checkpoint. Raises TrainingWriteError when it cannot be written.
    """
    config = json.dumps(state_config(model.spec, model.vocabulary_size), indent=1, sort_keys=True) + "\n"
    data = save(dict(weights), metadata={"format": "pt"})
    return write_folder(folder, {"config.json": config.encode(), "model.safetensors": data})


class Snapshots(pl.Callback):
    """Writes the weights at each of `steps` (0 = the initial weights) as folder/step_000050; `digests` says which."""

    def __init__(self, folder: Path, training: TrainingSpec) -> None:
        self.folder, self.training = folder, training
        self.steps = frozenset(training.all_checkpoint_steps)
        self.digests: dict[int, dict[str, str]] = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The initial weights."""
        self._write_if_due(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """The weights after this step."""
        self._write_if_due(trainer, pl_module)

    def _write_if_due(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        step = trainer.global_step
        if step not in self.steps or step in self.digests or not trainer.is_global_zero:
            return
        assert isinstance(module, LastTokenTraining)
        weights = weights_on_cpu(module.model, self.training, step)
        self.digests[step] = write_snapshot(self.folder / snapshot_name(step), module.model, weights)

    def state_dict(self) -> dict[str, Any]:
        """Digests of what was written, as JSON values."""
        return {"digests": {str(step): files for step, files in self.digests.items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the snapshots of `state_dict` as written."""
        self.digests = {int(step): files for step, files in state_dict["digests"].items()}


def damaged_snapshot(folder: Path, digests: Mapping[int, Mapping[str, str]]) -> tuple[int, str] | None:
    """The earliest snapshot that is not exactly what `digests` says: its step and what is wrong; None when all are."""
    for step in sorted(digests):
        if problem := problem_with(folder / snapshot_name(step), digests[step]):
            return step, problem
    return None


def remove_unknown_snapshots(folder: Path, known: Collection[int]) -> None:
    """Remove whatever a killed training left in `folder` beyond the steps of `known`."""
    if not folder.is_dir():
        return
    names = remove_unfinished(folder)
    for path in sorted(folder.iterdir()):
        if snapshot_step(path) not in known:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            names.append(path.name)
    if names:
        logger.warning(
            "Threw away %s in %s: no resumable state vouches for it; it is written again.", ", ".join(names), folder
        )
