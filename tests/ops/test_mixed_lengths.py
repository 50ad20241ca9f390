"""Batches of mixed lengths: valid, uniform, a function of seed and step, and learnt from; resumed bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import lightning as L
import numpy as np
import pytest
import torch

from ops.length.lengthening import solve_lengthened
from ops.length.mixed_lengths import MixedLengths, fit_mixed
from ops.model.checkpoint import load_checkpoint
from ops.spec.mixed_lengths import MixedLengthsSpec
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.task import task_of
from ops.training import fit as fit_module
from ops.training.data import BatchOrder, TrainingData
from ops.training.resume import OtherTraining

TASKS = {
    "number": NumberTaskSpec(),
    "letter": LetterTaskSpec(),
    "letter_matched": LetterMatchedTaskSpec(),
    "small number": NumberTaskSpec(target_window=4, pre_target_window=6, hops=(2, 3), n_letters=5),
    "small letter": LetterTaskSpec(target_window=3, pre_target_window=5, hops=(1, 4), n_letters=5, n_digits=3),
}
SMALL = NumberTaskSpec(target_window=3, pre_target_window=2, hops=(1,), n_letters=4)
RANGE = MixedLengthsSpec(shortest=6, longest=14)
TRAINING = TrainingSpec(steps=12, batch_size=8, learning_rate=3e-3, warmup_steps=2, checkpoint_every=4, log_every=3)


def arguments(workdir, **changes):
    return {
        "task": SMALL,
        "train": task_of(SMALL).generate(300, seed=1),
        "validation": task_of(SMALL).generate(60, seed=2),
        "mixed_lengths": RANGE,
        "model": ModelSpec(n_layers=1, width=16, dropout=0.1),
        "training": TRAINING,
        "seed": 3,
        "workdir": workdir,
        "report": lambda progress: None,
        "accelerator": "cpu",
    } | changes


def bytes_of(result):
    files = {
        f"{step}/{p.name}": p.read_bytes() for step, folder in result.checkpoints.items() for p in folder.iterdir()
    }
    return files, result.log.drop("steps_per_s").to_dicts()


@pytest.mark.parametrize("name", TASKS)
def test_the_oracle_solves_every_lengthened_row(name):
    task = TASKS[name]
    train = task_of(task).generate(400, seed=5)
    spec = MixedLengthsSpec(shortest=task.sequence_length, longest=task.sequence_length + 47)
    mixed, order = MixedLengths(task, train, spec, seed=4), BatchOrder(400, 64, seed=4)
    for step in range(40):
        rows = order.rows(step)
        prefixes = mixed.prefixes(step, rows)
        ids = torch.cat((prefixes, train.ids[rows]), 1)
        assert ids.shape == (64, mixed.length(step))
        assert ids.min() >= 1
        assert ids.max() < task_of(task).vocabulary_size
        solution = solve_lengthened(task, ids)
        assert torch.equal(solution.answer, train.labels[rows])
        chain = train.chain[rows]
        assert torch.equal(solution.chain, torch.where(chain < 0, -1, chain + prefixes.shape[1]))


def test_lengths_are_uniform_over_the_whole_range():
    mixed = MixedLengths(SMALL, task_of(SMALL).generate(16, seed=0), RANGE, seed=0)
    counts = np.bincount([mixed.length(step) for step in range(4_500)], minlength=15)
    assert counts[:6].sum() == 0
    assert np.abs(counts[6:] - 500).max() < 100  # 4.7 standard deviations


def test_tokens_are_uniform_and_rows_share_no_prefix():
    task = LetterTaskSpec()
    train = task_of(task).generate(4_000, seed=1)
    mixed = MixedLengths(task, train, MixedLengthsSpec(shortest=57, longest=57), seed=0)
    prefixes = mixed.prefixes(0, np.arange(4_000))
    assert len(prefixes.unique(dim=0)) == 4_000
    left, digit = lefts_and_rights(prefixes, task)
    for values in (left, digit):
        share = torch.bincount(values.flatten(), minlength=8) / values.numel()
        assert share.numpy() == pytest.approx(np.full(8, 1 / 8), abs=0.01)
    distinct = torch.zeros(4_000, 8, dtype=torch.bool).scatter_(1, left, True).sum(1)
    assert distinct.max() == 4  # whatever the hop class, so it tells nothing about it
    assert (distinct == 4).double().mean() > 0.99


def test_what_is_drawn_depends_on_seed_and_step_alone():
    task = LetterMatchedTaskSpec()
    train, spec, rows = task_of(task).generate(64, seed=1), MixedLengthsSpec(shortest=17, longest=64), np.arange(20)
    one, same, other = (MixedLengths(task, train, spec, seed) for seed in (7, 7, 8))
    drawn = [one.prefixes(step, rows) for step in range(30)]
    for step in reversed(range(30)):
        assert torch.equal(same.prefixes(step, rows), drawn[step])
        assert same.length(step) == drawn[step].shape[1] + 17
    lengths = [one.length(step) for step in range(30)]
    assert lengths != [other.length(step) for step in range(30)]
    assert len(set(lengths)) > 10


class Watch(L.Callback):
    """Keeps the batches that the model was trained on."""

    def __init__(self):
        self.batches = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.batches.append(batch)


def test_the_model_is_trained_on_exactly_the_lengthened_batches(tmp_path):
    watch = Watch()
    given = arguments(tmp_path, callbacks=[watch])
    fit_mixed(**given)
    mixed, order = MixedLengths(SMALL, given["train"], RANGE, seed=3), BatchOrder(300, 8, seed=3)
    assert len(watch.batches) == 12
    for step, batch in enumerate(watch.batches):
        rows = order.rows(step)
        assert torch.equal(batch.labels, given["train"].labels[rows])
        assert torch.equal(batch.ids, torch.cat((mixed.prefixes(step, rows), given["train"].ids[rows]), 1))
    assert len({batch.ids.shape[1] for batch in watch.batches}) > 3


class KillAt(L.Callback):
    """Kills its own process after a step, before anything of that step is written."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_training_resumes_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_module, "STATE_REST_S", 0.0)
    expected = bytes_of(fit_mixed(**arguments(tmp_path / "whole")))
    for step in (6, 9):
        killed = subprocess.run([sys.executable, __file__, str(tmp_path / "killed"), str(step)], check=False)
        assert killed.returncode == -signal.SIGKILL
    result = fit_mixed(**arguments(tmp_path / "killed"))
    assert result.summary["resumed_from_step"] == 8
    assert bytes_of(result) == expected


def test_a_folder_of_other_lengths_or_of_one_length_is_refused(tmp_path):
    fit_mixed(**arguments(tmp_path))
    with pytest.raises(OtherTraining):
        fit_mixed(**arguments(tmp_path, mixed_lengths=MixedLengthsSpec(shortest=6, longest=15)))
    given = arguments(tmp_path)
    train, validation = given["train"], given["validation"]
    data = TrainingData(train.ids, train.labels, validation.ids, validation.labels, validation.hops)
    with pytest.raises(OtherTraining):
        fit_module.fit(
            task_data=data,
            vocabulary_size=task_of(SMALL).vocabulary_size,
            model=given["model"],
            training=TRAINING,
            seed=3,
            workdir=tmp_path,
            report=given["report"],
            accelerator="cpu",
        )


def test_a_small_model_learns_at_every_length(tmp_path):
    training = TrainingSpec(steps=400, batch_size=32, learning_rate=5e-3, warmup_steps=20, checkpoint_every=None)
    model = ModelSpec(n_layers=2, width=32, dropout=0.0)
    train = task_of(SMALL).generate(4_000, seed=1)
    result = fit_mixed(**arguments(tmp_path, training=training, model=model, train=train))
    trained = load_checkpoint(result.checkpoints[400])
    test = task_of(SMALL).generate(300, seed=9)
    for length in (6, 10, 14):
        one = MixedLengths(SMALL, test, MixedLengthsSpec(shortest=length, longest=length), seed=1)
        ids = torch.cat((one.prefixes(0, np.arange(300)), test.ids), 1)
        right = trained.last_logits(ids).argmax(-1) == test.labels
        assert right.double().mean() > 0.9, length


def test_what_cannot_be_lengthened_is_refused(tmp_path):
    train = task_of(SMALL).generate(8, seed=0)
    with pytest.raises(ValueError, match="shortest is 5, but a sequence has 6"):
        MixedLengths(SMALL, train, MixedLengthsSpec(shortest=5, longest=9), seed=0)
    full = LetterMatchedTaskSpec(target_window=1, pre_target_window=3, hops=(4,))
    with pytest.raises(ValueError, match="may use all 4 letters"):
        MixedLengths(full, task_of(full).generate(8, seed=0), RANGE, seed=0)
    with pytest.raises(ValueError, match=r"training\.compile"):
        fit_mixed(**arguments(tmp_path, training=TRAINING.model_copy(update={"compile": True})))


if __name__ == "__main__":  # the process that is killed
    fit_module.STATE_REST_S = 0.0
    fit_mixed(**arguments(Path(sys.argv[1]), callbacks=[KillAt(int(sys.argv[2]))]))
