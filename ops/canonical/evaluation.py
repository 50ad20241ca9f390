"""What trained one-head models do: accuracy by answer position, scores, queries and keys in their RoPE planes."""

import math
from collections.abc import Sequence

import polars as pl
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ops.canonical.model import Heads, answer_logits, key_table, look_up, query_table
from ops.canonical.tasks import Questions, bound, n_answers
from ops.model.rope import frequencies, rotate
from ops.scores.closed_form import swap_scores
from ops.spec.canonical import CanonicalTaskSpec

_QUESTIONS_PER_CHUNK = 512
_PLANE = {
    "plane": pl.Int64,
    "frequency_id": pl.Int64,
    "theta": pl.Float64,
    "source": pl.String,
    "role": pl.String,
    "item_id": pl.Int64,
    "token": pl.String,
    "x": pl.Float64,
    "y": pl.Float64,
}


def angles(ids: Sequence[int], n_frequencies: int, base: float) -> Float[Tensor, "plane"]:
    """Radians per position of frequency IDs from 1; ID 0 is a plane that stands still."""
    table = torch.cat([torch.zeros(1, dtype=torch.float64), frequencies(n_frequencies, base)])
    return table[list(ids)]


def right_answers(heads: Heads, theta: Float[Tensor, "model plane"], questions: Questions) -> Bool[Tensor, "model n"]:
    """Whether each model's largest logit is the answer."""
    parts = []
    with torch.inference_mode():
        for ids, answers in zip(
            questions.ids.split(_QUESTIONS_PER_CHUNK), questions.answers.split(_QUESTIONS_PER_CHUNK), strict=True
        ):
            logits = answer_logits(heads, theta, ids.expand(len(theta), -1, -1))
            parts.append(logits.argmax(-1) == answers)
    return torch.cat(parts, 1)


def score_models(
    heads: Heads, theta: Float[Tensor, "model plane"], questions: Questions, tau: float
) -> Float[Tensor, "model 2"]:
    """Positional [:, 0] and symbolic [:, 1] score of each model's head at the last token, means over questions.

    In float64. Source: arXiv 2511.11579 §3.
    """
    heads = Heads(*(part.double() for part in heads))
    ids, n = questions.ids, questions.ids.shape[1] - 1
    scale = (2 * theta.shape[1]) ** -0.5
    queries, keys = query_table(heads), key_table(heads)
    scores = []
    for model in range(len(theta)):
        query = look_up(queries[model : model + 1], ids[None, :, -1])[0] * scale  # (B, dim)
        key = look_up(keys[model : model + 1], ids[None])[0]  # (B, T, dim)
        # Turning the key to position p and the query to n is turning the query back by n - p.
        turned = rotate(query[:, None].expand(-1, n, -1), n - torch.arange(n), theta[model])  # (B, position, dim)
        logits = turned @ key[:, :-1].mT  # (B, position, content)
        own = (query * key[:, -1]).sum(-1)
        scores.append(swap_scores(logits, own, (tau,)).scores[:, 0].mean(0))
    return torch.stack(scores)


def accuracy_rows(
    task: CanonicalTaskSpec,
    sets: Sequence[tuple[int, ...]],
    theta: Float[Tensor, "model plane"],
    questions: Questions,
    right: Bool[Tensor, "model n"],
    scores: Float[Tensor, "model 2"],
) -> pl.DataFrame:
    """Rows of the table `canonical_accuracy`: a model over all answer positions (null, with scores) and at each."""
    counts = torch.bincount(questions.positions, minlength=task.length)
    rows = []
    for model, ids in enumerate(sets):
        base = {
            "canonical_task": task.name,
            "length": task.length,
            "frequency_ids": list(ids),
            "thetas": theta[model].tolist(),
            "chance": 1 / n_answers(task),
        }
        hits = torch.bincount(questions.positions, weights=right[model].double(), minlength=task.length)
        rows.append(
            base
            | {
                "answer_position": None,
                "accuracy": right[model].double().mean().item(),
                "positional_score": scores[model, 0].item(),
                "symbolic_score": scores[model, 1].item(),
                "n": right.shape[1],
            }
        )
        rows += [
            base | {"answer_position": p, "accuracy": hit / n, "positional_score": None, "symbolic_score": None, "n": n}
            for p, (hit, n) in enumerate(zip(hits.tolist(), counts.tolist(), strict=True))
        ]
    return pl.DataFrame(rows, infer_schema_length=None)


def plane_rows(
    task: CanonicalTaskSpec, ids: tuple[int, ...], heads: Heads, model: int, theta: Float[Tensor, "plane"]
) -> pl.DataFrame:
    """Rows of the table `canonical_plane`: one trained model's queries and keys in each plane, before RoPE.

    Only relative angles matter, so the plane is turned until the mean key of item 0 lies at angle 0 (Index: of all
    keys, since it has no item), and each role is scaled to a largest norm of 1. Index's queries are turned by
    `length` · theta, to where RoPE takes them. `item_id` is the integer asked for or the entity. With source
    "construction": where arXiv 2605.31558 Thm 3.1 puts them (queries at item · theta, resp. items evenly around the
    circle), in the plane that the task needs.
    """
    own = bound(task)
    names, owners, by_position = own.vocabulary, own.key_items, own.asks_for_position
    n_keys, n_items = len(owners), len(names) - len(owners)
    rows = []
    for plane, frequency_id in enumerate(ids):
        what = (plane + 1, frequency_id, theta[plane].item())
        pair = slice(2 * plane, 2 * plane + 2)
        keys = torch.view_as_complex(key_table(heads)[model, :n_keys, pair].double().contiguous())
        queries = torch.view_as_complex(query_table(heads)[model, n_keys:, pair].double().contiguous())
        turned_by = task.length * theta[plane] if by_position else torch.zeros(())
        first = keys[[owner in (0, None) for owner in owners]].mean()
        back = torch.polar(torch.ones((), dtype=torch.float64), -first.angle())
        for role, points in (("key", keys * back), ("query", queries * back * torch.exp(1j * turned_by))):
            scaled = points / points.abs().max().clamp_min(1e-300)
            for i, point in enumerate(scaled.tolist()):
                item = i if role == "query" else owners[i]
                token = names[i if role == "key" else n_keys + i]
                rows.append((*what, "trained", role, item, token, point.real, point.imag))
        for item in range(n_items):
            angle = item * theta[plane].item() if by_position else 2 * math.pi * item / n_items
            token = names[n_keys + item]
            rows.append((*what, "construction", "query", item, token, math.cos(angle), math.sin(angle)))
            if not by_position:
                rows.append((*what, "construction", "key", item, token, math.cos(angle), math.sin(angle)))
        if by_position:
            rows.append((*what, "construction", "key", None, "every symbol", 1.0, 0.0))
    frame = pl.DataFrame(rows, schema=_PLANE, orient="row")
    return frame.with_columns(
        canonical_task=pl.lit(task.name), length=pl.lit(task.length), frequency_ids=pl.lit(list(ids))
    )


def no_planes() -> pl.DataFrame:
    """`plane_rows` without rows."""
    more = {"canonical_task": pl.String, "length": pl.Int32, "frequency_ids": pl.List(pl.Int64)}
    return pl.DataFrame(schema=_PLANE | more)
