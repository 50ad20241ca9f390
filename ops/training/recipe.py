"""What decides a training: model, data, optimiser, schedule, precision, log. Nothing here tells of it or protects it.

`ops.training.fit` wraps this from outside: progress, signals, locks, resumable states, durable writing. A cache key
covers this module and `ops.training.weights`, and so no edit of those.
"""

from typing import Any, NamedTuple

from lightning.pytorch.plugins.precision import MixedPrecision
from torch.amp.grad_scaler import GradScaler

from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import SequenceData, TrainingData
from ops.training.log import TrainingLog
from ops.training.module import LastTokenTraining, initial_model


class Recipe(NamedTuple):
    """The parts of a training: Lightning's module and data, the callback that keeps the log, the Trainer's settings."""

    module: LastTokenTraining
    data: SequenceData
    log: TrainingLog
    settings: dict[str, Any]


def recipe(
    task_data: TrainingData,
    vocabulary_size: int,
    model: ModelSpec,
    training: TrainingSpec,
    seed: int,
    accelerator: str,
) -> Recipe:
    """The training of `model` on `task_data`; `accelerator` is the kind of device (cpu, cuda, mps).

    Batches, dropout masks, learning rates and initial weights are functions of the seed and the step.
    Source of the recipe: arXiv:2605.31558 App. C.
    """
    plugins: list[Any] = []
    precision: Any = training.precision
    if precision == "16-mixed" and accelerator == "cpu":
        # Lightning silently swaps fp16 for bf16 on a CPU; torch can do fp16 there.
        plugins, precision = [MixedPrecision("16-mixed", "cpu", GradScaler("cpu"))], None
    return Recipe(
        LastTokenTraining(initial_model(model, vocabulary_size, seed), training, seed),
        SequenceData(task_data, training.batch_size, training.steps, seed),
        TrainingLog(training),
        {
            "accelerator": accelerator,
            "precision": precision,
            "plugins": plugins,
            "max_steps": training.steps,
            "use_distributed_sampler": False,
        },
    )
