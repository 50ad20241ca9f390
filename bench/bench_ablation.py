"""Ablations that share what lies below them beside plain forwards, and a stack of canonical heads beside one by one."""

from typing import Any

import torch

from bench.measure import REPEATS, interleaved, row
from ops.ablation.interventions import Ablation, ablated_logits
from ops.canonical.evaluation import angles
from ops.canonical.training import train
from ops.model.gptj import GPTJ
from ops.spec.canonical import CanonicalTrainingSpec, IndexTaskSpec
from ops.spec.model import ModelSpec
from ops.tasks import number

COMMAND = "python -m bench ablation"
N_INPUTS, N_STEPS = 256, 50
ANGLES = (0, *range(1, 48, 2), 64)


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`ablation_vs_forwards` (CPU seconds, the paper's model, a band in each layer) and `canonical_stack_vs_one`."""
    torch.manual_seed(0)
    n_inputs, n_steps, chosen = (16, 3, ANGLES[:4]) if quick else (N_INPUTS, N_STEPS, ANGLES)
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    ids = number.generate(n_inputs, seed=0).ids
    bands = ((1, 8), (9, 32), (33, 64))
    ablations = [Ablation("freeze", band, (layer,)) for layer in range(model.spec.n_layers) for band in bands]

    def shared() -> None:
        for _ in ablated_logits(model, ids, ablations):
            pass

    def forwards() -> None:
        with torch.inference_mode():
            for ablation in ablations:
                model.last_logits(ids, rotary=ablation.table(model.rotary))

    task, training = IndexTaskSpec(), CanonicalTrainingSpec(steps=n_steps, warmup_steps=1)
    theta = torch.stack([angles((i,), 64, 10_000.0) for i in chosen])

    def stacked() -> None:
        train(task, theta, [0] * len(theta), training)

    def one_by_one() -> None:
        for i in range(len(theta)):
            train(task, theta[i : i + 1], [0], training)

    repeats = 1 if quick else REPEATS
    taken = interleaved(
        {"shared": shared, "forwards": forwards, "stacked": stacked, "one by one": one_by_one}, repeats=repeats
    )
    return [
        row(
            "ablation_vs_forwards",
            COMMAND,
            taken["shared"].cpu,
            taken["forwards"].cpu,
            {"ratio": 0.75},
            theirs="one forward an ablation",
            n_ablations=len(ablations),
            n_inputs=n_inputs,
        ),
        row(
            "canonical_stack_vs_one",
            COMMAND,
            taken["stacked"].cpu,
            taken["one by one"].cpu,
            {"ratio": 0.75},
            theirs="one training an angle",
            n_models=len(theta),
            n_steps=n_steps,
        ),
    ]
