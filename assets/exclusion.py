"""Stage `exclusion`: the exclusion bound on every head, and how much the scores depend on their definition."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work


def compute(work: Work) -> Computed:
    """Bound and score variants of the last checkpoint on a stratified sample."""
    import polars as pl

    from ops.mechanism.exclusion import exclusion_frames
    from ops.tasks.dataset import stratified_sample

    experiment, spec = work.replicate.experiment, work.replicate.experiment.mechanism
    sample = stratified_sample(dataset.load(work.inputs["dataset"], "test"), spec.n_exclusion)
    step = checkpoints.steps(work.inputs["checkpoints"])[-1]
    model = checkpoints.load(work.inputs["checkpoints"], step)
    bounds, variants = exclusion_frames(
        model, sample, experiment.scoring.taus, spec.n_permutations, step, work.replicate.seed
    )
    least = bounds["within_share"].min()
    tightest = bounds["tightest"].max()
    away = bounds.select(((pl.col("sampled_bound") - pl.col("bound")) / pl.col("sampled_error")).abs().max()).item()
    return Computed(
        tables={"exclusion": bounds, "score_variants": variants},
        summary={"tightest": tightest, "sampled_away_in_errors": away},
        verdicts={"within_bound": Verdict(least == 1, {"least_share_within": least, "tightest": tightest})},
    )


EXCLUSION = Stage(
    name="exclusion",
    order=730,
    description="Variance of every head's logits beside the exclusion bound (arXiv 2511.11579 Thm 1), and the scores "
    "by other definitions.",
    code=("ops.mechanism.exclusion", "ops.tasks.dataset", "ops.model.checkpoint"),
    reads=lambda experiment: {
        "taus": list(experiment.scoring.taus),
        "mechanism": experiment.mechanism.model_dump(mode="json", include={"n_exclusion", "n_permutations"}),
    },
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("exclusion", "score_variants"),
    checks=(Check("within_bound", "The variance is within the bound for every head and input."),),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: getattr(experiment, "mechanism", None) is not None,
)
