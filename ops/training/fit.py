"""Train one model in one folder, to the end, however often it is interrupted on the way.

    workdir/checkpoints/step_000050/{config.json, model.safetensors}    the snapshots, the result
    workdir/resume/step_000050/{state.json, state.safetensors}          the last two resumable states

Batches, dropout masks, learning rates and initial weights are functions of the seed and the step. So a training that
was killed at any moment continues from its last state to the same weights, snapshots and log, bit for bit, on the same
machine with the same number of threads. What decides them is `ops.training.recipe`; this module only sees it through.
"""

import hashlib
import json
import logging
import shutil
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
import polars as pl
from lightning.pytorch.loggers import Logger

from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import SequenceData, TrainingData
from ops.training.durable import TrainingWriteError
from ops.training.environment import LocalTrainer, device_kind, first_rank
from ops.training.interruption import Signals, pass_on
from ops.training.log import TrainingDiverged
from ops.training.module import LastTokenTraining
from ops.training.progress import Progress, ProgressReport, TerminalProgress
from ops.training.recipe import recipe
from ops.training.resume import ResumableState, SavedState, latest_state
from ops.training.snapshots import (
    Snapshots,
    damaged_snapshot,
    remove_unknown_snapshots,
    snapshot_name,
    write_snapshot,
)
from ops.training.validation import ValidationAccuracy
from ops.training.workdir_lock import sole_user

logger = logging.getLogger(__name__)
STATE_EVERY = 500  # steps between two resumable states, where snapshots are rarer
STATE_REST_S = 15.0  # seconds between two, where snapshots are denser: a killed training repeats that much


class FitResult(NamedTuple):
    """A finished training. `log` has the columns step, loss, learning_rate, steps_per_s, grad_norm.

    `summary` is plain JSON values; `checkpoints` is step → folder.
    """

    log: pl.DataFrame
    summary: dict[str, Any]
    checkpoints: dict[int, Path]


def fit(
    *,
    task_data: TrainingData,
    vocabulary_size: int,
    model: ModelSpec,
    training: TrainingSpec,
    seed: int,
    workdir: Path,
    report: Callable[[Progress], None] | None = None,
    accelerator: str = "auto",
    devices: int | str | list[int] = 1,
    callbacks: Sequence[L.Callback] = (),
    loggers: Sequence[Logger] = (),
) -> FitResult:
    """Train `model` on `task_data` in `workdir`, continuing what an interrupted call left there.

    A finished folder is verified and returned at once. `report` gets a Progress every 5 seconds (default: a bar on the
    terminal). `accelerator` is Lightning's; `devices` likewise, but names one device ("auto" is one, [2] the third);
    for several, train several seeds at once, or put LastTokenTraining and SequenceData into a Trainer of your own.
    `callbacks` and `loggers` are added to ours.
    Raises TrainingDiverged (nothing is kept), TrainingWriteError (the last resumable state is kept), OtherTraining
    (the folder belongs to another training), ValueError (data that do not fit); an interruption stays one:
    KeyboardInterrupt, SystemExit(143), or what the caller's own signal handler raises. SIGUSR1 and SIGUSR2, which
    schedulers send before they kill, have the state saved and change nothing else.
    Source of the recipe: arXiv:2605.31558 App. C.
    """
    _check_data(task_data, vocabulary_size)
    started, checkpoints = time.perf_counter(), workdir / "checkpoints"
    with sole_user(workdir):
        identity = _identity(task_data, vocabulary_size, model, training, seed)
        decides = recipe(task_data, vocabulary_size, model, training, seed, device_kind(accelerator))
        module, log, snapshots = decides.module, decides.log, Snapshots(checkpoints, training)
        validation = ValidationAccuracy(task_data, training.steps, every=-(-training.steps // 20))
        state = _recover(workdir, identity, snapshots, module.model, training)
        resumable = ResumableState(workdir / "resume", identity, state, STATE_EVERY, STATE_REST_S)
        if state is not None and state.step == training.steps:
            for callback in (log, snapshots, validation):
                callback.load_state_dict(state.callbacks[type(callback).__name__])
        else:
            signals = Signals(resumable)
            progress = ProgressReport(report or TerminalProgress(), training.steps, validation=validation)
            ours = [*callbacks, log, validation, snapshots, resumable, progress, signals]
            try:
                with signals, first_rank(), _quiet_lightning():
                    trainer = _trainer(decides.settings, devices, ours, list(loggers), workdir)
                    _run(trainer, module, decides.data)
            except TrainingDiverged:
                for folder in (checkpoints, workdir / "resume"):
                    shutil.rmtree(folder, ignore_errors=True)
                raise
            if signals.received is not None:
                logger.warning("Training was stopped at step %d of %d.", trainer.global_step, training.steps)
                pass_on(signals.received)
        summary = {
            "steps": training.steps,
            "resumed_from_step": None if state is None else state.step,
            "final_loss": log.rows[-1]["loss"],
            "validation_accuracy": {str(hop): value for hop, value in validation.latest.items()},
            "n_parameters": sum(p.numel() for p in module.model.parameters()),
            "n_checkpoints": len(snapshots.digests),
            "steps_per_s": log.frame()["steps_per_s"].median(),
            "wall_s": time.perf_counter() - started,
        }
        folders = {step: checkpoints / snapshot_name(step) for step in sorted(snapshots.digests)}
        return FitResult(log.frame(), summary, folders)


def _check_data(data: TrainingData, vocabulary_size: int) -> None:
    for split in ("train", "validation"):
        ids, labels = getattr(data, f"{split}_ids"), getattr(data, f"{split}_labels")
        if len(ids) != len(labels):
            raise ValueError(f"the {split} split has {len(ids)} sequences and {len(labels)} labels")
        for what, values in ((f"{split}_ids", ids), (f"{split}_labels", labels)):
            if values.numel() and not 0 <= int(values.min()) <= int(values.max()) < vocabulary_size:
                raise ValueError(f"{what} has token ids outside 0 … {vocabulary_size - 1}, the model's vocabulary")


def _identity(data: TrainingData, vocabulary_size: int, model: ModelSpec, training: TrainingSpec, seed: int) -> str:
    """SHA-256 over all that decides the result: specs, seed and data."""
    settings = {"model": model.model_dump(mode="json"), "training": training.model_dump(mode="json")}
    settings |= {"seed": seed, "vocabulary_size": vocabulary_size}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for tensor in data:
        digest.update(json.dumps([str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _recover(
    workdir: Path, identity: str, snapshots: Snapshots, model: GPTJ, training: TrainingSpec
) -> SavedState | None:
    """The state to continue from, with exactly the snapshots it vouches for on disk, whole; None to start afresh."""

    def digests(state: SavedState) -> dict[int, dict[str, str]]:
        return {int(step): files for step, files in state.callbacks["Snapshots"]["digests"].items()}

    def problem(state: SavedState) -> str | None:
        if hole := _hole(state, digests(state), training):
            return hole
        damaged = damaged_snapshot(snapshots.folder, digests(state))
        if damaged is None:
            return None
        step, wrong = damaged
        folder = snapshots.folder / snapshot_name(step)
        if step < state.step:
            return f"is later than the snapshot of step {step}, and that one {wrong}"
        logger.warning("The snapshot %s %s; it is written again from the resumable state.", folder, wrong)
        write_snapshot(folder, model, state.weights)
        return None

    state = latest_state(workdir / "resume", identity, problem)
    remove_unknown_snapshots(snapshots.folder, digests(state) if state else ())
    if state is not None:
        logger.info("Continuing the training in %s from step %d.", workdir, state.step)
    return state


def _hole(state: SavedState, snapshots: Collection[int], training: TrainingSpec) -> str | None:
    """What a state lacks of all that was due up to its step, in words: whatever wrote it did not train every step."""
    if missing := [step for step in training.all_checkpoint_steps if step <= state.step and step not in snapshots]:
        return f"vouches for no snapshot of step {missing[0]}"
    rows = [row["step"] for row in state.callbacks["TrainingLog"]["rows"]]
    if rows != [step for step in training.all_log_steps if step <= state.step]:
        return "does not have every row of the log"
    return None


def _trainer(
    decided: dict[str, Any],
    devices: int | str | list[int],
    callbacks: list[L.Callback],
    loggers: list[Logger],
    workdir: Path,
) -> L.Trainer:
    trainer = LocalTrainer(
        **decided,
        devices=1 if devices == "auto" else devices,
        callbacks=callbacks,
        logger=loggers or False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        log_every_n_steps=1,
        default_root_dir=workdir,
    )
    if trainer.world_size != 1:
        raise ValueError(f"devices = {devices!r} names {trainer.world_size} devices; fit trains on one")
    return trainer


def _run(trainer: L.Trainer, module: LastTokenTraining, data: SequenceData) -> None:
    try:
        trainer.fit(module, datamodule=data)
    except SystemExit as exit_:
        # Lightning turns a Ctrl-C from outside our own handler into exit code 1.
        if isinstance(exit_.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from exit_
        raise


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """No hardware table, tips and `max_steps reached` from Lightning while it runs; its warnings stay.

    But for one: Lightning 2.6 uses a class that PyTorch 2.13 deprecates.
    """
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        log.setLevel(level)


__all__ = ["FitResult", "Progress", "TrainingData", "TrainingDiverged", "TrainingWriteError", "fit"]
