"""Stage `head_scores`: how positionally and how symbolically each head of each checkpoint acts."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, paced

TOLERANCE = 1e-9


def compute(work: Work) -> Computed:
    """Score the heads of each checkpoint on a stratified sample of the test split."""
    import polars as pl

    from ops.scores.table import head_scores_frame
    from ops.tasks.dataset import stratified_sample

    spec = work.replicate.experiment.scoring
    sample = stratified_sample(dataset.load(work.inputs["dataset"], "test"), spec.n_inputs)
    steps = checkpoints.steps(work.inputs["checkpoints"])
    frame = pl.concat(
        [
            head_scores_frame(checkpoints.load(work.inputs["checkpoints"], step), sample, spec, step)
            for step in paced(steps, work, "head scores of checkpoint")
        ]
    )
    scores = frame.select("positional", "symbolic").to_numpy()
    lowest, highest = float(scores.min()), float(scores.max())
    least_sum = float(scores.sum(1).min())
    return Computed(
        tables={"head_scores": frame},
        verdicts={
            "scores_in_range": Verdict(
                lowest >= -1 - TOLERANCE and highest <= 1 + TOLERANCE, {"lowest": lowest, "highest": highest}
            ),
            "scores_sum_to_one": Verdict(least_sum >= 1 - TOLERANCE, {"least_sum": least_sum}),
        },
    )


HEAD_SCORES = Stage(
    name="head_scores",
    description="Positional and symbolic score of every head at every checkpoint (arXiv 2511.11579 §3), exact.",
    code=("ops.scores.table", "ops.tasks.dataset", "ops.model.checkpoint"),
    reads=lambda experiment: {"scoring": experiment.scoring.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("head_scores",),
    checks=(
        Check("scores_in_range", "Every score lies in [-1, 1]."),
        Check("scores_sum_to_one", "Positional + symbolic score is at least 1 for every head."),
    ),
    kinds=("torch", "polars", "parquet"),
)
