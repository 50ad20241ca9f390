"""Stage `checkpoints`: training, with the weights of every checkpoint step and the training log."""

import time
from typing import TYPE_CHECKING

from assets import dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, clock

if TYPE_CHECKING:
    from ops.model.gptj import GPTJ
    from ops.training.progress import Progress
    from warehouse.store import Artifact

TOLD_EVERY_S = 10.0
OBSERVED_EVERY_S = 60.0


def compute(work: Work) -> Computed:
    """Train, or go on training where a killed run stopped."""
    from ops.tasks.registry import vocabulary_size
    from ops.training.fit import TrainingData, fit

    experiment = work.replicate.experiment
    train = dataset.load(work.inputs["dataset"], "train")
    validation = dataset.load(work.inputs["dataset"], "validation")
    fitted = fit(
        task_data=TrainingData(train.ids, train.labels, validation.ids, validation.labels, validation.hops),
        vocabulary_size=vocabulary_size(experiment.task),
        model=experiment.model,
        training=experiment.training,
        seed=work.replicate.seed,
        workdir=work.folder,
        report=Reporter(work),
    )
    return Computed(tables={"training_log": fitted.log}, folders=("checkpoints",), summary=fitted.summary)


class Reporter:
    """Training progress in the run's log every 10 s, and on the asset (as an observation) every minute."""

    def __init__(self, work: Work):
        self.work, self.told, self.observed = work, time.monotonic(), time.monotonic()

    def __call__(self, progress: "Progress") -> None:
        now = time.monotonic()
        if now - self.told >= TOLD_EVERY_S:
            self.told = now
            self.work.log(str(progress))
        if now - self.observed >= OBSERVED_EVERY_S:
            self.observed = now
            self.work.observe({})


def steps(checkpoints: "Artifact") -> list[int]:
    """The steps that an artifact has checkpoints of, rising."""
    folders = {name.split("/")[1] for name in checkpoints.files if name.startswith("checkpoints/")}
    return sorted(int(folder.removeprefix("step_")) for folder in folders)


def load(checkpoints: "Artifact", step: int) -> "GPTJ":
    """The model of one checkpoint step, from files whose digests were checked, on the GPU if there is one."""
    import torch

    from ops.model.checkpoint import load_checkpoint

    folder = f"checkpoints/step_{step:06d}"
    checkpoints.file(f"{folder}/config.json")
    weights = checkpoints.file(f"{folder}/model.safetensors")
    return load_checkpoint(weights.parent, device="cuda" if torch.cuda.is_available() else "cpu")
