"""What the tasks give away: how often the answer is right without following the chain from the query to its end.

A shortcut spreads one guess over the target window; its accuracy is the expected one, ties broken at random. Shown
beside a model's accuracy it says how much of that need not come from multi-hop reasoning. Ours; no paper reports it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import polars as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.spec.task import NumberTaskSpec, TaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.sequences import Sequences

MAX_CELLS = 1 << 15  # of the n × position × position matrices held at a time: fits a cache, too small to thread


class _View(NamedTuple):
    """What the shortcuts look at. `source` runs over the pre-target positions and, last, the query."""

    ids: Int[Tensor, "n position"]
    target_window: int
    points_at: Bool[Tensor, "n source position"]
    same_left: Bool[Tensor, "n position position"] | None  # pairs only
    held_right: Bool[Tensor, "n source position"] | None  # pairs only: the source's right is the position's left


Guess = Callable[[_View], Float[Tensor, "n target"]]


def shortcut_accuracy(task: TaskSpec, sequences: Sequences) -> pl.DataFrame:
    """Columns shortcut, hop (null: all hops), accuracy (a share), n (sequences): the rows of `shortcut_accuracy`.

    `SHORTCUTS` says what each one does.
    """
    parts: dict[str, list[Tensor]] = {}
    for view, labels in _views(task, sequences):
        right = view.ids[:, : task.target_window] == labels[:, None]
        for name, (guess, _) in _shortcuts(task).items():
            parts.setdefault(name, []).append((guess(view) * right).sum(1))
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


def _views(task: TaskSpec, sequences: Sequences) -> Iterator[tuple[_View, Tensor]]:
    window = task.target_window
    positions = torch.arange(task.sequence_length)
    size = max(1, MAX_CELLS // task.sequence_length**2)
    for ids, labels in zip(sequences.ids.split(size), sequences.labels.split(size), strict=True):
        if isinstance(task, NumberTaskSpec):
            points_at = (positions - ids)[:, window:, None] == positions
            yield _View(ids, window, points_at, None, None), labels
        else:
            left, right = lefts_and_rights(ids, task)
            held_right = right[:, window:, None] == left[:, None, :]
            points_at = held_right & (positions < positions[window:, None])
            yield _View(ids, window, points_at, left[:, :, None] == left[:, None, :], held_right), labels


def _share(weight: Tensor, otherwise: Tensor | None = None) -> Float[Tensor, "*rows target"]:
    """Weights made to sum to 1 a row; a row of zeros becomes `otherwise` (default: uniform)."""
    weight = weight.double()
    total = weight.sum(-1, keepdim=True)
    if otherwise is None:
        otherwise = torch.full_like(weight, 1 / weight.shape[-1])
    return torch.where(total > 0, weight / total.clamp(min=1e-300), otherwise)


def _any_target(view: _View) -> Tensor:
    return _share(torch.zeros_like(view.ids[:, : view.target_window]))


def _most_repeated_token(view: _View) -> Tensor:
    target = view.ids[:, : view.target_window]
    repeats = (target[:, :, None] == target[:, None, :]).sum(2)
    return _share(repeats == repeats.amax(1, keepdim=True))


def _query_alone(view: _View) -> Tensor:
    return _share(view.points_at[:, -1, : view.target_window])


def _most_pointed_at(view: _View) -> Tensor:
    in_degree = view.points_at[:, :, : view.target_window].sum(1)
    return _share(in_degree == in_degree.amax(1, keepdim=True))


def _through_a_source(view: _View, allowed: Tensor | None = None) -> Tensor:
    """Draws one of the (allowed) sources that point into the target window, then a target that it points at."""
    aims = view.points_at[:, :, : view.target_window].double()
    each = aims / aims.sum(2, keepdim=True).clamp(min=1)
    everywhere = _share(each.sum(1))
    return everywhere if allowed is None else _share((each * allowed[..., None]).sum(1), everywhere)


def _reached(view: _View) -> Bool[Tensor, "n source"]:
    """Sources that a later one points at, and the query."""
    reached = view.points_at[:, :, view.target_window :].any(1)
    reached[:, -1] = True
    return reached


def _reached_pointer(view: _View) -> Tensor:
    return _through_a_source(view, _reached(view))


def _query_or_reached_pointer(view: _View) -> Tensor:
    return _share(view.points_at[:, -1, : view.target_window], _reached_pointer(view))


def _first_hop_or_reached_pointer(view: _View) -> Tensor:
    from_query = view.points_at[:, -1]
    latest = (from_query * torch.arange(from_query.shape[1])).amax(1) - view.target_window
    not_after = torch.arange(view.points_at.shape[1]) <= latest[:, None]
    return _share(from_query[:, : view.target_window], _through_a_source(view, _reached(view) & not_after))


def _counts(view: _View) -> tuple[Int[Tensor, "n position"], Int[Tensor, "n position"]]:
    """How many lefts, and how many rights of sources, are each position's left letter."""
    assert view.same_left is not None
    assert view.held_right is not None
    return view.same_left.sum(2), view.held_right.sum(1)


def _rarest_letter(view: _View) -> Tensor:
    lefts, rights = _counts(view)
    occurrences = (lefts + rights)[:, : view.target_window]
    return _share(occurrences == occurrences.amin(1, keepdim=True))


def _lone_letter(view: _View) -> Tensor:
    lefts, rights = _counts(view)
    return _share(((lefts == 1) & (rights == 1))[:, : view.target_window])


def _lone_letter_twice(view: _View) -> Tensor:
    assert view.held_right is not None
    lefts, rights = _counts(view)
    lone = (lefts == 1) & (rights == 1)
    holder = lone[:, view.target_window :].clone()
    holder[:, -1] = True
    held = (view.held_right & holder[..., None]).any(1)
    return _share((lone & held)[:, : view.target_window], _lone_letter(view))


_FOR_ALL: dict[str, tuple[Guess, str]] = {
    "any_target": (_any_target, "a uniformly chosen target position"),
    "most_repeated_token": (_most_repeated_token, "the token most frequent in the target window"),
    "query_alone": (_query_alone, "where the query points if that is a target position, else any target position"),
    "any_pointer": (_through_a_source, "the target of a uniformly chosen token that points into the target window"),
    "most_pointed_at": (_most_pointed_at, "the target position that most tokens point at"),
    "reached_pointer": (
        _reached_pointer,
        "the target of a token that points into the target window and is itself pointed at, or is the query",
    ),
    "query_or_reached_pointer": (_query_or_reached_pointer, "query_alone where it applies, else reached_pointer"),
    "first_hop_or_reached_pointer": (
        _first_hop_or_reached_pointer,
        "as query_or_reached_pointer, among tokens no later than the one the query points at",
    ),
}
_FOR_PAIRS: dict[str, tuple[Guess, str]] = {
    "rarest_letter": (_rarest_letter, "the target pair whose left letter occurs least as a letter"),
    "lone_letter": (
        _lone_letter,
        "the target pair whose left letter occurs once among all lefts and once among pre-target and query rights",
    ),
    "lone_letter_twice": (
        _lone_letter_twice,
        "as lone_letter, and the pair with that right is the query or has a lone left letter too",
    ),
}
SHORTCUTS: dict[str, str] = {name: meaning for name, (_, meaning) in (_FOR_ALL | _FOR_PAIRS).items()}


def _shortcuts(task: TaskSpec) -> dict[str, tuple[Guess, str]]:
    return _FOR_ALL if isinstance(task, NumberTaskSpec) else _FOR_ALL | _FOR_PAIRS
