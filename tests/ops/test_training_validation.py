"""Validation while training leaves every submodule's mode as it was, whatever happens."""

import lightning as L
import pytest
import torch

from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import TrainingData
from ops.training.module import LastTokenTraining, initial_model
from ops.training.validation import ValidationAccuracy

VOCABULARY = 7
IDS = torch.randint(0, VOCABULARY, (30, 5), generator=torch.Generator().manual_seed(0))
HOPS = 1 + torch.arange(30) % 2


def validated(ids: torch.Tensor, frozen: bool):
    """A module in training, one part of it frozen on request, and the callback after a validation on `ids`."""
    module = LastTokenTraining(
        initial_model(ModelSpec(n_layers=2, width=16, dropout=0.5), VOCABULARY, seed=5), TrainingSpec(), seed=5
    )
    module.train()
    if frozen:
        module.model.blocks[0].eval()
    modes = [part.training for part in module.modules()]
    trainer = L.Trainer(accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False)
    callback = ValidationAccuracy(TrainingData(IDS, IDS[:, 0], ids, IDS[:, 0], HOPS), steps=1, every=1)
    try:
        callback.on_train_batch_end(trainer, module, None, None, 0)
    finally:
        assert [part.training for part in module.modules()] == modes
    return callback.latest


def test_a_frozen_part_stays_frozen_and_dropout_is_off():
    assert validated(IDS, frozen=True) == validated(IDS, frozen=True) == validated(IDS, frozen=False)


def test_modes_come_back_after_an_error():
    with pytest.raises(IndexError):
        validated(IDS.clone().fill_(VOCABULARY), frozen=False)
