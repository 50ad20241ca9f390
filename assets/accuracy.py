"""Stage `accuracy`: every checkpoint's accuracy and loss by split and hop class."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work

REACHED = 0.99


def compute(work: Work) -> Computed:
    """Evaluate each checkpoint on stratified parts of validation and test, the last on the whole test split."""
    import polars as pl

    from ops.scores.accuracy import accuracy_frame
    from ops.tasks.dataset import stratified_sample

    spec = work.replicate.experiment.accuracy
    test = dataset.load(work.inputs["dataset"], "test")
    validation = dataset.load(work.inputs["dataset"], "validation")
    if spec.n_validation:
        validation = stratified_sample(validation, spec.n_validation)
    sample = stratified_sample(test, spec.n_test)
    last = checkpoints.steps(work.inputs["checkpoints"])[-1]
    frames = []
    for step, model in checkpoints.every_model(work, "accuracy of checkpoint"):
        whole = spec.last_on_all and step == last
        frames.append(accuracy_frame(model, validation, "val", step))
        frames.append(accuracy_frame(model, test if whole else sample, "test", step))
    frame = pl.concat(frames)
    tested = frame.filter(pl.col("split") == "test").sort("step")
    by_hop = {
        "all" if hop is None else f"{hop} hop{'s' if hop > 1 else ''}": part["accuracy"].to_list()
        for (hop,), part in tested.group_by("hop", maintain_order=True)
    }
    final = {name: values[-1] for name, values in by_hop.items()}
    return Computed(
        tables={"accuracy": frame},
        summary={"final_accuracy": final},
        verdicts={"accuracy_reached": Verdict(min(final.values()) >= REACHED, final)},
        curves=by_hop,
    )


ACCURACY = Stage(
    name="accuracy",
    order=300,
    description="Accuracy and loss of every checkpoint on the validation and test splits, by hop class.",
    code=("ops.scores.accuracy", "ops.tasks.dataset", "ops.model.checkpoint"),
    reads=lambda experiment: {"accuracy": experiment.accuracy.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("accuracy",),
    checks=(
        Check(
            "accuracy_reached", f"The last checkpoint's test accuracy is {REACHED} in every hop class.", blocking=False
        ),
    ),
    kinds=("torch", "polars", "parquet"),
)
