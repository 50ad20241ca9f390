"""Training on inputs of mixed lengths: each batch of one length, its rows lengthened in front, each in its own way.

The frozen training loop is used as it is: a callback gives its data module the hook through which Lightning passes
every batch on its way to the device. Lengths and tokens are functions of the seed and the step, so a training that was
interrupted continues bit for bit.
"""

from collections.abc import Sequence
from typing import Any

import lightning as L
import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.mixed_lengths import MixedLengthsSpec
from ops.spec.model import ModelSpec
from ops.spec.task import TaskSpec
from ops.spec.training import TrainingSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of
from ops.training.data import Batch, SequenceData, TrainingData
from ops.training.fit import FitResult, fit

_STREAM = 0x6D697864  # under the training's seed; those of ops.training.streams are 0, 1 and 2


class MixedTrainingSpec(TrainingSpec):
    """The recipe with the lengths, so that a work folder vouches for both."""

    mixed_lengths: MixedLengthsSpec


class MixedLengths:
    """Lengthens the rows of a training split; what is drawn for a step depends on (seed, step) alone."""

    def __init__(self, task: TaskSpec, train: Sequences, spec: MixedLengthsSpec, seed: int) -> None:
        """Raises ValueError if `spec` begins below the task's length, or the task has no longer inputs."""
        if spec.shortest < task.sequence_length:
            raise ValueError(f"shortest is {spec.shortest}, but a sequence has {task.sequence_length} tokens already")
        self.task, self.train, self.spec, self.seed = task, train, spec, seed
        self._lengthening = task_of(task).lengthening

    def _generator(self, step: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(_STREAM, step)))

    def length(self, step: int) -> int:
        """Tokens of the inputs of `step` (0-based), uniform from shortest to longest."""
        return int(self._generator(step).integers(self.spec.shortest, self.spec.longest + 1))

    def prefixes(self, step: int, rows: Int[np.ndarray, " batch"]) -> Int[Tensor, "batch token"]:
        """The tokens in front of the batch `rows` of `step`, each row's own, which leave every path as it was."""
        rng = self._generator(step)
        length = int(rng.integers(self.spec.shortest, self.spec.longest + 1))
        batch = Sequences(*(column[torch.from_numpy(rows)] for column in self.train))
        return self._lengthening.before_rows(batch, length - self.task.sequence_length, rng)


class LengthenBatches(L.Callback):
    """Lets a Trainer see each batch of a SequenceData lengthened; validation batches stay as they are."""

    def __init__(self, mixed: MixedLengths) -> None:
        self.mixed = mixed

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Give the data module the hook. Raises TypeError if the trainer has no SequenceData."""
        data: Any = trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        if not isinstance(data, SequenceData):
            raise TypeError(f"mixed lengths need a SequenceData as the trainer's datamodule, not {type(data).__name__}")

        def on_before_batch_transfer(batch: Batch, dataloader_idx: int) -> Batch:
            if not trainer.training:
                return batch
            step = trainer.global_step
            prefixes = self.mixed.prefixes(step, data.order.rows(step))
            share = prefixes[trainer.global_rank :: trainer.world_size].to(batch.ids.dtype)
            return batch._replace(ids=torch.cat((share, batch.ids), 1))

        data.on_before_batch_transfer = on_before_batch_transfer


def fit_mixed(
    *,
    task: TaskSpec,
    train: Sequences,
    validation: Sequences,
    mixed_lengths: MixedLengthsSpec,
    model: ModelSpec,
    training: TrainingSpec,
    seed: int,
    callbacks: Sequence[L.Callback] = (),
    **options: Any,
) -> FitResult:
    """`ops.training.fit.fit` with every batch lengthened; validation while training is at the task's own length.

    `options` are fit's. Raises ValueError on `training.compile` (each length would be compiled anew), on lengths and
    tasks that do not fit (`MixedLengths`), and what fit raises.
    """
    if training.compile:
        raise ValueError("training.compile compiles every length anew; set it to false with mixed_lengths")
    return fit(
        task_data=TrainingData(train.ids, train.labels, validation.ids, validation.labels, validation.hops),
        vocabulary_size=task_of(task).vocabulary_size,
        model=model,
        training=MixedTrainingSpec(**dict(training), mixed_lengths=mixed_lengths),
        seed=seed,
        callbacks=[*callbacks, LengthenBatches(MixedLengths(task, train, mixed_lengths, seed))],
        **options,
    )
