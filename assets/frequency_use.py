"""Stage `frequency_use`: which RoPE frequencies each head of each checkpoint uses."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work


def compute(work: Work) -> Computed:
    """Measure the largest contribution of every RoPE plane, checkpoint by checkpoint."""
    import polars as pl

    from ops.scores.frequency import frequency_use_frame
    from ops.tasks.dataset import stratified_sample

    n_inputs = work.replicate.experiment.frequency_use.n_inputs
    sample = stratified_sample(dataset.load(work.inputs["dataset"], "test"), n_inputs)
    frame = pl.concat(
        [
            frequency_use_frame(model, sample, step)
            for step, model in checkpoints.every_model(work, "frequency use of checkpoint")
        ]
    )
    ordered = frame.filter((pl.col("q25") > pl.col("q50")) | (pl.col("q50") > pl.col("q75"))).height
    return Computed(
        tables={"frequency_use": frame},
        verdicts={"quartiles_ordered": Verdict(ordered == 0, {"rows_out_of_order": ordered})},
    )


FREQUENCY_USE = Stage(
    name="frequency_use",
    order=320,
    description="Largest contribution of every RoPE plane to the last query's logits (arXiv 2605.31558 App. G).",
    code=("ops.scores.frequency", "ops.tasks.dataset", "ops.model.checkpoint"),
    reads=lambda experiment: {"frequency_use": experiment.frequency_use.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("frequency_use",),
    checks=(Check("quartiles_ordered", "q25 ≤ q50 ≤ q75 in every row."),),
    kinds=("torch", "polars", "parquet"),
)
