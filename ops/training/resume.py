"""Resumable state: everything that the rest of a training depends on, verified, the last two kept."""

import json
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
import torch
from safetensors.torch import load, save
from torch import Tensor

from ops.training.durable import problem_with, remove_unfinished, sha256, sync_folder, write_folder
from ops.training.module import LastTokenTraining
from ops.training.snapshots import snapshot_name, snapshot_step
from ops.training.weights import weights_on_cpu

logger = logging.getLogger(__name__)
_FORMAT = 1


class SavedState(NamedTuple):
    """A verified state: after `step` optimiser steps; `tensors` are model.<name> and optimiser.<index>.<name>."""

    step: int
    tensors: dict[str, Tensor]
    scaler: dict[str, Any]
    callbacks: dict[str, dict[str, Any]]

    @property
    def weights(self) -> dict[str, Tensor]:
        """The model's weights by name."""
        return {name.removeprefix("model."): t for name, t in self.tensors.items() if name.startswith("model.")}


class OtherTraining(ValueError):
    """The folder holds the state of a training with other settings, data or seed."""


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _read_state(folder: Path, identity: str) -> SavedState | str:
    """The state in `folder`, or what is wrong with it in words."""
    try:
        document = json.loads((folder / "state.json").read_bytes())
        body, digest = document["state"], document["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return "has no readable state.json"
    if sha256(_canonical(body)) != digest or body.get("format") != _FORMAT:
        return "has a damaged state.json"
    digests = {**body["files"], "state.json": sha256((folder / "state.json").read_bytes())}
    if problem := problem_with(folder, digests):
        return problem
    if body["identity"] != identity:
        raise OtherTraining(
            f"{folder.parent.parent} holds a training with other settings, data or seed; choose another folder or "
            "remove this one"
        )
    tensors = load((folder / "state.safetensors").read_bytes())
    return SavedState(body["step"], tensors, body["scaler"], body["callbacks"])


def latest_state(
    folder: Path, identity: str, problem: Callable[[SavedState], str | None] = lambda state: None
) -> SavedState | None:
    """The newest state of the training `identity` in `folder` that is whole and without a `problem`; None if none.

    States that are not are removed with a logged sentence. Raises OtherTraining when a whole state belongs to another
    training.
    """
    if not folder.is_dir():
        return None
    remove_unfinished(folder)
    numbered = [(step, path) for path in folder.iterdir() if (step := snapshot_step(path)) is not None]
    for step, path in sorted(numbered, reverse=True):
        found = _read_state(path, identity)
        wrong = found if isinstance(found, str) else problem(found)
        if not isinstance(found, str) and wrong is None:
            return found
        logger.warning(
            "Threw away the resumable state of step %d in %s, which %s; continuing from an earlier one or the start.",
            step,
            folder,
            wrong,
        )
        shutil.rmtree(path)
    return None


class ResumableState(L.Callback):
    """Writes the state at checkpoint steps and at least every `every` steps; restores `start` before training.

    Where these follow each other within `rest_s` seconds, one is written in that time, and always the last step's:
    a state is three times as large as a snapshot, and a fast device passes several checkpoint steps a second.

    The state is weights, optimiser moments, step, loss scaler and what the other callbacks' `state_dict` holds. Data
    order, dropout and learning rate are functions of the step and need none.
    """

    def __init__(
        self, folder: Path, identity: str, start: SavedState | None = None, every: int = 500, rest_s: float = 0.0
    ) -> None:
        self.folder, self.identity, self.start, self.every, self.rest_s = folder, identity, start, every, rest_s
        self._since = 0.0
        self._written = -1 if start is None else start.step
        self._steps: frozenset[int] = frozenset()

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Put the trainer, the module and the other callbacks where the state was saved."""
        assert isinstance(pl_module, LastTokenTraining)
        self._steps = frozenset(pl_module.training_spec.all_checkpoint_steps)
        self._since = time.monotonic()
        if self.start is None:
            return
        state = self.start
        pl_module.model.load_state_dict(state.weights)
        _load_optimiser(trainer.optimizers[0], state.tensors)
        trainer.precision_plugin.load_state_dict(state.scaler)
        for callback in trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
            if type(callback).__name__ in state.callbacks:
                callback.load_state_dict(state.callbacks[type(callback).__name__])
        # What Lightning's own loops restore from a .ckpt, which would be a pickle.
        loop = trainer.fit_loop.epoch_loop
        progress = loop.automatic_optimization.optim_progress.optimizer.step.total
        progress.ready = progress.completed = loop._batches_that_stepped = state.step
        self.start = None

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write where due."""
        assert isinstance(pl_module, LastTokenTraining)
        step = trainer.global_step
        due = step in self._steps or step - max(self._written, 0) >= self.every
        rested = time.monotonic() - self._since >= self.rest_s
        if due and (rested or step == pl_module.training_spec.steps):
            self.write(trainer, pl_module)

    def write(self, trainer: L.Trainer, module: LastTokenTraining) -> None:
        """Write the state of this moment, once, and drop all but the last two. Raises TrainingWriteError."""
        step = trainer.global_step
        if step == self._written or not trainer.is_global_zero:
            return
        weights = weights_on_cpu(module.model, module.training_spec, step)
        tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
        tensors.update(_optimiser_tensors(trainer.optimizers[0]))
        data = save(tensors)
        callbacks: Any = trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        body = {
            "format": _FORMAT,
            "identity": self.identity,
            "step": step,
            "files": {"state.safetensors": sha256(data)},
            "scaler": trainer.precision_plugin.state_dict(),
            "callbacks": {type(c).__name__: state for c in callbacks if (state := c.state_dict())},
        }
        document = _canonical({"state": body, "sha256": sha256(_canonical(body))})
        write_folder(self.folder / snapshot_name(step), {"state.safetensors": data, "state.json": document})
        self._written, self._since = step, time.monotonic()
        steps = sorted(s for path in self.folder.iterdir() if (s := snapshot_step(path)) is not None and s <= step)
        for old in steps[:-2]:
            shutil.rmtree(self.folder / snapshot_name(old))
        sync_folder(self.folder)


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"optimiser.{index}.{name}": tensor.detach().cpu().contiguous()
        for index, moments in optimiser.state_dict()["state"].items()
        for name, tensor in moments.items()
    }


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimiser":
            index, _, name = rest.partition(".")
            state.setdefault(int(index), {})[name] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
