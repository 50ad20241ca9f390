"""Stage `length`: accuracy and attention at lengths far beyond the trained one."""

import time

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work, no_rows, paced
from ops.spec.study import ExperimentSpec
from ops.training.pace import clock

TOLERANCE = 1e-3
CHECKED_UP_TO = 1_000


def compute(work: Work) -> Computed:
    """Evaluate the last checkpoint at every length in every declared way, and earlier ones plainly, on request."""
    import polars as pl

    from ops.length.accuracy import (
        accuracy_rows,
        right_behind,
        right_when_moved,
        shared_prefix_error,
        valid_paths,
    )
    from ops.length.heads import head_rows
    from ops.length.lengthening import lengthen
    from ops.tasks.dataset import split_seed

    experiment = work.replicate.experiment
    task, spec = experiment.task, experiment.length
    lengths = list(spec.lengths)
    seed = split_seed(experiment.seeds_data, work.replicate.seed, "test").spawn(1)[0]
    inputs = lengthen(task, lengths[-1], n_prefixes=spec.n_prefixes, n_sequences=spec.n_sequences, seed=seed)
    steps = checkpoints.steps(work.inputs["checkpoints"])
    model = checkpoints.load(work.inputs["checkpoints"], steps[-1])

    frames = []
    for change in (None, *spec.inference):
        began = time.monotonic()
        tried = inputs.first(spec.n_inference_sequences) if change else inputs
        right = right_behind(model, tried, lengths, change)
        name = change.name if change else "none"
        work.log(
            f"lengths of {work.replicate}, change at inference {name}: {len(lengths)} lengths x {tried.hops.numel()} "
            f"sequences in {clock(time.monotonic() - began)}"
        )
        frames.append(accuracy_rows(right, tried.hops, lengths, step=steps[-1], lengthening="inert", inference=name))
    if spec.active is not None:
        right, hops = right_when_moved(model, task, spec.active, seed)
        frames.append(accuracy_rows(right, hops, list(spec.active.lengths), step=steps[-1], lengthening="active"))
    earlier = [step for step in steps[:-1] if spec.every and step % spec.every == 0]
    for step in paced(earlier, work, "lengths of checkpoint"):
        right = right_behind(checkpoints.load(work.inputs["checkpoints"], step), inputs, lengths)
        frames.append(accuracy_rows(right, inputs.hops, lengths, step=step, lengthening="inert"))
    accuracy = pl.concat([frame for frame, _ in frames])
    heads = head_rows(model, inputs, lengths, spec.n_head_sequences, steps[-1]) if spec.n_head_sequences else None

    plain = accuracy.filter(
        (pl.col("lengthening") == "inert") & (pl.col("inference") == "none") & (pl.col("step") == steps[-1])
    )
    overall = plain.filter(pl.col("hop").is_null()).sort("length")
    error = shared_prefix_error(model, inputs, [length for length in lengths if length <= CHECKED_UP_TO] or lengths[:1])
    return Computed(
        tables={
            "length_accuracy": accuracy,
            "length_accuracy_by_prefix": pl.concat([frame for _, frame in frames]),
            "length_heads": heads if heads is not None else no_rows("length_heads"),
        },
        summary={
            f"accuracy_at_{length}": share for length, share in zip(overall["length"], overall["accuracy"], strict=True)
        },
        verdicts={
            "paths_at_length": Verdict(valid_paths(task, inputs), {"longest": lengths[-1]}),
            "shared_prefix_exact": Verdict(error <= TOLERANCE, {"largest_difference": error}),
        },
        curves={"all hops": overall["accuracy"].to_list()}
        | {
            f"{hop} hop{'s' if hop > 1 else ''}": part.sort("length")["accuracy"].to_list()
            for (hop,), part in plain.drop_nulls("hop").group_by("hop", maintain_order=True)
        },
    )


LENGTH = Stage(
    name="length",
    order=410,
    description="Accuracy and attention with the target window lengthened in front, to thousands of tokens "
    "(arXiv 2605.31558 §3.6).",
    code=(
        "ops.length.accuracy",
        "ops.length.heads",
        "ops.length.lengthening",
        "ops.tasks.dataset",
        "ops.model.checkpoint",
        "{task}.task",
        "{task}.lengthening",
    ),
    reads=lambda experiment: {
        "task": experiment.task.model_dump(mode="json"),
        "length": experiment.length.model_dump(mode="json"),
        **dataset.what_seeds(experiment),
    },
    compute=compute,
    inputs=("checkpoints",),
    tables=("length_accuracy", "length_accuracy_by_prefix", "length_heads"),
    checks=(
        Check("paths_at_length", "The oracle finds one path, to the label, in every input of the longest length."),
        Check(
            "shared_prefix_exact",
            f"Logits behind a shared prefix equal those of the plain forward pass to {TOLERANCE}.",
        ),
    ),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: isinstance(experiment, ExperimentSpec) and experiment.length is not None,
)
