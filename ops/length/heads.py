"""Where extrapolation breaks: which layer's head loses, behind a longer prefix, the token that it attends to without.

A head's target at a query is the token it attends to most at the trained length. Behind a prefix the same sequence
asks the same of it, so a head that generalises keeps its target; the mass on it, its lead over every other token and
the discrepancy (arXiv 2605.31558 Def. 3.1) say how firmly.
"""

from typing import NamedTuple

import polars as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.length.lengthening import Lengthened
from ops.length.prefixes import MAX_CELLS, Watched, logits_behind, prefixes_at, split_logits
from ops.model.gptj import GPTJ

QUERIES = ("last", "hop")


class Attention(NamedTuple):
    """How a head attends at some queries; the last axis is the query's place on the chain."""

    mass: Float[Tensor, "head sequence link"]  # attention on the target
    lead: Float[Tensor, "head sequence link"]  # the target's logit minus the largest other one
    discrepancy: Float[Tensor, "head sequence link"]  # largest minus second-largest logit


def attention_on(
    watched: Watched,
    queries: Int[Tensor, "sequence link"],
    target: Int[Tensor, "head sequence link"] | None,
    max_cells: int = MAX_CELLS,
) -> tuple[Attention, Int[Tensor, "head sequence link"]]:
    """A layer's attention at the positions `queries` of each sequence, and the targets (found, if None, by argmax).

    Positions count within the sequence. A query at position 0 with no prefix has no other token: its lead and its
    discrepancy are infinite.
    """
    n_sequences, n_heads, width, dim = watched.query.shape
    size = max(1, max_cells // (n_heads * queries.shape[1] * (watched.prefix_key.shape[1] + width)))
    parts, targets = [], []
    for start in range(0, n_sequences, size):
        rows = slice(start, start + size)
        at = queries[rows, None, :, None].expand(-1, n_heads, -1, dim)
        far, near = split_logits(watched.query[rows].gather(2, at), watched.key[rows], watched.prefix_key, causal=False)
        positions = torch.arange(width, device=near.device)
        near = near.masked_fill(positions > queries[rows, :, None], -torch.inf)
        logits = torch.cat((near, far), -1)
        wanted = near.argmax(-1) if target is None else target[:, rows]
        chosen = logits.gather(-1, wanted[..., None])
        total = logits.logsumexp(-1)
        if logits.shape[-1] == 1:
            alone = torch.full_like(total, torch.inf)
            parts.append(Attention(torch.ones_like(total), alone, alone))
        else:
            top = logits.topk(2).values
            others = logits.scatter(-1, wanted[..., None], -torch.inf).amax(-1)
            parts.append(Attention((chosen[..., 0] - total).exp(), chosen[..., 0] - others, top[..., 0] - top[..., 1]))
        targets.append(wanted)
    joined = Attention(*(torch.cat(column, 1) for column in zip(*parts, strict=True)))
    return joined, torch.cat(targets, 1)


class _Sums:
    """Running sums over queries of one kind, for every length, layer and head."""

    def __init__(self, shape: tuple[int, int, int]):
        self.n = torch.zeros(shape, dtype=torch.int64)
        self.kept = torch.zeros(shape, dtype=torch.int64)
        self.mass, self.lead, self.discrepancy = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
        self.largest = torch.full(shape, -torch.inf, dtype=torch.float64)
        self.least = torch.full(shape, torch.inf, dtype=torch.float64)

    def add(self, place: tuple[int, int], seen: Attention, valid: Bool[Tensor, "sequence link"]) -> None:
        mass, lead, discrepancy = (part[:, valid].double().cpu() for part in seen)
        self.n[place] += mass.shape[1]
        self.kept[place] += (lead > 0).sum(1)
        self.mass[place] += mass.sum(1)
        self.lead[place] += lead.sum(1)
        self.discrepancy[place] += discrepancy.sum(1)
        self.largest[place] = torch.maximum(self.largest[place], discrepancy.amax(1))
        self.least[place] = torch.minimum(self.least[place], discrepancy.amin(1))


def head_rows(model: GPTJ, inputs: Lengthened, lengths: list[int], n_sequences: int, step: int) -> pl.DataFrame:
    """Rows of the table `length_heads`, from `n_sequences` sequences behind each prefix.

    Queries: "last" is the last token, "hop" every position of the path but its end. Raises ValueError on a NaN.
    """
    device, width = model.lm_head.weight.device, inputs.ids.shape[2]
    n_layers, n_heads, _ = model.rotary.shape
    sums = {query: _Sums((len(lengths), n_layers, n_heads)) for query in QUERIES}
    inputs = inputs.first(n_sequences)
    for prefix_ids, ids, hops, chain in zip(inputs.prefixes, inputs.ids, inputs.hops, inputs.chain, strict=True):
        chain = chain[:, :-1].to(device)
        valid = torch.arange(chain.shape[1]) < hops[:, None]
        queries = chain.clamp(min=0)
        targets: dict[int, Tensor] = {}

        def look(watched: Watched, place: int, queries=queries, valid=valid, targets=targets) -> None:
            seen, target = attention_on(watched, queries, targets.get(watched.layer))
            targets.setdefault(watched.layer, target)
            if place >= 0:
                last = torch.zeros_like(valid)
                last[:, 0] = True
                sums["last"].add((place, watched.layer), seen, last)
                sums["hop"].add((place, watched.layer), seen, valid)

        numbers = [0, *(length - width for length in lengths)]  # first the trained length, which tells the targets
        for place, (prefix, _) in enumerate(prefixes_at(model, prefix_ids, numbers), start=-1):
            logits_behind(model, prefix, ids, watch=lambda watched, place=place, look=look: look(watched, place))
    return pl.concat([_frame(sums[query], query, lengths, step) for query in QUERIES])


def _frame(sums: _Sums, query: str, lengths: list[int], step: int) -> pl.DataFrame:
    rows = []
    for i, layer, head in torch.cartesian_prod(*(torch.arange(n) for n in sums.n.shape)).tolist():
        at = (i, layer, head)
        n = int(sums.n[at])
        rows.append(
            {
                "step": step, "layer": layer, "head": head, "query": query, "length": lengths[i],
                "target_mass": float(sums.mass[at]) / n, "kept_share": int(sums.kept[at]) / n,
                "lead": float(sums.lead[at]) / n, "discrepancy": float(sums.discrepancy[at]) / n,
                "least_discrepancy": float(sums.least[at]), "largest_discrepancy": float(sums.largest[at]), "n": n,
            }
        )  # fmt: skip
    return pl.DataFrame(rows)
