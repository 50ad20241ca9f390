"""Sequences behind a shared prefix beside the plain forward pass over prefix and sequence, the paper's model."""

from typing import Any

import torch

from bench.measure import REPEATS, interleaved, row
from ops.length.lengthening import joined, lengthen
from ops.length.prefixes import logits_behind, read_prefix
from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.tasks import number
from ops.tasks.number import NumberTaskSpec

COMMAND = "python -m bench extrapolation"
BARS = {500: 1 / 20, 2_000: 1 / 50}  # length: most that a sequence may cost, in plain forward passes
N_SHARED, N_PLAIN = 256, 4  # sequences behind the prefix, and those of the plain pass, which are scaled
AGREE = 1e-4


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`extrapolation_at_<length>`: CPU seconds for as many sequences; ours includes reading the prefix once."""
    torch.manual_seed(0)
    n_shared, n_plain = (8, 1) if quick else (N_SHARED, N_PLAIN)
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    inputs = lengthen(NumberTaskSpec(), max(BARS), n_prefixes=1, n_sequences=n_shared, seed=0)
    found = []
    for length, bar in BARS.items():
        before = inputs.prefixes[0, : length - inputs.ids.shape[2]]
        whole = joined(inputs, length)[0, :n_plain]

        def shared(before=before) -> torch.Tensor:
            return logits_behind(model, read_prefix(model, before), inputs.ids[0])

        def plain(whole=whole) -> torch.Tensor:
            with torch.inference_mode():
                return model.last_logits(whole)

        error = (shared()[:n_plain] - plain()).abs().max().item()
        if error > AGREE:
            raise AssertionError(f"shared prefix and plain forward differ by {error} at {length} tokens")
        taken = interleaved({"ours": shared, "plain": plain}, repeats=1 if quick else REPEATS)
        found.append(
            row(
                f"extrapolation_at_{length}",
                COMMAND,
                taken["ours"].cpu,
                taken["plain"].cpu * n_shared / n_plain,
                {"ratio": bar},
                theirs=f"plain forward pass of {length} tokens a sequence, scaled from {n_plain}; CPU seconds",
                inputs=n_shared,
            )
        )
    return found
