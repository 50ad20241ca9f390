"""Activation patching on the value path: does the answer travel along this edge of this layer?

In one layer, what reader position r gathers from read position s is w[r, s] · v[s]. Here v[s] is replaced, for that
reader alone, by the value of a donor run: the same input with another token at the chain's end. If the model then
answers with the donor's token, that edge carried the answer. Links count along the chain: 0 = the last token,
h = the target.
"""

from itertools import combinations
from typing import NamedTuple

import polars as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ, Gather, attend, attention_weights
from ops.spec.task import TaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of


class Runs(NamedTuple):
    """Layer by layer, of one batch: the layer's input in the base run, and the values in the donor run."""

    hidden: list[Tensor]
    donor_values: list[Tensor]


def donors(sequences: Sequences, task: TaskSpec, generator: torch.Generator) -> Int[Tensor, "n position"]:
    """The same inputs, each with another token at the chain's end, which is the donor's answer, and the path as it was.

    Raises ValueError if the task has no other token to put there.
    """
    target = sequences.chain.gather(1, sequences.hops[:, None])
    other = task_of(task).mechanism.other_answers(sequences.labels, generator)
    return sequences.ids.scatter(1, target, other[:, None])


def record(model: GPTJ, ids: Int[Tensor, "n position"], donor_ids: Int[Tensor, "n position"]) -> Runs:
    """Both runs, once for all patches."""
    hidden = [state.hidden for state in model.layers(ids)]
    return Runs(hidden, [state.value for state in model.layers(donor_ids)])


def patched_answers(
    model: GPTJ, runs: Runs, layers: range, reader: Int[Tensor, "n"], read: Int[Tensor, "n"]
) -> Int[Tensor, "n"]:
    """The model's answers under `patched_logits`."""
    return patched_logits(model, runs, layers, reader, read).argmax(-1)


def patched_logits(
    model: GPTJ, runs: Runs, layers: range, reader: Int[Tensor, "n"], read: Int[Tensor, "n"]
) -> Float[Tensor, "n vocabulary"]:
    """The last token's logits with the edge reader ← read patched in each of `layers`, the model's own everywhere else.

    `layers` are consecutive; computation starts from the base run's input of the first of them.
    """
    hidden = runs.hidden[layers.start]
    rotations = model.rotations(0, hidden.shape[1])
    for index in range(layers.start, model.spec.n_layers):
        gather = _patched_edge(runs.donor_values[index], reader, read) if index in layers else None
        hidden = model.blocks[index].step(hidden, rotations[index], gather=gather)
    return model.read_out(hidden[:, -1:])[:, 0]


def _patched_edge(donor_value: Tensor, reader: Tensor, read: Tensor) -> Gather:
    """Attention in which the reader gathers the donor's value, not its own, from the position it reads."""

    def gather(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        row = torch.arange(len(query), device=query.device)
        weights, difference = attention_weights(query, key), donor_value - value
        change = torch.zeros_like(difference)
        change[row, :, reader] = weights[row, :, reader, read][..., None] * difference[row, :, read]
        return attend(query, key, value) + change

    return gather


def value_patching_frame(
    model: GPTJ, sequences: Sequences, task: TaskSpec, step: int, generator: torch.Generator
) -> pl.DataFrame:
    """Rows of `value_patching`: a row a hop class, layer and edge of the chain; layer NULL patches all layers at once.

    `follows`: share of inputs that then answer with the donor's token, `keeps`: with their own;
    `logit_shift`: how far the patch moves the donor's token's logit minus their own's, mean over inputs. `read_link`
    NULL is the control: the last token reads a random position off the chain. Only inputs that the model answers
    rightly, as they are and as donors, count (`n`); a hop class without any has no rows.
    """
    device = model.lm_head.weight.device
    found: list[dict] = []
    with evaluating(model):
        donor_ids = donors(sequences, task, generator)
        target = sequences.chain.gather(1, sequences.hops[:, None])
        donor_labels = donor_ids.gather(1, target)[:, 0]
        unpatched = _logits(model, sequences.ids)
        right = unpatched.argmax(-1) == sequences.labels
        right &= _logits(model, donor_ids).argmax(-1) == donor_labels
        for hops in sequences.hops.unique().tolist():
            rows = right & (sequences.hops == hops)
            n = int(rows.sum())
            if n == 0:
                continue
            chain = sequences.chain[rows, : hops + 1]
            own, donor = sequences.labels[rows], donor_labels[rows]
            lead_before = _lead(unpatched[rows], donor, own)
            runs = record(model, sequences.ids[rows].to(device), donor_ids[rows].to(device))
            edges: list[tuple[int, int | None, Tensor]] = [
                (a, b, chain[:, b]) for a, b in combinations(range(hops + 1), 2)
            ]
            if hops + 1 < sequences.ids.shape[1]:
                edges.append((0, None, _off_chain(chain, sequences.ids.shape[1], generator)))
            for a, b, read in edges:
                for layer in (*range(model.spec.n_layers), None):
                    where = range(model.spec.n_layers) if layer is None else range(layer, layer + 1)
                    logits = patched_logits(model, runs, where, chain[:, a].to(device), read.to(device)).cpu()
                    answers = logits.argmax(-1)
                    found.append(
                        {
                            "step": step,
                            "hop": hops,
                            "layer": layer,
                            "reader_link": a,
                            "read_link": b,
                            "follows": float((answers == donor).double().mean()),
                            "keeps": float((answers == own).double().mean()),
                            "logit_shift": float((_lead(logits, donor, own) - lead_before).mean()),
                            "n": n,
                        }
                    )
    integers = dict.fromkeys(("step", "hop", "layer", "reader_link", "read_link", "n"), pl.Int64)
    reals = {"follows": pl.Float64, "keeps": pl.Float64, "logit_shift": pl.Float64}
    return pl.DataFrame(found, schema=integers | reals)


def _logits(model: GPTJ, ids: Tensor) -> Float[Tensor, "n vocabulary"]:
    return model.last_logits(ids.to(model.lm_head.weight.device)).cpu()


def _lead(
    logits: Float[Tensor, "n vocabulary"], token: Int[Tensor, "n"], other: Int[Tensor, "n"]
) -> Float[Tensor, "n"]:
    """How far `token`'s logit exceeds `other`'s."""
    return (logits.gather(1, token[:, None]) - logits.gather(1, other[:, None]))[:, 0].double()


def _off_chain(chain: Int[Tensor, "n link"], length: int, generator: torch.Generator) -> Int[Tensor, "n"]:
    """A uniformly random position off each chain."""
    free: Bool[Tensor, "n position"] = torch.ones(len(chain), length, dtype=torch.bool).scatter(1, chain, False)
    return torch.where(free, torch.rand(len(chain), length, generator=generator), -1.0).argmax(1)
