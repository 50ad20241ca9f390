"""Stage `value_patching`: along which edges of which layers the answer travels, by patching attended values."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, has_mechanism


def compute(work: Work) -> Computed:
    """Patch every edge of the hop chain in every layer of the last checkpoint, and a position off the chain."""
    import polars as pl
    import torch

    from ops.mechanism.value_patching import value_patching_frame
    from ops.tasks.dataset import stratified_sample

    experiment = work.replicate.experiment
    sample = stratified_sample(dataset.load(work.inputs["dataset"], "test"), experiment.mechanism.n_patched)
    step = checkpoints.steps(work.inputs["checkpoints"])[-1]
    frame = value_patching_frame(
        checkpoints.load(work.inputs["checkpoints"], step),
        sample,
        experiment.task,
        step,
        torch.Generator().manual_seed(work.replicate.seed),
    )
    controls = frame.filter(pl.col("read_link").is_null() & pl.col("layer").is_null())["follows"].to_list()
    return Computed(
        tables={"value_patching": frame},
        verdicts={
            "control_keeps_answers": Verdict(
                max(controls, default=0) <= 0.1, {"largest_share_that_follows": max(controls, default=0.0)}
            )
        },
    )


VALUE_PATCHING = Stage(
    name="value_patching",
    order=710,
    description="What the model answers when one reader gets another answer's value in one layer (causal test of the "
    "information flow).",
    code=(
        "ops.mechanism.value_patching",
        "ops.tasks.dataset",
        "ops.model.checkpoint",
        "{task}.task",
        "{task}.mechanism",
    ),
    reads=lambda experiment: {"mechanism": experiment.mechanism.model_dump(mode="json", include={"n_patched"})},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("value_patching",),
    checks=(
        Check(
            "control_keeps_answers",
            "Patching a position off the hop chain, in all layers, changes at most 0.1 of the answers.",
            blocking=False,
        ),
    ),
    kinds=("torch", "polars", "parquet"),
    applies=has_mechanism,
)
