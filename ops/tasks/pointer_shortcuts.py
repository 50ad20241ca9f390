"""Shortcuts that look at what points where, and at nothing else: the same for every task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Pointed:
    """What the shortcuts look at. `source` runs over the pre-target positions and, last, the query."""

    ids: Int[Tensor, "n position"]
    target_window: int
    points_at: Bool[Tensor, "n source position"]


class Rule(NamedTuple):
    """A guess, weights over the target window that sum to 1, and what it does in words."""

    guess: Callable[[Any], Float[Tensor, "n target"]]
    meaning: str


def share(weight: Tensor, otherwise: Tensor | None = None) -> Float[Tensor, "*rows target"]:
    """Weights made to sum to 1 a row; a row of zeros becomes `otherwise` (default: uniform)."""
    weight = weight.double()
    total = weight.sum(-1, keepdim=True)
    if otherwise is None:
        otherwise = torch.full_like(weight, 1 / weight.shape[-1])
    return torch.where(total > 0, weight / total.clamp(min=1e-300), otherwise)


def _any_target(view: Pointed) -> Tensor:
    return share(torch.zeros_like(view.ids[:, : view.target_window]))


def _most_repeated_token(view: Pointed) -> Tensor:
    target = view.ids[:, : view.target_window]
    repeats = (target[:, :, None] == target[:, None, :]).sum(2)
    return share(repeats == repeats.amax(1, keepdim=True))


def _query_alone(view: Pointed) -> Tensor:
    return share(view.points_at[:, -1, : view.target_window])


def _most_pointed_at(view: Pointed) -> Tensor:
    in_degree = view.points_at[:, :, : view.target_window].sum(1)
    return share(in_degree == in_degree.amax(1, keepdim=True))


def _through_a_source(view: Pointed, allowed: Tensor | None = None) -> Tensor:
    """Draws one of the (allowed) sources that point into the target window, then a target that it points at."""
    aims = view.points_at[:, :, : view.target_window].double()
    each = aims / aims.sum(2, keepdim=True).clamp(min=1)
    everywhere = share(each.sum(1))
    return everywhere if allowed is None else share((each * allowed[..., None]).sum(1), everywhere)


def _reached(view: Pointed) -> Bool[Tensor, "n source"]:
    """Sources that a later one points at, and the query."""
    reached = view.points_at[:, :, view.target_window :].any(1)
    reached[:, -1] = True
    return reached


def _reached_pointer(view: Pointed) -> Tensor:
    return _through_a_source(view, _reached(view))


def _query_or_reached_pointer(view: Pointed) -> Tensor:
    return share(view.points_at[:, -1, : view.target_window], _reached_pointer(view))


def _first_hop_or_reached_pointer(view: Pointed) -> Tensor:
    from_query = view.points_at[:, -1]
    latest = (from_query * torch.arange(from_query.shape[1])).amax(1) - view.target_window
    not_after = torch.arange(view.points_at.shape[1]) <= latest[:, None]
    return share(from_query[:, : view.target_window], _through_a_source(view, _reached(view) & not_after))


POINTER_RULES: dict[str, Rule] = {
    "any_target": Rule(_any_target, "a uniformly chosen target position"),
    "most_repeated_token": Rule(_most_repeated_token, "the token most frequent in the target window"),
    "query_alone": Rule(_query_alone, "where the query points if that is a target position, else any target position"),
    "any_pointer": Rule(_through_a_source, "the target of a uniformly chosen token that points into the target window"),
    "most_pointed_at": Rule(_most_pointed_at, "the target position that most tokens point at"),
    "reached_pointer": Rule(
        _reached_pointer,
        "the target of a token that points into the target window and is itself pointed at, or is the query",
    ),
    "query_or_reached_pointer": Rule(_query_or_reached_pointer, "query_alone where it applies, else reached_pointer"),
    "first_hop_or_reached_pointer": Rule(
        _first_hop_or_reached_pointer,
        "as query_or_reached_pointer, among tokens no later than the one the query points at",
    ),
}
