"""Weights snapshots: one folder a checkpoint step with config.json and model.safetensors, each whole or absent."""

import logging
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import lightning as L
from torch import Tensor

from ops.model.gptj import GPTJ
from ops.spec.training import TrainingSpec
from ops.training.durable import problem_with, remove_unfinished, write_folder
from ops.training.module import LastTokenTraining
from ops.training.weights import snapshot_files, weights_on_cpu

logger = logging.getLogger(__name__)


def snapshot_name(step: int) -> str:
    """Folder name of a step's snapshot or state: step_000050."""
    return f"step_{step:06d}"


def snapshot_step(folder: Path) -> int | None:
    """The step of a folder that is named as one, else None."""
    digits = folder.name.removeprefix("step_")
    return int(digits) if folder.name.startswith("step_") and digits.isdecimal() else None


def write_snapshot(folder: Path, model: GPTJ, weights: dict[str, Tensor]) -> dict[str, str]:
    """Write `folder` with config.json and model.safetensors; returns file name → SHA-256.

    The folder loads in ops.model.load_checkpoint. Raises TrainingWriteError when it cannot be written.
    """
    return write_folder(folder, snapshot_files(model, weights))


class Snapshots(L.Callback):
    """Writes the weights at each of `steps` (0 = the initial weights) as folder/step_000050; `digests` says which."""

    def __init__(self, folder: Path, training: TrainingSpec) -> None:
        self.folder, self.training = folder, training
        self.steps = frozenset(training.all_checkpoint_steps)
        self.digests: dict[int, dict[str, str]] = {}

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """The initial weights."""
        self._write_if_due(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """The weights after this step."""
        self._write_if_due(trainer, pl_module)

    def _write_if_due(self, trainer: L.Trainer, module: L.LightningModule) -> None:
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
