"""What the tasks give away: how often the answer is right without following the chain from the query to its end.

A shortcut spreads one guess over the target window; its accuracy is the expected one, ties broken at random. Shown
beside a model's accuracy it says how much of that at least can be had without hopping. Ours; no paper reports it.
"""

import polars as pl
import torch
from torch import Tensor

from ops.spec.task import TaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of

MAX_CELLS = 1 << 15  # of the n × position × position matrices held at a time: fits a cache, too small to thread


def shortcut_accuracy(task: TaskSpec, sequences: Sequences) -> pl.DataFrame:
    """Columns shortcut, hop (null: all hops), accuracy (a share), n (sequences): the rows of `shortcut_accuracy`.

    The task's `shortcuts.meanings` say what each one does.
    """
    shortcuts, size = task_of(task).shortcuts, max(1, MAX_CELLS // task.sequence_length**2)
    parts: dict[str, list[Tensor]] = {}
    for ids, labels in zip(sequences.ids.split(size), sequences.labels.split(size), strict=True):
        right = ids[:, : task.target_window] == labels[:, None]
        for name, guess in shortcuts.guesses(ids).items():
            parts.setdefault(name, []).append((guess * right).sum(1))
    rows = []
    for name, chunks in parts.items():
        hit = torch.cat(chunks)
        for hop in (None, *sequences.hops.unique().tolist()):
            chosen = hit if hop is None else hit[sequences.hops == hop]
            rows.append((name, hop, chosen.mean().item(), len(chosen)))
    schema = {"shortcut": pl.String, "hop": pl.Int64, "accuracy": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def best_shortcut(frame: pl.DataFrame) -> tuple[str, float]:
    """Name and accuracy of the best shortcut over all hops, from `shortcut_accuracy`'s frame."""
    overall = frame.filter(pl.col("hop").is_null()).sort("accuracy", "shortcut", descending=[True, False])
    return overall["shortcut"][0], overall["accuracy"][0]
