"""480,000 sequences of each task on one core: the vectorised generators against a plain loop over samples.

The plain loop (below, each task as a person would first write it) is timed on N_PLAIN sequences and extrapolated to N.
"""

import itertools
import random
from collections.abc import Callable
from typing import Any

import torch

from bench.measure import interleaved, row
from ops.tasks import letter, letter_matched, number

COMMAND = "python -m bench generator"
N, N_PLAIN = 480_000, 4_000
LIMIT_S = 3.0


def plain_number(rng: random.Random) -> tuple[list[int], int]:
    """One sequence of the number task: token ids and label."""
    hops, target = rng.randint(1, 4), rng.randrange(8)
    ids = [rng.randint(17, 136) for _ in range(8)] + [rng.randint(1, position) for position in range(8, 17)]
    chain = [16, *sorted(rng.sample(range(8, 16), hops - 1), reverse=True), target]
    for here, there in itertools.pairwise(chain):
        ids[here] = here - there
    return ids, ids[target]


def plain_letter(rng: random.Random) -> tuple[list[int], int]:
    """One sequence of the letter task: token ids and label."""
    hops, target = rng.randint(1, 4), rng.randrange(8)
    alphabet = rng.sample(range(8), 8)
    on, off = alphabet[:hops], alphabet[hops:]
    chain = [16, *sorted(rng.sample(range(8, 16), hops - 1), reverse=True), target]
    left = [rng.choice(off) for _ in range(17)]
    right = [rng.choice(off) for _ in range(17)]
    for here, there, name in zip(chain, chain[1:], on, strict=False):
        right[here] = left[there] = name
    ids = [1 + 8 * left[p] + rng.randrange(8) for p in range(8)] + [65 + 8 * left[p] + right[p] for p in range(8, 17)]
    return ids, ids[target]


def plain_letter_matched(rng: random.Random) -> tuple[list[int], int]:
    """One sequence of the letter-matched task: token ids and label."""
    graph, _ = plain_number(rng)
    left = [*rng.sample(range(16), 16), rng.randrange(16)]
    ids = [1 + 8 * left[p] + rng.randrange(8) for p in range(8)]
    ids += [129 + 16 * left[p] + left[p - graph[p]] for p in range(8, 17)]
    here = 16
    while here >= 8:
        here -= graph[here]
    return ids, ids[here]


def plain_loop(sample: Callable[[random.Random], tuple[list[int], int]], n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`n` sequences, one after another: token ids and labels."""
    rng = random.Random(0)
    ids, labels = zip(*(sample(rng) for _ in range(n)), strict=True)
    return torch.tensor(ids), torch.tensor(labels)


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`generator` is the slowest task; each task has a row too, such as `generator_letter`. One thread."""
    torch.set_num_threads(1)
    n, n_plain = (N // 100, N_PLAIN // 100) if quick else (N, N_PLAIN)
    found = []
    for module, sample in ((number, plain_number), (letter, plain_letter), (letter_matched, plain_letter_matched)):
        seconds = interleaved(
            {
                "ours": lambda generate=module.generate: generate(n, seed=0),
                "plain": lambda sample=sample: plain_loop(sample, n_plain),
            }
        )
        plain_s = seconds["plain"].wall * n / n_plain
        task = module.__name__.rpartition(".")[2]
        notes = {"theirs": f"plain loop, extrapolated from {n_plain} sequences", "task": task, "sequences": n}
        found.append(
            row(f"generator_{task}", COMMAND, seconds["ours"].wall, plain_s, {"ours_s": LIMIT_S * n / N}, **notes)
        )
    return [max(found, key=lambda each: each["ours_s"]) | {"name": "generator"}, *found]
