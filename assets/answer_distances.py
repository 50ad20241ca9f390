"""Stage `answer_distances`: how far away answers stand, and how often the query's token alone tells it."""

from assets import dataset
from assets.stage import Computed, Stage, Work


def compute(work: Work) -> Computed:
    """Distances of the test split; what a token tells is learned from the training split."""
    from ops.tasks.answer_distances import answer_distance_frame

    splits = (dataset.load(work.inputs["dataset"], split) for split in ("train", "test"))
    frame = answer_distance_frame(*splits)
    told = {
        f"told_at_{hop}_hop{'s' if hop > 1 else ''}": (part["told_share"] * part["n"] / part["n"].sum()).sum()
        for (hop,), part in frame.group_by("hop", maintain_order=True)
    }
    return Computed(tables={"answer_distances": frame}, summary=told)


ANSWER_DISTANCES = Stage(
    name="answer_distances",
    order=120,
    description="How many positions before the query the answer stands, by hop class, and how often the query's token "
    "alone tells it: what needs no hop.",
    code=("ops.tasks.answer_distances",),
    reads=lambda _: {},
    compute=compute,
    inputs=("dataset",),
    tables=("answer_distances",),
    kinds=("torch", "polars", "parquet"),
    applies=lambda experiment: getattr(experiment, "mechanism", None) is not None,
)
