"""Scoring beside re-running every layer for every swap, and beside the bare forward pass.

`scoring_vs_brute_force` compares CPU seconds on one thread (a thread that waits for another burns CPU seconds too);
brute force is measured on a few inputs and scaled.
"""

from typing import Any

import torch

from bench.measure import interleaved, row
from ops.model.gptj import GPTJ
from ops.scores.brute_force import brute_force_scores
from ops.scores.heads import score_heads
from ops.scores.table import head_scores_frame
from ops.spec.evaluation import ScoringSpec
from ops.spec.model import ModelSpec
from ops.tasks import number

COMMAND = "python -m bench scoring"
N_BRUTE = 4  # inputs on which brute force is measured, then scaled
N_SCORED, N_INPUTS = 256, 1_200
AGREE = 1e-4


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`scoring_vs_brute_force` (CPU seconds) and `scoring_vs_forward` (by the clock), the paper's model."""
    torch.manual_seed(0)
    n_brute, n_scored, n_inputs = (1, 8, 16) if quick else (N_BRUTE, N_SCORED, N_INPUTS)
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    sequences = number.generate(n_inputs, seed=0)
    few, scored, spec = sequences.ids[:n_brute], sequences.ids[:n_scored], ScoringSpec()
    with torch.inference_mode():
        error = (brute_force_scores(model, few, (1e-2,)) - score_heads(model, few, taus=(1e-2,))).abs().max().item()
        if error > AGREE:
            raise AssertionError(f"brute force and closed form differ by {error}")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        swaps = interleaved(
            {
                "ours": lambda: score_heads(model, scored, taus=(1e-4,)),
                "brute force": lambda: brute_force_scores(model, few, (1e-4,)),
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
