"""Train, validation and test sequences of one task from independent random streams, and what can be said of them."""

import hashlib
import itertools
import json
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
Dataset = dict[Split, Sequences]


def split_seed(name: str, seed: int, split: Split) -> np.random.SeedSequence:
    """The root of one split's random stream: a function of (name, seed, split) alone, on any machine.

    `name` is the experiment's, unless the experiment shares the data of others (`ExperimentSpec.seeds_data`).
    """
    text = json.dumps([name, seed, split]).encode()
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text).digest(), "big"))


def make_dataset(task: TaskSpec, name: str, seed: int) -> Dataset:
    """The three splits, each of the size that the task declares, balanced and shuffled on its own; see `split_seed`."""
    generate = task_of(task).generate
    sizes = {"train": task.n_train, "validation": task.n_validation, "test": task.n_test}
    return {split: generate(sizes[split], seed=split_seed(name, seed, split)) for split in SPLITS}


def cell_counts(task: TaskSpec, sequences: Sequences) -> Int[Tensor, "hop_class target label"]:
    """Sequences in each cell hop class (as in `task.hops`) × target position × label, over the task's answers."""
    answers = task_of(task).answers
    shape = (len(task.hops), task.target_window, len(answers))
    hop_class = torch.searchsorted(torch.tensor(task.hops), sequences.hops)
    target = sequences.chain.gather(1, sequences.hops[:, None])[:, 0]
    cell = (hop_class * shape[1] + target) * shape[2] + sequences.labels - answers.start
    return torch.bincount(cell, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)


def balance(task: TaskSpec, sequences: Sequences) -> dict[str, int]:
    """{cells, least, most}: how many cells `cell_counts` has, and how many sequences its poorest and richest hold."""
    counts = cell_counts(task, sequences)
    return {"cells": counts.numel(), "least": int(counts.min()), "most": int(counts.max())}


def split_overlap(dataset: Dataset) -> dict[str, int]:
    """Sequences (by their ids, exactly) that are not new.

    `a_in_b`: rows of split a that also occur in split b, for validation and test in earlier splits;
    `repeats_in_a`: rows of split a that equal an earlier row of a.
    """
    rows = {split: _row_keys(dataset[split].ids) for split in SPLITS}
    distinct = {split: set(keys) for split, keys in rows.items()}
    found = {f"repeats_in_{split}": len(rows[split]) - len(distinct[split]) for split in SPLITS}
    for earlier, later in itertools.combinations(SPLITS, 2):
        found[f"{later}_in_{earlier}"] = sum(key in distinct[earlier] for key in rows[later])
    return found


def _row_keys(ids: Int[Tensor, "n position"]) -> list[bytes]:
    """Each row as bytes."""
    raw, width = ids.to(torch.int32).numpy().tobytes(), 4 * ids.shape[1]
    return [raw[start : start + width] for start in range(0, len(raw), width)]


def stratified_sample(sequences: Sequences, n: int) -> Sequences:
    """The first n / (number of hop classes) sequences of each hop class, in their order; shares are equal (±1).

    Raises ValueError if n < 1 or a hop class has too few.
    """
    classes = sequences.hops.unique().tolist()
    if n < 1:
        raise ValueError(f"n is {n}; ask for at least 1 sequence")
    chosen = []
    for i, hops in enumerate(classes):
        share = n // len(classes) + (i < n % len(classes))
        rows = (sequences.hops == hops).nonzero()[:, 0]
        if len(rows) < share:
            raise ValueError(f"a sample of {n} needs {share} sequences of {hops} hops; there are {len(rows)}")
        chosen.append(rows[:share])
    rows = torch.cat(chosen).sort().values
    return Sequences(*(column[rows] for column in sequences))
