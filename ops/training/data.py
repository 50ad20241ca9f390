"""Batches gathered from tensors in memory; the batch of a step is a pure function of the seed and the step."""

from collections.abc import Iterator
from typing import NamedTuple

import lightning as L
import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.training.streams import stream_seed


class TrainingData(NamedTuple):
    """Token ids and labels of the two splits that training reads; `validation_hops` is the class of each row."""

    train_ids: Int[Tensor, "n position"]
    train_labels: Int[Tensor, " n"]
    validation_ids: Int[Tensor, "m position"]
    validation_labels: Int[Tensor, " m"]
    validation_hops: Int[Tensor, " m"]


class Batch(NamedTuple):
    """One batch: token ids, and the label that follows each row's last token."""

    ids: Int[Tensor, "batch position"]
    labels: Int[Tensor, " batch"]


class BatchOrder:
    """Which rows form the batch of each step: one random permutation an epoch, read without gaps.

    Step s takes rows s·batch_size … (s+1)·batch_size − 1 of the endless row of permutations, so every row is seen
    once before any is seen twice, also where the batch size does not divide `n`.
    """

    def __init__(self, n: int, batch_size: int, seed: int) -> None:
        if n < 1:
            raise ValueError("the training split is empty; give it at least one sequence")
        self.n, self.batch_size, self.seed = n, batch_size, seed
        self._permutations: dict[int, np.ndarray] = {}

    def _permutation(self, epoch: int) -> np.ndarray:
        if epoch not in self._permutations:
            if len(self._permutations) > 1:
                self._permutations.clear()
            generator = np.random.default_rng(stream_seed(self.seed, "order", epoch))
            self._permutations[epoch] = generator.permutation(self.n)
        return self._permutations[epoch]

    def rows(self, step: int) -> np.ndarray:
        """Row numbers of the batch of `step` (0-based), int64, length batch_size."""
        begin, end = step * self.batch_size, (step + 1) * self.batch_size
        parts = []
        while begin < end:
            epoch, offset = divmod(begin, self.n)
            part = self._permutation(epoch)[offset : offset + end - begin]
            parts.append(part)
            begin += len(part)
        return np.concatenate(parts)


class _StepBatches:
    """The batches of steps first … last − 1, this rank's share of each."""

    def __init__(self, data: "SequenceData") -> None:
        self._data = data

    def __iter__(self) -> Iterator[Batch]:
        data, trainer = self._data, self._data.trainer
        first, rank, world = (trainer.global_step, trainer.global_rank, trainer.world_size) if trainer else (0, 0, 1)
        if data.order.batch_size % world:
            raise ValueError(
                f"batch_size {data.order.batch_size} cannot be shared equally by {world} devices; use a multiple"
            )
        for step in range(first, data.steps):
            rows = torch.from_numpy(data.order.rows(step)[rank::world])
            yield Batch(data.data.train_ids[rows], data.data.train_labels[rows])


class _InOrder:
    """A split from its first row to its last, in batches."""

    def __init__(self, ids: Tensor, labels: Tensor, size: int) -> None:
        self._pairs = list(zip(ids.split(size), labels.split(size), strict=True))

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[Batch]:
        return (Batch(ids, labels) for ids, labels in self._pairs)


class SequenceData(L.LightningDataModule):
    """Training batches from the trainer's current step on, and validation in batches; no workers, no copies."""

    def __init__(self, data: TrainingData, batch_size: int, steps: int, seed: int) -> None:
        super().__init__()
        self.data, self.steps = data, steps
        self.order = BatchOrder(len(data.train_ids), batch_size, seed)

    def train_dataloader(self) -> _StepBatches:
        """Batches of (ids, labels); the batch of step s depends on (seed, s) alone."""
        return _StepBatches(self)

    def val_dataloader(self) -> _InOrder:
        """The validation split in order, in batches of at most the training batch size."""
        return _InOrder(self.data.validation_ids, self.data.validation_labels, self.order.batch_size)
