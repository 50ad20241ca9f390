"""Stage `canonical`: one-head models trained on a canonical task, one for each set of RoPE angles."""

from assets.stage import Check, Computed, Stage, Verdict, Work
from ops.spec.canonical import CanonicalExperiment, CanonicalSweepSpec
from ops.training.pace import Pace

TOLD_EVERY_S = 10.0


def compute(work: Work) -> Computed:
    """Train all models of the sweep side by side, then measure accuracy by answer position, scores and planes."""
    import polars as pl

    from ops.canonical.sweep import sweep

    spec: CanonicalSweepSpec = work.replicate.experiment.canonical
    pace = Pace(TOLD_EVERY_S)

    def report(line: str) -> None:
        if pace.due():
            work.log(line)

    accuracy, planes, n_parameters = sweep(spec, work.replicate.seed, report)
    overall = accuracy.filter(pl.col("answer_position").is_null())
    single = overall.filter(pl.col("frequency_ids").list.len() == 1).sort("thetas", descending=True)
    best = overall["accuracy"].max()
    chance = overall["chance"][0]
    return Computed(
        tables={"canonical_accuracy": accuracy, "canonical_plane": planes},
        summary={"n_models": overall.height, "n_parameters": n_parameters, "best_accuracy": best},
        verdicts={"some_model_learns": Verdict(best > 2 * chance, {"best": best, "chance": chance})},
        curves={"accuracy, fastest angle first": single["accuracy"].to_list()},
    )


CANONICAL = Stage(
    name="canonical",
    order=500,
    description="One-layer, one-head, attention-only models on a canonical task, by RoPE angle (arXiv 2511.11579 §5).",
    code=("ops.canonical.sweep",),
    reads=lambda experiment: {"canonical": experiment.canonical.model_dump(mode="json")},
    compute=compute,
    tables=("canonical_accuracy", "canonical_plane"),
    checks=(Check("some_model_learns", "The best set of angles is right more than twice as often as a guess."),),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: isinstance(experiment, CanonicalExperiment),
)
