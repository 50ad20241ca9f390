"""Optimiser, schedule and checkpoints (arXiv 2605.31558 App. C)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ops.spec.part import SpecPart

Step = Annotated[int, Field(ge=0, le=100_000_000)]


class TrainingSpec(SpecPart):
    """AdamW with warm-up. Steps are optimiser steps; a checkpoint at step s has seen s batches."""

    steps: Annotated[int, Field(ge=1, le=100_000_000)] = 6_750
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.95, 0.999)
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 1e-4
    warmup_steps: Step = 750
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    gradient_clip: Annotated[float, Field(gt=0)] | None = 1.0
    precision: Literal["32", "bf16-mixed", "16-mixed"] = "32"
    compile: bool = False
    checkpoint_every: Annotated[int, Field(ge=1)] | None = 50
    checkpoint_steps: tuple[Step, ...] = ()
    log_every: Annotated[int, Field(ge=1)] = 10

    @property
    def all_checkpoint_steps(self) -> tuple[int, ...]:
        """Step 0, every `checkpoint_every`, the extra `checkpoint_steps` and the last step, rising."""
        regular = range(0, self.steps + 1, self.checkpoint_every) if self.checkpoint_every else ()
        return tuple(sorted({0, self.steps, *regular, *self.checkpoint_steps}))

    @property
    def all_log_steps(self) -> tuple[int, ...]:
        """The steps of the training log's rows: every `log_every` and the last step, rising."""
        return tuple(sorted({*range(self.log_every, self.steps + 1, self.log_every), self.steps}))

    @model_validator(mode="after")
    def _steps_fit(self):
        if late := [s for s in self.checkpoint_steps if s > self.steps]:
            raise ValueError(f"checkpoint_steps names step {late[0]}, but training ends at steps = {self.steps}")
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps {self.warmup_steps} is more than steps {self.steps}")
        if self.checkpoint_every is not None and self.checkpoint_every > self.steps:
            raise ValueError(
                f"checkpoint_every {self.checkpoint_every} is more than steps {self.steps}; "
                "give at most that, or null for the first and the last step alone"
            )
        return self
