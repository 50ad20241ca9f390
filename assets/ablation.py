"""Stage `ablation`: the trained model's accuracy and scores with RoPE frequencies removed or frozen at inference."""

from typing import TYPE_CHECKING

from assets import checkpoints, dataset
from assets.stage import Check, Computed, Stage, Verdict, Work
from ops.spec.study import ExperimentSpec
from ops.training.pace import Countdown

if TYPE_CHECKING:
    import polars as pl


def compute(work: Work) -> Computed:
    """Sweep bands, modes and places on the last checkpoint; then score the heads under some of them."""
    import polars as pl

    from ops.ablation.table import accuracy_under_ablation, scores_under_ablation

    spec = work.replicate.experiment.ablation
    test = dataset.load(work.inputs["dataset"], "test")
    step = checkpoints.steps(work.inputs["checkpoints"])[-1]
    model = checkpoints.load(work.inputs["checkpoints"], step)
    accuracy = accuracy_under_ablation(model, test, spec, step, Countdown("ablation", work.log))
    scores = scores_under_ablation(model, test, spec, step, Countdown("scores under ablation", work.log))
    overall = accuracy.filter(pl.col("hop").is_null())
    intact = overall.filter(pl.col("mode") == "none")["accuracy"][0]
    lowest = overall.filter(pl.col("mode") != "none")["accuracy"].min()
    return Computed(
        tables={"frequency_ablation": accuracy, "ablation_scores": scores},
        summary={"n_ablations": overall.height - 1, "intact_accuracy": intact, "lowest_accuracy": lowest},
        verdicts={
            "something_changes": Verdict(lowest < intact, {"intact": intact, "lowest": lowest}),
        },
        curves=curves(accuracy, model.spec.n_layers),
    )


def curves(accuracy: "pl.DataFrame", n_layers: int) -> dict[str, list[float]]:
    """Accuracy over all layers and hop classes by band, fastest first, of the narrowest bands: a line a mode."""
    import polars as pl

    bands = accuracy.filter(
        pl.col("hop").is_null() & (pl.col("layers").list.len() == n_layers) & pl.col("heads").is_null()
    ).with_columns(width=pl.col("band_high") - pl.col("band_low"))
    narrow = bands.filter(pl.col("width") == pl.col("width").min()).sort("band_low")
    return {str(mode): part["accuracy"].to_list() for (mode,), part in narrow.group_by("mode", maintain_order=True)}


ABLATION = Stage(
    name="ablation",
    order=400,
    description="Accuracy and head scores with bands of RoPE frequencies removed or frozen (arXiv 2511.11579 §5).",
    code=("ops.ablation.table", "ops.model.checkpoint"),
    reads=lambda experiment: {"ablation": experiment.ablation.model_dump(mode="json")},
    compute=compute,
    inputs=("dataset", "checkpoints"),
    tables=("frequency_ablation", "ablation_scores"),
    checks=(Check("something_changes", "Some ablation lowers the accuracy.", blocking=False),),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: isinstance(experiment, ExperimentSpec) and experiment.ablation is not None,
)
