"""Stage `shortcuts`: how far rules get that follow no path, or only a part of it."""

from assets import dataset
from assets.stage import Computed, Stage, Work
from ops.spec.study import ExperimentSpec


def compute(work: Work) -> Computed:
    """The accuracy of every shortcut on the test split."""
    import polars as pl

    from ops.tasks.shortcuts import shortcut_accuracy

    task = work.replicate.experiment.task
    frame = shortcut_accuracy(task, dataset.load(work.inputs["dataset"], "test"))
    return Computed(tables={"shortcut_accuracy": frame.with_columns(task=pl.lit(task.name))})


SHORTCUTS = Stage(
    name="shortcuts",
    order=110,
    description="Accuracy of rules that answer without following the whole path, beside which a model's must be read.",
    code=("ops.tasks.shortcuts", "{task}.task", "{task}.shortcuts"),
    reads=lambda experiment: {"task": experiment.task.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset",),
    tables=("shortcut_accuracy",),
    kinds=("python", "polars", "parquet"),
    applies=lambda experiment: isinstance(experiment, ExperimentSpec) and bool(experiment.task.module("shortcuts")),
)
