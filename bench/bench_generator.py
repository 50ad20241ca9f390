"""Sequences a second: the vectorised generators on one core against a plain loop over samples.

    python bench/bench_generator.py

Writes nothing. The plain loop (below, number and letter as a person would first write them) is timed on
N_PLAIN sequences and extrapolated to N.
"""

import argparse
import itertools
import json
import platform
import random
import time
from collections.abc import Callable

import torch

from ops.tasks import letter, letter_matched, number

N = 480_000
N_PLAIN = 4_000
COMMAND = "python bench/bench_generator.py"


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


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _loop(sample: Callable[[random.Random], tuple[list[int], int]]) -> tuple[torch.Tensor, torch.Tensor]:
    rng = random.Random(0)
    ids, labels = zip(*(sample(rng) for _ in range(N_PLAIN)), strict=True)
    return torch.tensor(ids), torch.tensor(labels)


def rows() -> list[dict]:
    """One row a task: name, ours_s, theirs_s (extrapolated), ratio, machine, command. One thread; best of three."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = []
    for module, sample in ((number, plain_number), (letter, plain_letter), (letter_matched, plain_letter_matched)):
        ours = min(_seconds(lambda m=module, s=seed: m.generate(N, seed=s)) for seed in range(3))
        theirs = min(_seconds(lambda s=sample: _loop(s)) for _ in range(3)) * N / N_PLAIN
        found.append(
            {
                "name": f"generate {N:,} {module.__name__.rpartition('.')[2]} sequences "
                f"(theirs: plain loop, extrapolated from {N_PLAIN:,})",
                "ours_s": ours,
                "theirs_s": theirs,
                "ratio": theirs / ours,
                "machine": f"one core of {platform.machine()}, {platform.system()}",
                "command": COMMAND,
            }
        )
    torch.set_num_threads(threads)
    return found


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for row in rows():
        print(json.dumps(row | {"ours_per_s": round(N / row["ours_s"])}))
