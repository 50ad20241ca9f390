"""Stage `discrepancy`: largest minus second-largest logit of the trained heads, by length."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work


def compute(work: Work) -> Computed:
    """Measure the last checkpoint's heads on lengthened inputs, and the constructions at their angles."""
    from ops.mechanism.discrepancy import trained_discrepancy_frame
    from ops.tasks.dataset import split_seed

    experiment, spec = work.replicate.experiment, work.replicate.experiment.mechanism
    step = checkpoints.steps(work.inputs["checkpoints"])[-1]
    frame = trained_discrepancy_frame(
        checkpoints.load(work.inputs["checkpoints"], step),
        experiment.task,
        spec.discrepancy_lengths,
        spec.n_discrepancy,
        split_seed(experiment.seeds_data, work.replicate.seed, "test"),
    )
    ordered = int((frame["measured_min"] > frame["measured"] + 1e-9).sum())
    return Computed(tables={"discrepancy": frame}, verdicts={"ordered": Verdict(ordered == 0, {"rows_wrong": ordered})})


DISCREPANCY = Stage(
    name="discrepancy",
    order=740,
    description="Largest minus second-largest logit of every trained head, by length (arXiv 2605.31558 Def. 3.1).",
    code=(
        "ops.mechanism.discrepancy",
        "ops.tasks.dataset",
        "ops.model.checkpoint",
        "{task}.task",
        "{task}.lengthening",
    ),
    reads=lambda experiment: {
        "mechanism": experiment.mechanism.model_dump(mode="json", include={"n_discrepancy", "discrepancy_lengths"}),
        **dataset.what_seeds(experiment),
    },
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("discrepancy",),
    checks=(Check("ordered", "Smallest ≤ largest in every row."),),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: (
        getattr(experiment, "mechanism", None) is not None and experiment.task.not_lengthened is None
    ),
)
