"""Many short sequences behind one long prefix, without recomputing the prefix: exact, in bounded memory.

Attention is causal, so the keys and values of a prefix do not depend on what follows; and the keys of its first m
tokens are those of a prefix of m tokens. One pass over the longest prefix serves every shorter length and every
sequence behind it. Attention over the prefix is computed in blocks of queries whose logits fit `max_cells` numbers.
Source: arXiv 2605.31558 §3.6, which computes each sequence anew.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ, Gather, attend
from ops.model.rope import RotaryTable

GROUP = 1 << 10  # tokens that pass the layers together on a CPU: their hidden states stay in its cache
MAX_CELLS = 1 << 20  # attention logits held at a time: 4 MB in float32, about what a core's cache holds


class Prefix(NamedTuple):
    """A prefix that was read: its keys (rotated) and values in every layer."""

    keys: list[Float[Tensor, "head position dim"]]
    values: list[Float[Tensor, "head position dim"]]

    def first(self, n: int) -> "Prefix":
        """The first n tokens of it. Raises ValueError if it has fewer."""
        if not 0 <= n <= len(self):
            raise ValueError(f"the prefix has {len(self)} tokens, not {n}")
        return Prefix([key[:, :n] for key in self.keys], [value[:, :n] for value in self.values])

    def __len__(self) -> int:
        return self.keys[0].shape[1]


class Watched(NamedTuple):
    """One layer's attention behind a prefix: queries and keys as they meet in the logits (rotated, scaled)."""

    layer: int
    query: Float[Tensor, "sequence head position dim"]
    key: Float[Tensor, "sequence head position dim"]
    prefix_key: Float[Tensor, "head far dim"]


Watch = Callable[[Watched], None]


def read_prefix(
    model: GPTJ, ids: Int[Tensor, " position"], rotary: RotaryTable | None = None, max_cells: int = MAX_CELLS
) -> Prefix:
    """The keys and values that `ids` (at positions 0 …) leave in every layer, with another table if `rotary` is given.

    At most `max_cells` attention logits are held at a time, one query's at least; keys, values and hidden states grow
    with the length (two vectors a layer and token). Raises ValueError on ids that are not one row.
    """
    if ids.ndim != 1:
        raise ValueError(f"a prefix is one row of ids, not of shape {tuple(ids.shape)}")
    n = len(ids)
    rotations = model.rotations(0, n, rotary)
    block = max(1, max_cells // max(1, n * model.spec.n_heads))
    keys, values = [], []
    with evaluating(model):
        hidden = model.embed(ids[None].to(model.lm_head.weight.device))
        for index, (layer, rotation) in enumerate(zip(model.blocks, rotations, strict=True)):
            begun = layer.begin(hidden, rotation)
            keys.append(begun.key[0])
            values.append(begun.value[0])
            if index == model.spec.n_layers - 1:
                break
            following = torch.empty_like(hidden)
            for start in range(0, n, block):
                stop = min(start + block, n)
                following[:, start:stop] = layer.end(begun.part(start, stop))
            hidden = following
    return Prefix(keys, values)


def logits_behind(
    model: GPTJ,
    prefix: Prefix,
    ids: Int[Tensor, "sequence position"],
    rotary: RotaryTable | None = None,
    max_cells: int = MAX_CELLS,
    watch: Watch | None = None,
) -> Float[Tensor, "sequence vocabulary"]:
    """Last-token logits of `model.forward(prefix + ids)` for each row of `ids`.

    `rotary` must be the table with which the prefix was read. `max_cells` as in `read_prefix`, with one sequence's
    logits at least. `watch` is called once a layer, in order. Agrees with the plain forward to 1e-5 in float32.
    """
    m, size = len(prefix), max(1, GROUP // max(1, ids.shape[1]))
    together = watch is not None or len(ids) <= size or model.lm_head.weight.device.type != "cpu"
    rotations = model.rotations(m, m + ids.shape[1], rotary)
    gathers = [_gather_behind(prefix, index, max_cells, watch) for index in range(model.spec.n_layers)]
    found = []
    with evaluating(model):
        for part in [ids] if together else ids.split(size):
            hidden = model.embed(part.to(model.lm_head.weight.device))
            for index, (layer, rotation, gather) in enumerate(zip(model.blocks, rotations, gathers, strict=True)):
                only_last = index == model.spec.n_layers - 1 and watch is None
                hidden = layer.step(hidden, rotation, last=only_last, gather=gather)
            found.append(model.read_out(hidden[:, -1:])[:, 0])
        return found[0] if together else torch.cat(found)


def _gather_behind(prefix: Prefix, index: int, max_cells: int, watch: Watch | None) -> Gather:
    """A layer's attention over the prefix and the sequence itself."""
    prefix_key, prefix_value = prefix.keys[index], prefix.values[index]

    def gather(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if watch is not None:
            watch(Watched(index, query, key, prefix_key))
        return attend_behind(query, key, value, prefix_key, prefix_value, max_cells)

    return gather


def attend_behind(
    query: Float[Tensor, "sequence head query dim"],
    key: Float[Tensor, "sequence head near dim"],
    value: Float[Tensor, "sequence head near dim"],
    prefix_key: Float[Tensor, "head far dim"],
    prefix_value: Float[Tensor, "head far dim"],
    max_cells: int = MAX_CELLS,
) -> Float[Tensor, "sequence head query dim"]:
    """Causal attention of each sequence over itself and over a prefix that all of them share.

    The queries stand at the last positions of `key`'s. Queries and keys are rotated, the query carries the scale.
    The queries of several sequences meet the prefix in one matrix product; nothing of the prefix is copied.
    """
    if prefix_key.shape[1] == 0:
        return attend(query, key, value)
    n_sequences, n_heads, n_query, _ = query.shape
    size = max(1, max_cells // (n_heads * n_query * (prefix_key.shape[1] + key.shape[2])))
    result = torch.empty_like(query)
    for start in range(0, n_sequences, size):
        rows = slice(start, min(start + size, n_sequences))
        far, near = split_logits(query[rows], key[rows], prefix_key)
        peak = torch.maximum(far.amax(-1, keepdim=True), near.amax(-1, keepdim=True))
        far, near = far.sub_(peak).exp_(), near.sub_(peak).exp_()
        gathered = (far.flatten(1, 2) @ prefix_value).unflatten(1, far.shape[1:3]) + near @ value[rows].transpose(0, 1)
        total = far.sum(-1, keepdim=True) + near.sum(-1, keepdim=True)
        result[rows] = (gathered / total).transpose(0, 1)
    return result


def split_logits(
    query: Float[Tensor, "sequence head query dim"],
    key: Float[Tensor, "sequence head near dim"],
    prefix_key: Float[Tensor, "head far dim"],
    causal: bool = True,
) -> tuple[Float[Tensor, "head sequence query far"], Float[Tensor, "head sequence query near"]]:
    """Logits on the prefix, and on the sequence's own keys (if `causal`, -inf where these lie ahead)."""
    n_query, n_near = query.shape[2], key.shape[2]
    query = query.transpose(0, 1)
    far = (query.flatten(1, 2) @ prefix_key.mT).unflatten(1, query.shape[1:3])
    near = query @ key.transpose(0, 1).mT
    if causal and n_query > 1:
        ahead = torch.ones(n_query, n_near, dtype=torch.bool, device=query.device).triu(n_near - n_query + 1)
        near.masked_fill_(ahead, -torch.inf)
    return far, near


TableAt = Callable[[int], RotaryTable]


def prefixes_at(
    model: GPTJ, ids: Int[Tensor, " position"], lengths: list[int], table_at: TableAt | None = None
) -> Iterator[tuple[Prefix, RotaryTable | None]]:
    """The first n tokens of `ids` as a prefix that was read, for each n of `lengths`, with its table of angles.

    Without `table_at` one pass serves them all. With it the table may depend on the whole length, for which
    `table_at(n)` is asked, and each prefix is read anew.
    """
    if table_at is None:
        prefix = read_prefix(model, ids[: max(lengths)])
        yield from ((prefix.first(n), None) for n in lengths)
        return
    for n in lengths:
        table = table_at(n)
        yield read_prefix(model, ids[:n], table), table
