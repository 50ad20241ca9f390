"""Scoring beside re-running the layers for every swap, beside the bare forward pass, and over a paper run.

`python bench/bench_scoring.py` prints the rows. Medians of five, interleaved, in CPU seconds of this process.
"""

import json
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ops.model.checkpoint import load_checkpoint, save_checkpoint
from ops.model.gptj import GPTJ
from ops.scores.heads import score_heads
from ops.scores.table import head_scores_frame
from ops.spec.evaluation import ScoringSpec
from ops.spec.model import ModelSpec
from ops.tasks import number

COMMAND = "python bench/bench_scoring.py"
N_BRUTE = 4  # inputs on which brute force is measured, then scaled to 256
N_CHECKPOINTS, LIMIT_S = 136, 480.0


def cpu_seconds(*runs: Callable[[], object], repeats: int = 5) -> list[float]:
    """Median CPU seconds of each run, interleaved, after one unmeasured round."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats + 1):
        for run, seconds in zip(runs, taken, strict=True):
            start = time.process_time()
            run()
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds[1:]) for seconds in taken]


def brute_force(model: GPTJ, ids: Tensor, tau: float) -> Tensor:
    """The published procedure at the last token: each layer runs again for each of the 120 swaps of its input."""
    first, second = torch.triu_indices(ids.shape[1] - 1, ids.shape[1] - 1, 1)
    order = torch.arange(ids.shape[1]).repeat(len(first), 1)
    order[torch.arange(len(first)), first], order[torch.arange(len(first)), second] = second, first
    scores = []
    for state in model.layers(ids):
        layer = model.blocks[state.layer]
        rotation = model.rotations(0, ids.shape[1])[state.layer]

        def attention(hidden: Tensor, layer=layer, rotation=rotation) -> Tensor:
            normed, query, key, value = layer.project(hidden)
            logits = rotation.apply_query(query) @ rotation.apply_key(key).mT
            hidden_keys = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
            weights = logits.masked_fill(hidden_keys, -torch.inf).softmax(-1)
            layer.finish(hidden, normed, weights @ value)
            return weights[:, :, -1].double()

        base = attention(state.hidden)
        before = torch.stack([base[..., first], base[..., second]], -1)  # (B, H, swap, 2)
        after = torch.empty_like(before)
        for b, hidden in enumerate(state.hidden):
            row = attention(hidden[order]).transpose(0, 1)  # (H, swap, T)
            at = torch.arange(len(first))
            after[b] = torch.stack([row[:, at, first], row[:, at, second]], -1)
        weight = ((before[..., 0] - before[..., 1]).abs() / tau).softmax(-1)
        cosines = [torch.nn.functional.cosine_similarity(after, v, -1) for v in (before, before.flip(-1))]
        scores.append(torch.stack([(weight * cosine).sum(-1) for cosine in cosines], -1))
    return torch.stack(scores, 1)


def rows() -> list[dict]:
    """The scoring rows of `bench/results.json`."""
    torch.manual_seed(0)
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    sequences = number.generate(1_200, seed=0)
    spec = ScoringSpec()
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads"

    def row(name: str, ours: float, theirs: float, **notes: object) -> dict:
        return {"name": name, "ours_s": ours, "theirs_s": theirs, "ratio": ours / theirs, "machine": machine,
                "command": COMMAND, **notes}  # fmt: skip

    with torch.inference_mode():
        few = sequences.ids[:N_BRUTE]
        error = (brute_force(model, few, 1e-2) - score_heads(model, few, taus=(1e-2,))[:, 0]).abs().max().item()
        if error > 1e-4:
            raise AssertionError(f"brute force and closed form differ by {error}")
        ours, brute = cpu_seconds(
            lambda: score_heads(model, sequences.ids[:256], taus=(1e-4,)), lambda: brute_force(model, few, 1e-4)
        )
        forward, scored = cpu_seconds(
            lambda: model(sequences.ids), lambda: head_scores_frame(model, sequences, spec, 0)
        )
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(model, Path(folder) / "checkpoint")
        start = time.perf_counter()
        (one,) = cpu_seconds(
            lambda: head_scores_frame(load_checkpoint(Path(folder) / "checkpoint"), sequences, spec, 0)
        )
        wall = (time.perf_counter() - start) / 6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        row("scoring_vs_brute_force", ours, brute * 256 / N_BRUTE, brute_force_inputs=N_BRUTE, inputs=256),
        row("scoring_vs_forward", scored, forward, inputs=1_200),
        row("scoring_paper_run", one * N_CHECKPOINTS, LIMIT_S, wall_s=wall * N_CHECKPOINTS, peak_gib=peak),
    ]


if __name__ == "__main__":
    print(json.dumps(rows(), indent=2))
