"""Progress by the clock: a callback that hands figures to a plain callable, and a line for the terminal."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TextIO

import lightning as L
from torch import Tensor

from ops.training.pace import Pace, clock
from ops.training.validation import ValidationAccuracy


class Progress(NamedTuple):
    """Where a training is: loss and accuracy over the steps since the last report, validation accuracy by hop."""

    step: int
    steps: int
    loss: float
    accuracy: float
    steps_per_s: float
    eta_s: float
    validation: Mapping[int, float] = {}


def describe(progress: Progress) -> str:
    """One line: step 146/500 (29%) loss 1.234 acc 0.45 6.1 steps/s ETA 0:00:58."""
    share = 100 * progress.step // progress.steps
    line = (
        f"step {progress.step}/{progress.steps} ({share}%) loss {progress.loss:.3f} acc {progress.accuracy:.2f} "
        f"{progress.steps_per_s:.1f} steps/s ETA {clock(progress.eta_s)}"
    )
    if progress.validation:
        line += " validation " + " ".join(f"{hop}-hop {value:.2f}" for hop, value in progress.validation.items())
    return line


class TerminalProgress:
    """Prints a bar that redraws itself on a terminal, and plain lines anywhere else."""

    def __init__(self, stream: TextIO | None = None, width: int = 24) -> None:
        self._stream, self._width = stream, width

    def __call__(self, progress: Progress) -> None:
        """Show `progress`."""
        stream = sys.stderr if self._stream is None else self._stream
        if not stream.isatty():
            print(describe(progress), file=stream, flush=True)
            return
        filled = self._width * progress.step // progress.steps
        bar = "█" * filled + "·" * (self._width - filled)
        end = "\n" if progress.step == progress.steps else ""
        print(f"\r\x1b[K{bar} {describe(progress)}", end=end, file=stream, flush=True)


class ProgressReport(L.Callback):
    """Calls `report` at most every `every_s` seconds and at the last step; the device is read at those times only."""

    def __init__(
        self,
        report: Callable[[Progress], None],
        steps: int,
        every_s: float = 5.0,
        validation: ValidationAccuracy | None = None,
    ) -> None:
        self.report, self.steps, self.every_s, self.validation = report, steps, every_s, validation
        self._begin_window()

    def _begin_window(self) -> None:
        self._pace, self._n_steps, self._n_rows = Pace(self.every_s), 0, 0
        self._loss: Tensor | float = 0.0
        self._correct: Tensor | float = 0.0

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Start the clock."""
        self._begin_window()

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Add this step; report where due."""
        self._loss = self._loss + outputs["loss"]
        self._correct = self._correct + outputs["correct"]
        self._n_steps += 1
        self._n_rows += len(batch.labels)
        step, elapsed = trainer.global_step, self._pace.elapsed_s
        if not trainer.is_global_zero or not (step == self.steps or self._pace.due()):
            return
        rate = self._n_steps / max(elapsed, 1e-9)
        latest = {} if self.validation is None else self.validation.latest
        mean, accuracy = float(self._loss) / self._n_steps, float(self._correct) / self._n_rows
        self.report(Progress(step, self.steps, mean, accuracy, rate, (self.steps - step) / rate, latest))
        self._begin_window()
