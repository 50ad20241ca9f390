"""Valid inputs longer than those of training: a target window lengthened in front, with the path as it was.

Inert: random target-window tokens stand before a sequence of the trained length, and the answer stays where it was
(arXiv 2605.31558 §3.6). Active: the window itself grows, and the answer moves to any place in it. The vocabulary stays
the trained one. In tasks of pairs no extra token has a left letter of the path: each prefix has letters of its own,
which the paths of the sequences behind it never use. Sequences get there by renaming their letters, which changes
nothing about them: the alphabet has no order.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ops.spec.task import LetterTaskSpec, NumberTaskSpec, TaskSpec
from ops.tasks.pairs import PairTaskSpec, lefts_and_rights
from ops.tasks.registry import generate, solve
from ops.tasks.sequences import Seed, Solution, stream

# Purposes of the random streams under one seed, apart from those of ops.tasks.graph.
_PREFIX_STREAM, _SUFFIX_STREAM, _RENAMING_STREAM, _MOVE_STREAM = 0x70726566, 0x73756666, 0x72656E61, 0x6D6F7665


class Lengthened(NamedTuple):
    """Prefixes, and for each its own sequences of the trained length; all int64.

    `chain` holds positions as if the sequence stood alone: add the prefix's length.
    """

    prefixes: Int[Tensor, "prefix token"]
    ids: Int[Tensor, "prefix sequence position"]
    labels: Int[Tensor, "prefix sequence"]
    hops: Int[Tensor, "prefix sequence"]
    chain: Int[Tensor, "prefix sequence link"]

    def first(self, n: int) -> "Lengthened":
        """With the first n sequences of every prefix."""
        return Lengthened(self.prefixes, *(column[:, :n] for column in self[1:]))


class Moved(NamedTuple):
    """Whole inputs of one length in the active mode; `chain` holds their positions."""

    ids: Int[Tensor, "prefix sequence position"]
    labels: Int[Tensor, "prefix sequence"]
    hops: Int[Tensor, "prefix sequence"]
    chain: Int[Tensor, "prefix sequence link"]


def lengthen(task: TaskSpec, longest: int, *, n_prefixes: int, n_sequences: int, seed: Seed) -> Lengthened:
    """`n_sequences` sequences behind each of `n_prefixes` prefixes, `longest` tokens together.

    Any first part of a prefix, followed by one of its sequences, is a valid input (`joined`). The hop classes have
    equal shares (±1) behind every prefix. Number task: prefix letters are uniform. Tasks of pairs: prefix pairs have
    uniform digits and lefts uniform among the alphabet without as many letters as the task has hops at most.
    Raises ValueError if `longest` is below the task's length, a count below 1, or the alphabet too small.
    """
    if longest < task.sequence_length:
        raise ValueError(f"longest is {longest}, but a sequence of the task has {task.sequence_length} tokens already")
    if n_prefixes < 1 or n_sequences < 1:
        raise ValueError(f"n_prefixes is {n_prefixes} and n_sequences {n_sequences}; both must be at least 1")
    parts = [generate(task, n_sequences, _child(seed, _SUFFIX_STREAM, p)) for p in range(n_prefixes)]
    ids, labels, hops, chain = (torch.stack(column) for column in zip(*parts, strict=True))
    rng = stream(seed, _PREFIX_STREAM)
    shape = (n_prefixes, longest - task.sequence_length)
    if isinstance(task, NumberTaskSpec):
        prefixes = task.sequence_length + torch.from_numpy(rng.integers(0, task.n_letters, shape))
        return Lengthened(prefixes, ids, labels, hops, chain)
    n_kept = task.hops[-1]
    if n_kept >= task.n_letters:
        raise ValueError(
            f"paths of {n_kept} hops may use all {task.n_letters} letters of the task, so none is left for a longer "
            "window; use fewer hops or more letters"
        )
    alphabets = rng.permuted(np.tile(np.arange(task.n_letters), (n_prefixes, 1)), axis=1)  # the path's letters first
    lefts = np.take_along_axis(alphabets, rng.integers(n_kept, task.n_letters, shape), axis=1)
    prefixes = torch.from_numpy(1 + task.n_digits * lefts + rng.integers(0, task.n_digits, shape))
    ids = _renamed(task, ids, hops, chain, alphabets, stream(seed, _RENAMING_STREAM))
    last = chain.gather(2, hops[..., None])
    return Lengthened(prefixes, ids, ids.gather(2, last)[..., 0], hops, chain)


def joined(inputs: Lengthened, length: int) -> Int[Tensor, "prefix sequence position"]:
    """The whole inputs of `length` tokens: the first part of each prefix before each of its sequences.

    Raises ValueError if `length` is not between a sequence's length and the longest.
    """
    n = length - inputs.ids.shape[2]
    if not 0 <= n <= inputs.prefixes.shape[1]:
        shortest = inputs.ids.shape[2]
        raise ValueError(f"length {length} is not from {shortest} to {shortest + inputs.prefixes.shape[1]}")
    before = inputs.prefixes[:, None, :n].expand(-1, inputs.ids.shape[1], -1)
    return torch.cat((before, inputs.ids), 2)


def move_answers(task: TaskSpec, inputs: Lengthened, length: int, seed: Seed) -> Moved:
    """Whole inputs of `length` tokens whose answer lies anywhere in the lengthened target window, uniformly.

    The answer's token changes places with another of the window. In the number task it lies at most as far before
    the path's last integer as the vocabulary's integers reach, and that integer is set to the new distance.
    """
    ids = joined(inputs, length)
    n = length - task.sequence_length
    window = n + task.target_window
    chain = torch.where(inputs.chain < 0, -1, inputs.chain + n)
    last, before = (chain.gather(2, inputs.hops[..., None] - back) for back in (0, 1))
    reach = task.sequence_length - 1 if isinstance(task, NumberTaskSpec) else length
    first = (before - reach).clamp(min=0).numpy()
    there = torch.from_numpy(stream(seed, _MOVE_STREAM).integers(first, window))
    here_token, there_token = ids.gather(2, last), ids.gather(2, there)
    ids.scatter_(2, last, there_token).scatter_(2, there, here_token)
    chain.scatter_(2, inputs.hops[..., None], there)
    if isinstance(task, NumberTaskSpec):
        ids.scatter_(2, before, before - there)
    return Moved(ids, inputs.labels, inputs.hops, chain)


def solve_lengthened(task: TaskSpec, ids: Int[Tensor, "n position"]) -> Solution:
    """The task's oracle on inputs whose target window is longer than the task's, written in the task's vocabulary.

    Raises ValueError naming the row without a unique path, as the oracles do.
    """
    window = ids.shape[1] - task.pre_target_window - 1
    if isinstance(task, NumberTaskSpec):
        longer = task.model_copy(update={"target_window": window})
        shift = longer.sequence_length - task.sequence_length  # letters follow the integers, which reach further there
        solution = solve(longer, ids + shift * (ids >= task.sequence_length))
        return solution._replace(answer=solution.answer - shift)
    letters = LetterTaskSpec.model_construct(
        target_window=window,
        pre_target_window=task.pre_target_window,
        hops=task.hops,
        n_letters=task.n_letters,
        n_digits=task.n_digits,
    )
    return solve(letters, ids)


def _child(seed: Seed, purpose: int, index: int) -> np.random.SeedSequence:
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, purpose, index))


def _renamed(
    task: PairTaskSpec,
    ids: Int[Tensor, "prefix sequence position"],
    hops: Int[Tensor, "prefix sequence"],
    chain: Int[Tensor, "prefix sequence link"],
    alphabets: Int[np.ndarray, "prefix letter"],
    rng: np.random.Generator,
) -> Int[Tensor, "prefix sequence position"]:
    """The sequences with their letters renamed at random, such that paths use the first letters of their alphabet."""
    n_kept, window = task.hops[-1], task.target_window
    shape = (*hops.shape, task.n_letters)
    left, right = lefts_and_rights(ids.flatten(0, 1), task)
    left, right = left.reshape(ids.shape), right.reshape(ids.shape)
    on_path = torch.zeros(shape, dtype=torch.bool)
    for link in range(1, chain.shape[2]):
        letter = left.gather(2, chain[..., link : link + 1].clamp(min=0))
        on_path |= torch.zeros_like(on_path).scatter_(2, letter, chain[..., link : link + 1] >= 0)
    order = np.argsort(rng.random(shape) - on_path.numpy(), axis=-1)  # the path's letters first, else at random
    kept = np.broadcast_to(alphabets[:, None, :n_kept], (*shape[:2], n_kept))
    others = np.broadcast_to(alphabets[:, None, n_kept:], (*shape[:2], task.n_letters - n_kept))
    names = np.empty(shape, np.int64)
    np.put_along_axis(names, order, np.concatenate((rng.permuted(kept, axis=-1), others), -1), axis=-1)
    name = torch.from_numpy(names)
    left = name.gather(2, left)
    ids = torch.empty_like(ids)
    ids[..., :window] = 1 + task.n_digits * left[..., :window] + right[..., :window]
    rights = name.gather(2, right[..., window:])
    ids[..., window:] = 1 + task.n_letters * task.n_digits + task.n_letters * left[..., window:] + rights
    return ids
