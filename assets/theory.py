"""Stage `theory`: the constructions run on inputs, and their discrepancy beside its bounds. Nothing is trained."""

from assets.stage import Check, Computed, Stage, Verdict, Work
from ops.spec.theory import TheoryExperiment


def compute(work: Work) -> Computed:
    """Both tables; a construction that is not exact on some input fails the check."""
    import polars as pl

    from ops.theory.tables import constructions_frame, discrepancy_frame

    spec = work.replicate.experiment.theory
    constructions = constructions_frame(spec, work.log)
    discrepancy = discrepancy_frame(spec)
    least = constructions["exact_share"].min()
    index = discrepancy.filter(pl.col("source") == "index")
    beyond = index.filter(pl.col("measured") > pl.col("bound_sharp") + 1e-12).height
    return Computed(
        tables={"constructions": constructions, "discrepancy": discrepancy},
        summary={"least_exact_share": least},
        verdicts={
            "constructions_exact": Verdict(least == 1, {"least_exact_share": least}),
            "sharp_bound_holds": Verdict(beyond == 0, {"rows_beyond": beyond}),
        },
    )


THEORY = Stage(
    name="theory",
    order=800,
    description="Index and Retrieval as one head with one RoPE plane, and their discrepancy (arXiv 2605.31558 Thm 3.1, "
    "3.2).",
    code=(
        "ops.theory.tables",
        *(
            f"ops.tasks.{task}.{part}"
            for task in ("number", "letter")
            for part in ("task", "mechanism", "construction")
        ),
    ),
    reads=lambda experiment: {"theory": experiment.theory.model_dump(mode="json")},
    compute=compute,
    tables=("constructions", "discrepancy"),
    checks=(
        Check("constructions_exact", "Both constructions hold the right token at every defined position."),
        Check("sharp_bound_holds", "Index's discrepancy is within 1 − cos(2π / (⌈n/2⌉ + 1)) at every n and angle."),
    ),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: isinstance(experiment, TheoryExperiment),
)
