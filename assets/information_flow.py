"""Stage `information_flow`: which token each position holds, layer by layer, beside the ideal flow."""

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, has_mechanism


def compute(work: Work) -> Computed:
    """Agreement of every checkpoint on a stratified sample; the whole flow of a few examples at the last one."""
    import polars as pl

    from ops.mechanism.information_flow import flow_agreement_frame, information_flow_frame
    from ops.tasks.dataset import stratified_sample

    experiment = work.replicate.experiment
    test = dataset.load(work.inputs["dataset"], "test")
    sample = stratified_sample(test, experiment.mechanism.n_flow)
    steps = checkpoints.steps(work.inputs["checkpoints"])
    agreement = pl.concat(
        [
            flow_agreement_frame(model, sample, experiment.task, step)
            for step, model in checkpoints.every_model(work, "information flow of checkpoint")
        ]
    )
    examples = stratified_sample(test, experiment.mechanism.n_flow_examples)
    last = checkpoints.load(work.inputs["checkpoints"], steps[-1])
    held = max(agreement.filter(pl.col("step") == steps[-1])["answer_held"].to_list())
    return Computed(
        tables={
            "flow_agreement": agreement,
            "information_flow": information_flow_frame(last, examples, experiment.task, steps[-1]),
        },
        summary={"answer_held": held},
        verdicts={"answer_arrives": Verdict(held >= 0.9, {"largest_share_over_layers": held})},
        curves={
            f"layer {layer}": part["agreement"].to_list()
            for (layer,), part in agreement.group_by("layer", maintain_order=True)
        },
    )


INFORMATION_FLOW = Stage(
    name="information_flow",
    order=700,
    description="Which token each position holds after each layer, and how far that is the ideal flow "
    "(arXiv 2605.31558 §3.2).",
    code=(
        "ops.mechanism.information_flow",
        "ops.tasks.dataset",
        "ops.model.checkpoint",
        "{task}.task",
        "{task}.mechanism",
    ),
    reads=lambda experiment: {
        "mechanism": experiment.mechanism.model_dump(mode="json", include={"n_flow", "n_flow_examples"})
    },
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("flow_agreement", "information_flow"),
    checks=(
        Check(
            "answer_arrives",
            "After some layer of the last checkpoint the last token holds the answer on at least 0.9 of the inputs.",
            blocking=False,
        ),
    ),
    kinds=("torch", "polars", "parquet"),
    applies=has_mechanism,
)
