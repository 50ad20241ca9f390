"""Information flow: which token each position holds after each layer, read from attention (arXiv 2605.31558 §3.2).

A position starts with its own token. In a layer it takes the token that gets more than half of its attention, summed
over the positions that hold that token before the layer (mean over heads); with no such token it keeps its own. What is
never taken in the ideal function is not taken here either (number task: an integer stays in its residual stream).

The ideal of a layer is the task's function applied to what positions hold *before* that layer in the model's own flow,
so it needs no assumption about which layer does which hop: a position that asks looks at what it asks for, one that
holds an answer looks at itself.
"""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ, attention_weights
from ops.spec.task import TaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of
from ops.theory.ideal import reflexive

MAJORITY = 0.5


class LayerFlow(NamedTuple):
    """One layer's flow; `attention` is the mean over heads, `holds` are token ids after the layer.

    `agrees`: the positions that hold the ideal source's token get more than half of the attention.
    """

    layer: int
    attention: Float[Tensor, "n position key"]
    holds: Int[Tensor, "n position"]
    ideal_attends_to: Int[Tensor, "n position"]
    agrees: Bool[Tensor, "n position"]


def flow(model: GPTJ, ids: Int[Tensor, "n position"], task: TaskSpec) -> Iterator[LayerFlow]:
    """The flow of every layer in turn, of all of `ids` at once; on the CPU whatever the model's device."""
    holds, mechanism = ids.cpu(), task_of(task).mechanism
    rotations = model.rotations(0, ids.shape[1])
    for state, rotation in zip(model.layers(ids.to(model.lm_head.weight.device)), rotations, strict=True):
        heads = attention_weights(rotation.apply_query(state.query), rotation.apply_key(state.key))
        attention = heads.mean(1).cpu()
        same = (holds[:, :, None] == holds[:, None, :]).to(attention.dtype)
        mass = attention @ same  # (n, position, key): attention to all positions that hold what this key holds
        most, where = mass.max(-1)
        taken = holds.gather(1, where)
        moves = (most > MAJORITY) & mechanism.taken(taken)
        ideal = mechanism.ideal_hop(holds).attends_to
        agrees = mass.gather(2, ideal[..., None])[..., 0] > MAJORITY
        holds = torch.where(moves, taken, holds)
        yield LayerFlow(state.layer, attention, holds, ideal, agrees)


def flow_agreement_frame(model: GPTJ, sequences: Sequences, task: TaskSpec, step: int) -> pl.DataFrame:
    """Rows of `flow_agreement` for one checkpoint: a row a layer.

    `agreement`: share of the chain's positions that ask for a next hop (the last token and the intermediate ones) at
    which the layer agrees with the ideal; `answer_held`: share of inputs whose last token holds the answer after the
    layer. Raises ValueError without sequences.
    """
    n = len(sequences.ids)
    if n == 0:
        raise ValueError("flow agreement needs at least one sequence")
    asking = sequences.chain.clone()
    asking[torch.arange(n), sequences.hops] = -1  # the target asks for nothing
    valid = asking >= 0
    agreeing = torch.zeros(model.spec.n_layers, dtype=torch.float64)
    holding = torch.zeros_like(agreeing)
    chunk = inputs_per_chunk(model, sequences.ids.shape[1])
    with evaluating(model):
        for start in range(0, n, chunk):
            rows = slice(start, start + chunk)
            for layer in flow(model, sequences.ids[rows], task):
                agrees = layer.agrees.gather(1, asking[rows].clamp(0)) & valid[rows]
                agreeing[layer.layer] += int(agrees.sum())
                holding[layer.layer] += int((layer.holds[:, -1] == sequences.labels[rows]).sum())
    return pl.DataFrame(
        {
            "step": [step] * len(agreeing),
            "layer": list(range(len(agreeing))),
            "agreement": (agreeing / int(valid.sum())).tolist(),
            "answer_held": (holding / n).tolist(),
            "n": [n] * len(agreeing),
        }
    )


def information_flow_frame(model: GPTJ, sequences: Sequences, task: TaskSpec, step: int) -> pl.DataFrame:
    """Rows of `information_flow` on all of `sequences`: flow "model", and beside it the flow "ideal".

    The ideal flow applies the task's function in the first layers, as often as the input has hops, then Reflexive.
    Layer -1 holds the input: every position its own token.
    """
    names, mechanism = task_of(task).vocabulary, task_of(task).mechanism
    n, length = sequences.ids.shape
    positions = torch.arange(length).expand(n, length)
    link = torch.full((n, length), -1)
    for k in range(sequences.chain.shape[1]):
        on = sequences.chain[:, k] >= 0
        link[on, sequences.chain[on, k]] = k

    def rows(kind: str, layer: int, attends: Tensor, weight: Tensor, holds: Tensor, ideal: Tensor, agrees: Tensor):
        return {
            "step": [step] * (n * length),
            "flow": kind,
            "layer": [layer] * (n * length),
            "example": torch.arange(n)[:, None].expand(n, length).flatten().tolist(),
            "hop": sequences.hops[:, None].expand(n, length).flatten().tolist(),
            "position": positions.flatten().tolist(),
            "link": [k if k >= 0 else None for k in link.flatten().tolist()],
            "attends_to": attends.flatten().tolist(),
            "weight": weight.flatten().tolist(),
            "holds_token": [names[i] for i in holds.flatten().tolist()],
            "ideal_attends_to": ideal.flatten().tolist(),
            "agrees": agrees.flatten().tolist(),
        }

    ones, yes = torch.ones(n, length), torch.ones(n, length, dtype=torch.bool)
    found = [rows(kind, -1, positions, ones, sequences.ids, positions, yes) for kind in ("model", "ideal")]
    with evaluating(model):
        for layer in flow(model, sequences.ids, task):
            weight, attends = layer.attention.max(-1)
            found.append(rows("model", layer.layer, attends, weight, layer.holds, layer.ideal_attends_to, layer.agrees))
    held = sequences.ids
    for layer in range(model.spec.n_layers):
        hopping, resting = mechanism.ideal_hop(held), reflexive(held)
        goes_on = (sequences.hops > layer)[:, None]
        attends = torch.where(goes_on, hopping.attends_to, resting.attends_to)
        held = torch.where(goes_on, hopping.ids, resting.ids)
        found.append(rows("ideal", layer, attends, ones, held, attends, yes))
    return pl.concat([pl.DataFrame(part) for part in found])
