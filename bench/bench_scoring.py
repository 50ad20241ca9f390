"""Scoring beside re-running every layer for every swap, and beside the bare forward pass.

`scoring_vs_brute_force` compares CPU seconds on one thread (a thread that waits for another burns CPU seconds too);
brute force is measured on a few inputs and scaled.
"""

from typing import Any

import torch
from torch import Tensor

from bench.measure import interleaved, row
from ops.model.gptj import GPTJ
from ops.scores.heads import score_heads
from ops.scores.table import head_scores_frame
from ops.spec.evaluation import ScoringSpec
from ops.spec.model import ModelSpec
from ops.tasks import number

COMMAND = "python -m bench scoring"
N_BRUTE = 4  # inputs on which brute force is measured, then scaled
N_SCORED, N_INPUTS = 256, 1_200
AGREE = 1e-4


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


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`scoring_vs_brute_force` (CPU seconds) and `scoring_vs_forward` (by the clock), the paper's model."""
    torch.manual_seed(0)
    n_brute, n_scored, n_inputs = (1, 8, 16) if quick else (N_BRUTE, N_SCORED, N_INPUTS)
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    sequences = number.generate(n_inputs, seed=0)
    few, scored, spec = sequences.ids[:n_brute], sequences.ids[:n_scored], ScoringSpec()
    with torch.inference_mode():
        error = (brute_force(model, few, 1e-2) - score_heads(model, few, taus=(1e-2,))[:, 0]).abs().max().item()
        if error > AGREE:
            raise AssertionError(f"brute force and closed form differ by {error}")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        swaps = interleaved(
            {
                "ours": lambda: score_heads(model, scored, taus=(1e-4,)),
                "brute force": lambda: brute_force(model, few, 1e-4),
                "forward": lambda: model.last_logits(scored),
            }
        )
        torch.set_num_threads(threads)
        passes = interleaved(
            {
                "ours": lambda: head_scores_frame(model, sequences, spec, 0),
                "forward": lambda: model(sequences.ids),
            }
        )
    brute_s = swaps["brute force"].cpu * n_scored / n_brute
    scaled = f"every layer re-run for all 120 swaps, scaled from {n_brute} inputs; CPU seconds, 1 thread"
    forward = f"bare forward pass; {len(spec.taus)} taus, queries {' and '.join(spec.queries)}"
    cpu = {"ours_cpu_s": passes["ours"].cpu, "theirs_cpu_s": passes["forward"].cpu}
    ours_s, forward_s = passes["ours"].wall, passes["forward"].wall
    return [
        row(
            "scoring_vs_brute_force",
            COMMAND,
            swaps["ours"].cpu,
            brute_s,
            {"ratio": 0.01},
            theirs=scaled,
            inputs=n_scored,
            forward_cpu_s=swaps["forward"].cpu,
        ),
        row("scoring_vs_forward", COMMAND, ours_s, forward_s, {"ratio": 1.5}, theirs=forward, inputs=n_inputs, **cpu),
    ]
