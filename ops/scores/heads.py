"""Scores of every head of a GPT-J from one forward pass.

A plane's share of the logit of content s at position p, for the query at n, is Re(q·k̄ e^{iθ(n − p)}) with q and k
the plane's query and key of content s, read as complex numbers before RoPE. So conj(q)·k of every content, times one
table of cosines and sines of θ(n − p), is the whole position × content matrix: one matrix product for all inputs whose
query stands at n.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ
from ops.model.rope import RotaryTable
from ops.scores.closed_form import SwapScores, check_taus, score_groups

Queries = Literal["last"] | Int[Tensor, "input"] | Int[Tensor, "input query"]

_HIDDEN_PER_PASS = 17 * 2**13  # numbers in a layer's hidden state: 64 inputs of the paper's model, which caches hold
_PASSES_AT_ONCE = 4  # forward passes that go layer by layer together, and whose heads are scored together
_KEYS_PER_BLOCK = 2**20  # numbers in the keys scored at once: 8 MB in float64


class HeadDetails(NamedTuple):
    """float64, NaN at padding; the query axis is absent where the queries had none."""

    scores: Float[Tensor, "input *query tau layer head 2"]  # positional, symbolic
    entropy: Float[Tensor, "input *query layer head"]  # nats, of the true attention row
    own_mass: Float[Tensor, "input *query layer head"]  # attention of the query on itself
    negligible_mass: Float[Tensor, "input *query tau layer head"]  # α on swaps with a norm below 1e-8


def score_heads(
    model: GPTJ,
    ids: Int[Tensor, "input position"],
    queries: Queries = "last",
    taus: Sequence[float] = (1e-4, 1e-2),
    eps: float = 0.0,
    rotary: RotaryTable | None = None,
) -> Float[Tensor, "input *query tau layer head 2"]:
    """Positional [..., 0] and symbolic [..., 1] score of every head on every input.

    `queries`: "last", one position an input, or several, padded with -1 (their scores are NaN); a query needs two
    keys before it, so positions count from 2. `taus`, `eps`: see `closed_form.swap_scores`. `rotary`: another table
    of angles than the model's. The forward pass runs in the model's precision, all that follows in float64.
    Source: arXiv 2511.11579 §3, 2605.31558 App. D.
    Raises ValueError on wrong ids, a wrong query, τ or eps, or non-finite logits.
    """
    return head_details(model, ids, queries, taus, eps, rotary).scores


def head_details(
    model: GPTJ,
    ids: Int[Tensor, "input position"],
    queries: Queries = "last",
    taus: Sequence[float] = (1e-4, 1e-2),
    eps: float = 0.0,
    rotary: RotaryTable | None = None,
) -> HeadDetails:
    """As `score_heads`, with entropy, own mass and negligible mass beside the scores."""
    if not isinstance(taus, Sequence):
        raise ValueError(f"taus must be a list of one or more positive numbers, not {taus!r}")
    check_taus(taus)
    table = _query_table(ids, queries)
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < model.vocabulary_size:
        raise ValueError(
            f"ids go from {int(ids.min())} to {int(ids.max())}; the model's vocabulary has {model.vocabulary_size}"
        )
    device = model.lm_head.weight.device
    angles = model.rotary if rotary is None else rotary
    n_layers, n_heads, _ = angles.shape
    shape = (*table.shape, n_layers, n_heads)
    new = {"dtype": torch.float64, "device": device}
    scores = torch.full((*shape, len(taus), 2), torch.nan, **new)
    entropy, own_mass = torch.full(shape, torch.nan, **new), torch.full(shape, torch.nan, **new)
    negligible = torch.full((*shape, len(taus)), torch.nan, **new)

    alone = inputs_per_chunk(model, ids.shape[1], _HIDDEN_PER_PASS)
    chunk = alone * _PASSES_AT_ONCE
    with evaluating(model):
        for start in range(0, len(ids), chunk):
            wanted = table[start : start + chunk].to(device)
            places: list[tuple[int, Tensor, Tensor]] = []
            for n in wanted.unique().tolist():
                if n >= 0:
                    rows, columns = torch.nonzero(wanted == n, as_tuple=True)
                    places.append((n, rows, columns))
            passes = [model.layers(part.to(device), rotary) for part in ids[start : start + chunk].split(alone)]
            for states in zip(*passes, strict=True):
                layer, query, key = (
                    states[0].layer,
                    _joined([s.query for s in states]),
                    _joined([s.key for s in states]),
                )
                for rows, columns, part in _score_layer(layer, query, key, angles, places, taus, eps):
                    at = (start + rows, columns, layer)
                    scores[at] = part.scores.transpose(0, 1)
                    entropy[at] = part.entropy.T
                    own_mass[at] = part.own_mass.T
                    negligible[at] = part.negligible_mass.transpose(0, 1)
    details = HeadDetails(scores.movedim((-2, -1), (2, 5)), entropy, own_mass, negligible.movedim(-1, 2))
    if not isinstance(queries, str) and queries.ndim == 2:
        return details
    return HeadDetails(*(part[:, 0] for part in details))


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _query_table(ids: Tensor, queries: Queries) -> Int[Tensor, "input query"]:
    """The queries as input × query on the CPU, checked."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids must be a tensor of integers, input × position, not {type(ids).__name__}")
    if ids.ndim != 2 or ids.is_floating_point():
        raise ValueError(f"ids must be integers, input × position, not {ids.dtype} of shape {tuple(ids.shape)}")
    length = ids.shape[1]
    if isinstance(queries, str):
        if queries != "last":
            raise ValueError(f'queries must be "last" or positions, not {queries!r}')
        queries = torch.full((len(ids),), length - 1)
    if not isinstance(queries, Tensor):
        raise ValueError(f'queries must be "last" or a tensor of positions, not {queries!r}')
    if queries.is_floating_point() or queries.ndim not in (1, 2) or len(queries) != len(ids):
        raise ValueError(
            f"queries must be integers, one row an input ({len(ids)}), not {queries.dtype} of shape "
            f"{tuple(queries.shape)}"
        )
    table = queries.detach().cpu().to(torch.int64)
    table = table[:, None] if table.ndim == 1 else table
    padding = table == -1 if queries.ndim == 2 else torch.zeros_like(table, dtype=torch.bool)
    wrong = ~padding & ((table < 2) | (table >= length))
    if bool(wrong.any()):
        row, column = (int(i) for i in torch.nonzero(wrong)[0])
        raise ValueError(
            f"query {int(table[row, column])} of input {row} is not a position from 2 to {length - 1}: "
            "a swap needs two keys before the query"
        )
    return table


def _score_layer(
    layer: int,
    query: Float[Tensor, "input head position dim"],
    key: Float[Tensor, "input head position dim"],
    angles: RotaryTable,
    places: Sequence[tuple[int, Tensor, Tensor]],
    taus: Sequence[float],
    eps: float,
) -> Iterator[tuple[Tensor, Tensor, SwapScores]]:
    """For each query position: which inputs and columns of the table, and their scores, "head input …"."""
    device, length = key.device, key.shape[2]
    theta, present, scale = (part[layer].to(device) for part in (angles.theta, angles.present, angles.logit_scale))
    for n, rows, columns in places:
        turns = (n - torch.arange(n, device=device))[:, None] * theta[:, None]  # (H, n, plane)
        waves = torch.stack([turns.cos(), turns.sin()], -1) * (present * scale[:, None])[:, None, :, None]
        step = max(1, _KEYS_PER_BLOCK // (key[0].numel() * n // length))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            asking = query[rows[block], :, n].to(torch.float64)
            logits, own = _placed_logits(asking, key[:, :, : n + 1][rows[block]], waves, scale)
            yield rows[block], columns[block], score_groups(logits, own, taus, eps)


def _placed_logits(
    query: Float[Tensor, "batch head dim"],
    key: Float[Tensor, "batch head key dim"],
    waves: Float[Tensor, "head position plane 2"],
    scale: Float[Tensor, " head"],
) -> tuple[Float[Tensor, "head square batch"], Float[Tensor, "head batch"]]:
    """Logit of each content at each position (flat, position first), and of the query on itself, the last key.

    `waves` are the scaled cosine and sine of each plane's turn from each position to the query.
    """
    heads, n, planes, _ = waves.shape
    batch, width = len(query), 2 * planes
    query = query.transpose(0, 1)
    q = torch.view_as_complex(query[..., :width].reshape(heads, batch, planes, 2)).conj().resolve_conj()
    products = torch.empty(heads, n + 1, batch, width, dtype=torch.float64, device=query.device)
    products.copy_(key[..., :width].permute(1, 2, 0, 3))
    torch.view_as_complex(products.view(heads, n + 1, batch, planes, 2)).mul_(q[:, None])
    logits = waves.flatten(-2) @ products[:, :n].flatten(1, 2).mT
    still = torch.hypot(waves[:, 0, :, 0], waves[:, 0, :, 1])  # on itself the query is turned by nothing: cos 0
    own = (products[:, n, :, ::2] @ still[..., None])[..., 0]
    if query.shape[-1] > width:
        rest = key[..., width:].to(torch.float64)
        plain = torch.einsum("hbd,bhkd->hkb", query[..., width:] * scale[:, None, None], rest)
        logits += plain[:, :n].flatten(1)[:, None]
        own += plain[:, n]
    return logits.reshape(heads, n * n, batch), own
