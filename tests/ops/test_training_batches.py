"""Batches, streams and learning rates are functions of the seed and the step."""

import math

import numpy as np
import pytest
import torch

from ops.spec.training import TrainingSpec
from ops.training.data import BatchOrder, SequenceData, TrainingData
from ops.training.schedule import learning_rate
from ops.training.streams import stream_seed


def test_every_row_is_seen_once_before_any_is_seen_twice():
    order = BatchOrder(n=10, batch_size=4, seed=3)
    rows = np.concatenate([order.rows(step) for step in range(5)])
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert list(rows[:10]) != list(rows[10:])


def test_a_batch_does_not_depend_on_the_batches_read_before():
    forwards, backwards = BatchOrder(10, 4, seed=3), BatchOrder(10, 4, seed=3)
    expected = [forwards.rows(step).tolist() for step in range(40)]
    assert [backwards.rows(step).tolist() for step in reversed(range(40))] == expected[::-1]
    assert BatchOrder(10, 4, seed=4).rows(0).tolist() != expected[0]


def test_a_batch_larger_than_the_split_wraps_around():
    rows = BatchOrder(n=3, batch_size=8, seed=0).rows(1)
    assert len(rows) == 8
    assert sorted(rows[1:4]) == [0, 1, 2]  # rows 9, 10, 11 of the endless row: one epoch


def test_an_empty_split_is_refused():
    with pytest.raises(ValueError, match="training split is empty"):
        BatchOrder(0, 4, seed=0)


def test_streams_are_apart_and_a_negative_seed_is_refused():
    seeds = [stream_seed(seed, stream, k) for seed in (0, 1) for stream in ("order", "dropout") for k in (0, 1)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    with pytest.raises(ValueError, match="negative"):
        stream_seed(-1, "weights")


def test_the_data_module_gathers_the_rows_of_each_step_and_ends():
    ids = torch.arange(20).reshape(10, 2)
    data = TrainingData(ids, ids[:, 0], ids[:7], ids[:7, 0], torch.ones(7, dtype=torch.int64))
    module = SequenceData(data, batch_size=4, steps=6, seed=3)
    batches = list(module.train_dataloader())
    assert len(batches) == 6
    for step, batch in enumerate(batches):
        rows = BatchOrder(10, 4, seed=3).rows(step)
        assert batch.ids.equal(ids[rows])
        assert batch.labels.equal(ids[rows, 0])
    assert [len(batch.labels) for batch in module.val_dataloader()] == [4, 3]


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_warm_up_rises_evenly_to_the_peak_and_no_update_is_wasted(schedule):
    spec = TrainingSpec(steps=100, warmup_steps=10, learning_rate=0.5, schedule=schedule)
    rates = [learning_rate(spec, step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.05 * (k + 1) for k in range(10)])
    assert rates[10] == pytest.approx(0.5)
    assert min(rates) > 0
    assert rates[9:] == sorted(rates[9:], reverse=True)
    halfway = {"linear": 0.25, "cosine": 0.25, "constant": 0.5}[schedule]
    assert rates[55] == pytest.approx(halfway)
    last = {"linear": 0.5 / 90, "cosine": 0.25 * (1 - math.cos(math.pi / 90)), "constant": 0.5}[schedule]
    assert rates[99] == pytest.approx(last)


def test_warm_up_over_the_whole_training_or_none():
    assert learning_rate(TrainingSpec(steps=10, checkpoint_every=None, warmup_steps=10, learning_rate=1.0), 9) == 1.0
    assert learning_rate(TrainingSpec(steps=10, checkpoint_every=None, warmup_steps=0, learning_rate=1.0), 0) == 1.0
