"""The training log, and the stop with an error when the numbers leave the finite or the useful."""

import math
import time
from typing import Any

import lightning as L
import polars as pl
from torch import Tensor

from ops.spec.training import TrainingSpec
from ops.training.module import LastTokenTraining
from ops.training.schedule import learning_rate

LOG_SCHEMA = {
    "step": pl.Int64,
    "loss": pl.Float64,
    "learning_rate": pl.Float64,
    "steps_per_s": pl.Float64,
    "grad_norm": pl.Float64,
}


class TrainingDiverged(RuntimeError):
    """The loss, a gradient or a weight is not finite, or the loss stays far above that of guessing."""


def diverged(what: str, step: int, loss: float | None, training: TrainingSpec) -> TrainingDiverged:
    """The one-sentence error: what happened, step, loss, learning rate, remedy."""
    rate = learning_rate(training, max(step - 1, 0))
    shown = "" if loss is None else f", loss {loss:.4g}"
    remedy = "lower learning_rate, lengthen warmup_steps or set gradient_clip"
    if training.precision == "16-mixed":
        remedy += ', or train with precision "bf16-mixed" or "32"'
    return TrainingDiverged(f"{what} at step {step}{shown}, learning rate {rate:.3g}: {remedy}; nothing was kept")


class TrainingLog(L.Callback):
    """One row every `log_every` steps and at the last; the device is read at those steps only.

    `rows` have step, loss (mean over the window), learning_rate (of the window's last step), steps_per_s, grad_norm
    (of the last step, before clipping; None where the fp16 loss scaler skipped that step). Each row goes to the
    trainer's loggers as well. Raises TrainingDiverged when the window's loss or gradient is not finite, or when the
    loss has been above `tolerance` × ln(vocabulary), ten times that of guessing, for `patience` steps.
    """

    def __init__(self, training: TrainingSpec, *, tolerance: float = 10.0, patience: int = 100) -> None:
        self.training, self.tolerance, self.patience = training, tolerance, patience
        self.rows: list[dict[str, Any]] = []
        self._loss_sum: Tensor | float = 0.0
        self._norm_sum: Tensor | float = 0.0
        self._steps = 0
        self._steps_timed = 0
        self._since = 0.0

    def frame(self) -> pl.DataFrame:
        """The rows so far as a frame with the columns of LOG_SCHEMA."""
        return pl.DataFrame(self.rows, schema=LOG_SCHEMA)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Start the window's clock."""
        self._since, self._steps_timed = time.perf_counter(), 0

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Add this step to the window, and close the window where a row is due."""
        assert isinstance(pl_module, LastTokenTraining)
        assert pl_module.gradient_norm is not None
        self._loss_sum = self._loss_sum + outputs["loss"]
        self._norm_sum = self._norm_sum + pl_module.gradient_norm
        self._steps += 1
        self._steps_timed += 1
        step = trainer.global_step
        if step % self.training.log_every == 0 or step == self.training.steps:
            self._close_window(trainer, pl_module, step, float(pl_module.gradient_norm))

    def _close_window(self, trainer: L.Trainer, module: LastTokenTraining, step: int, norm: float) -> None:
        mean: Any = trainer.strategy.reduce(self._loss_sum / self._steps, reduce_op="mean")
        loss = float(mean)
        scaled = self.training.precision == "16-mixed"
        if not math.isfinite(loss):
            raise diverged("The loss is not finite", step, loss, self.training)
        if not scaled and not math.isfinite(float(self._norm_sum)):
            raise diverged("The gradient is not finite", step, loss, self.training)
        now = time.perf_counter()
        row = {
            "step": step,
            "loss": loss,
            "learning_rate": learning_rate(self.training, step - 1),
            "steps_per_s": self._steps_timed / (now - self._since),
            "grad_norm": norm if math.isfinite(norm) else None,
        }
        self.rows.append(row)
        self._raise_if_lost(module.model.vocabulary_size)
        for target in trainer.loggers:
            target.log_metrics({k: v for k, v in row.items() if k != "step" and v is not None}, step)
        self._loss_sum = self._norm_sum = 0.0
        self._steps, self._steps_timed, self._since = 0, 0, now

    def _raise_if_lost(self, vocabulary_size: int) -> None:
        guess, last = math.log(max(vocabulary_size, 2)), self.rows[-1]
        recent = [row for row in self.rows if row["step"] > last["step"] - self.patience]
        if last["step"] >= self.patience and all(row["loss"] > self.tolerance * guess for row in recent):
            raise diverged(
                f"The loss has been {self.tolerance:g} times that of guessing ({guess:.3g}) for {self.patience} steps",
                last["step"],
                last["loss"],
                self.training,
            )

    def state_dict(self) -> dict[str, Any]:
        """Rows and the open window, exactly, as JSON values."""
        sums = {"loss_sum": float(self._loss_sum), "norm_sum": float(self._norm_sum)}
        return {"rows": self.rows, **sums, "steps": self._steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state of `state_dict`."""
        self.rows = [dict(row) for row in state_dict["rows"]]
        self._steps = state_dict["steps"]
        self._loss_sum, self._norm_sum = state_dict["loss_sum"], state_dict["norm_sum"]
