"""Stage `checkpoints`: training, with the weights of every checkpoint step and the training log."""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assets import dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, paced
from ops.training.pace import Pace

if TYPE_CHECKING:
    from ops.model.gptj import GPTJ
    from ops.spec.training import TrainingSpec
    from ops.training.progress import Progress
    from warehouse.store import Artifact

OBSERVED_EVERY_S = 60.0


def compute(work: Work) -> Computed:
    """Train, or go on training where a killed run stopped."""
    experiment = work.replicate.experiment
    train = dataset.load(work.inputs["dataset"], "train")
    validation = dataset.load(work.inputs["dataset"], "validation")
    options: dict[str, Any] = {
        "model": experiment.model,
        "training": experiment.training,
        "seed": work.replicate.seed,
        "workdir": work.folder,
        "report": Reporter(work),
    }
    if experiment.mixed_lengths is not None:
        from ops.length.mixed_lengths import fit_mixed

        mixed = experiment.mixed_lengths
        fitted = fit_mixed(task=experiment.task, train=train, validation=validation, mixed_lengths=mixed, **options)
    else:
        from ops.tasks.task import task_of
        from ops.training.data import TrainingData
        from ops.training.fit import fit

        data = TrainingData(train.ids, train.labels, validation.ids, validation.labels, validation.hops)
        fitted = fit(task_data=data, vocabulary_size=task_of(experiment.task).vocabulary_size, **options)
    return Computed(
        tables={"training_log": fitted.log},
        folders=("checkpoints",),
        summary=fitted.summary,
        verdicts=judge(work.folder / "checkpoints", fitted.log["step"].to_list(), experiment.training),
        curves={"loss": fitted.log["loss"].to_list()},
    )


def judge(folder: Path, logged: Sequence[int], training: "TrainingSpec") -> dict[str, Verdict]:
    """The verdicts on the snapshots that lie in `folder` and the steps that were logged, against what is declared."""
    declared, log_steps = training.all_checkpoint_steps, training.all_log_steps
    digests = {
        path.parent.name: sha256(path.read_bytes()).digest() for path in sorted(folder.glob("*/model.safetensors"))
    }
    n_distinct = len(set(digests.values()))
    missing = [step for step in declared if f"step_{step:06d}" not in digests]
    complete = not missing and len(digests) == len(declared)
    counts = Counter(logged)
    wrong = sorted(step for step in {*log_steps, *counts} if counts[step] != (step in log_steps))
    return {
        "checkpoints_complete": Verdict(
            complete,
            {"n_declared": len(declared), "n_checkpoints": len(digests)}
            | ({"first_missing_step": missing[0]} if missing else {}),
        ),
        "checkpoints_distinct": Verdict(
            n_distinct == len(digests), {"n_checkpoints": len(digests), "n_distinct": n_distinct}
        ),
        "training_log_complete": Verdict(
            list(logged) == list(log_steps),
            {"n_declared": len(log_steps), "n_rows": len(logged)} | ({"first_wrong_step": wrong[0]} if wrong else {}),
        ),
    }


class Reporter:
    """Training progress: a line in the run's log each time, an observation on the asset first and every minute."""

    def __init__(self, work: Work):
        self.work = work
        self.pace = Pace(OBSERVED_EVERY_S, at_once=True)

    def __call__(self, progress: "Progress") -> None:
        """Tell of `progress`."""
        from ops.training.progress import describe

        self.work.log(f"training {self.work.replicate}: {describe(progress)}")
        if self.pace.due():
            self.work.observe(
                {
                    "step": progress.step,
                    "loss": progress.loss,
                    "accuracy": progress.accuracy,
                    "steps_per_s": progress.steps_per_s,
                    "eta_s": progress.eta_s,
                }
            )


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


def every_model(work: Work, what: str) -> "Iterator[tuple[int, GPTJ]]":
    """Each checkpoint's step and model, rising, of the input `checkpoints`; a line says now and then how far it is."""
    checkpoints = work.inputs["checkpoints"]
    for step in paced(steps(checkpoints), work, what):
        yield step, load(checkpoints, step)


CHECKPOINTS = Stage(
    name="checkpoints",
    order=200,
    description="The trained model: its weights at every checkpoint step (safetensors), and the training log.",
    code=("ops.training.recipe", "ops.training.weights", "{task}.task"),
    reads=lambda experiment: (
        {
            "model": experiment.model.model_dump(mode="json"),
            "training": experiment.training.model_dump(mode="json"),
        }
        | ({"mixed_lengths": experiment.mixed_lengths.model_dump(mode="json")} if experiment.mixed_lengths else {})
    ),
    compute=compute,
    inputs=("dataset",),
    tables=("training_log",),
    checks=(
        Check("checkpoints_complete", "Every declared checkpoint step has weights, and no other step."),
        Check("checkpoints_distinct", "No two checkpoints' weights are equal."),
        Check("training_log_complete", "The training log has every declared step once, in order."),
    ),
    kinds=("torch", "lightning", "safetensors"),
    exclusive=True,
    code_if={
        "mixed_lengths": (
            "ops.length.mixed_lengths::MixedLengths",
            "ops.length.mixed_lengths::LengthenBatches",
            "{task}.lengthening",
        )
    },
)
