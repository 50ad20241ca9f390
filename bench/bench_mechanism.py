"""What a paper run's mechanism stages cost: flow, frequency use, query-key planes of 136 checkpoints, and the theory.

A checkpoint's cost is measured on one model of the paper's size and scaled, since random weights cost what trained
ones do; the query-key plane is that of the last checkpoint, as in the stage.
"""

import time
from typing import Any

import torch

from bench.measure import REPEATS, interleaved, row
from ops.mechanism.information_flow import flow_agreement_frame
from ops.mechanism.qk_plane import qk_plane_frame
from ops.model.gptj import GPTJ
from ops.scores.frequency import frequency_use_frame
from ops.spec.model import ModelSpec
from ops.spec.theory import TheorySpec
from ops.spec.training import TrainingSpec
from ops.tasks import number
from ops.tasks.dataset import stratified_sample
from ops.tasks.number import NumberTaskSpec
from ops.theory.tables import constructions_frame, discrepancy_frame

COMMAND = "python -m bench mechanism"
N_INPUTS, N_PLANE = 1_200, 60
PAPER_RUN_S, THEORY_S = 600.0, 120.0


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`mechanism_paper_run` (theirs: as many bare forward passes) and `theory` (theirs: the time that it may take)."""
    torch.manual_seed(0)
    task, n_inputs = NumberTaskSpec(), 16 if quick else N_INPUTS
    model = GPTJ(ModelSpec(), number.vocabulary_size()).eval()
    sequences = stratified_sample(number.generate(n_inputs, seed=0), n_inputs)
    few = stratified_sample(sequences, min(n_inputs, N_PLANE))
    with torch.inference_mode():
        taken = interleaved(
            {
                "flow": lambda: flow_agreement_frame(model, sequences, task, 0),
                "frequency use": lambda: frequency_use_frame(model, sequences, 0),
                "qk_plane": lambda: qk_plane_frame(model, sequences, few, task, 0),
                "forward": lambda: model(sequences.ids),
            },
            1 if quick else REPEATS,
        )
    n = len(TrainingSpec().all_checkpoint_steps)
    each = {name: seconds.wall for name, seconds in taken.items()}
    whole = n * (each["flow"] + each["frequency use"]) + each["qk_plane"]
    small = {"longest": 20, "construction_lengths": (2, 4), "n_random": 50, "n_per_length": 50, "n_chained": 50}
    spec = TheorySpec(**small) if quick else TheorySpec()
    began = time.perf_counter()
    constructions_frame(spec, lambda line: None)
    discrepancy_frame(spec)
    theory = time.perf_counter() - began
    parts = {f"{name.replace(' ', '_')}_s": seconds for name, seconds in each.items()}
    return [
        row(
            "mechanism_paper_run",
            COMMAND,
            whole,
            n * each["forward"],
            {"ours_s": PAPER_RUN_S},
            theirs="bare forward passes",
            checkpoints=n,
            inputs=n_inputs,
            **parts,
        ),
        row("theory", COMMAND, theory, THEORY_S, {"ours_s": THEORY_S}, theirs="the time that it may take"),
    ]
