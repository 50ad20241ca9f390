"""Stage `qk_plane`: queries and keys of each head in the RoPE plane that it uses most."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, has_mechanism


def compute(work: Work) -> Computed:
    """Project the last checkpoint's queries and keys."""
    from ops.mechanism.qk_plane import qk_plane_frame
    from ops.tasks.dataset import stratified_sample

    experiment = work.replicate.experiment
    test = dataset.load(work.inputs["dataset"], "test")
    step = checkpoints.steps(work.inputs["checkpoints"])[-1]
    frame = qk_plane_frame(
        checkpoints.load(work.inputs["checkpoints"], step),
        stratified_sample(test, experiment.frequency_use.n_inputs),
        stratified_sample(test, experiment.mechanism.n_plane_examples),
        experiment.task,
        step,
    )
    finite = bool(frame["x"].is_finite().all() and frame["y"].is_finite().all())
    return Computed(tables={"qk_plane": frame}, verdicts={"finite": Verdict(finite, {"rows": frame.height})})


QK_PLANE = Stage(
    name="qk_plane",
    order=720,
    description="Queries and keys in each head's dominant RoPE plane (arXiv 2605.31558 Fig. 4B, C).",
    code=("ops.mechanism.qk_plane", "ops.tasks.dataset", "ops.model.checkpoint", "{task}.task", "{task}.mechanism"),
    reads=lambda experiment: {
        "frequency_use": experiment.frequency_use.model_dump(mode="json"),
        "mechanism": experiment.mechanism.model_dump(mode="json", include={"n_plane_examples"}),
    },
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("qk_plane",),
    checks=(Check("finite", "Every coordinate is finite."),),
    kinds=("torch", "polars", "parquet"),
    applies=has_mechanism,
)
