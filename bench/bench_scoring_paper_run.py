"""All checkpoints of a paper run, scored: time, bytes stored, peak memory of this process, which does nothing else.

Each checkpoint is read from its files, as the stage `head_scores` reads them; the table is written as it is stored.
A few models stand for all, since random weights cost what trained ones do.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import torch

from bench.measure import REPEATS, interleaved, row
from ops.model.checkpoint import load_checkpoint, save_checkpoint
from ops.model.gptj import GPTJ
from ops.scores.table import head_scores_frame
from ops.spec.evaluation import ScoringSpec
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.tables.tables import frame_for, write_table
from ops.tasks import number

COMMAND = "python -m bench scoring_paper_run"
N_INPUTS, N_MODELS = 1_200, 4
BARS = {"ours_s": 480.0, "bytes": 60e6, "peak_bytes": 3e9}


def peak_bytes() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """`scoring_paper_run`; theirs is the bare forward pass of as many checkpoints, scaled from a few."""
    steps, n_inputs = TrainingSpec().all_checkpoint_steps, N_INPUTS
    if quick:
        steps, n_inputs = steps[:3], 16
    sequences, spec = number.generate(n_inputs, seed=0), ScoringSpec()
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(seed) for seed in range(N_MODELS)]
        for seed, folder in enumerate(folders):
            torch.manual_seed(seed)
            save_checkpoint(GPTJ(ModelSpec(), number.vocabulary_size()), folder)
        began, cpu = time.perf_counter(), time.process_time()
        frames = [
            head_scores_frame(load_checkpoint(folders[n % N_MODELS]), sequences, spec, step)
            for n, step in enumerate(steps)
        ]
        stored = write_table(Path(name), "head_scores", frame_for("head_scores", pl.concat(frames), "paper_number", 0))
        ours, ours_cpu = time.perf_counter() - began, time.process_time() - cpu
        measured = {"bytes": stored.stat().st_size, "peak_bytes": peak_bytes(), "ours_cpu_s": ours_cpu}
        model = load_checkpoint(folders[0])
    with torch.inference_mode():
        forward = interleaved({"forward": lambda: model(sequences.ids)}, REPEATS)["forward"].wall
    size = {"checkpoints": len(steps), "inputs": n_inputs, "taus": len(spec.taus), "queries": list(spec.queries)}
    theirs = f"bare forward pass, scaled from {REPEATS}"
    return [row("scoring_paper_run", COMMAND, ours, forward * len(steps), BARS, theirs=theirs, **measured, **size)]
