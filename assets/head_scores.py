"""Stage `head_scores`: how positionally and how symbolically each head of each checkpoint acts."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work

TOLERANCE = 1e-9
BRUTE_FORCE_TOLERANCE, N_BRUTE_FORCE = 1e-6, 8


def compute(work: Work) -> Computed:
    """Score the heads of each checkpoint on a stratified sample of the test split."""
    import polars as pl

    from ops.scores.brute_force import brute_force_error
    from ops.scores.table import head_scores_frame
    from ops.tasks.dataset import stratified_sample

    spec = work.replicate.experiment.scoring
    sample = stratified_sample(dataset.load(work.inputs["dataset"], "test"), spec.n_inputs)
    frame = pl.concat(
        [
            head_scores_frame(model, sample, spec, step)
            for step, model in checkpoints.every_model(work, "head scores of checkpoint")
        ]
    )
    few = stratified_sample(sample, min(N_BRUTE_FORCE, len(sample.ids)))
    last = checkpoints.steps(work.inputs["checkpoints"])[-1]
    error = brute_force_error(checkpoints.load(work.inputs["checkpoints"], last), few.ids, spec.taus, spec.eps)
    least_sum = float(frame.select("positional_score", "symbolic_score").to_numpy().sum(1).min())
    return Computed(
        tables={"head_scores": frame},
        verdicts={
            "scores_match_brute_force": Verdict(
                error <= BRUTE_FORCE_TOLERANCE, {"largest_difference": error, "n_inputs": len(few.ids)}
            ),
            "scores_sum_to_one": Verdict(least_sum >= 1 - TOLERANCE, {"least_sum": least_sum}),
        },
    )


HEAD_SCORES = Stage(
    name="head_scores",
    order=310,
    description="Positional and symbolic score of every head at every checkpoint (arXiv 2511.11579 §3), exact.",
    code=("ops.scores.table", "ops.scores.brute_force", "ops.tasks.dataset", "ops.model.checkpoint"),
    reads=lambda experiment: {"scoring": experiment.scoring.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("head_scores",),
    checks=(
        Check(
            "scores_match_brute_force",
            "The last checkpoint's scores of eight inputs agree to 1e-6 with every layer run again for every swap.",
        ),
        Check("scores_sum_to_one", "Positional + symbolic score is at least 1 for every head."),
    ),
    kinds=("torch", "polars", "parquet"),
)
