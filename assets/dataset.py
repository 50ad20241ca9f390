"""Stage `dataset`: the three splits of one task."""

from pathlib import Path
from typing import TYPE_CHECKING

from assets.stage import Check, Computed, Stage, Verdict, Work
from ops.spec.study import ExperimentSpec
from ops.spec.task import TaskSpec

if TYPE_CHECKING:
    from ops.tasks.dataset import Dataset
    from ops.tasks.sequences import Sequences
    from warehouse.store import Artifact


def compute(work: Work) -> Computed:
    """Generate the splits; check the test split's paths against the oracle, every split's balance, the overlaps."""
    from ops.tasks.dataset import make_dataset, split_overlap

    experiment = work.replicate.experiment
    dataset = make_dataset(experiment.task, experiment.seeds_data, work.replicate.seed)
    folder = work.folder / "splits"
    folder.mkdir(exist_ok=True)
    for name, sequences in dataset.items():
        save(sequences, folder / f"{name}.safetensors")
    return Computed(
        folders=("splits",),
        summary={f"n_{name}": len(sequences.labels) for name, sequences in dataset.items()}
        | {f"{pair}": value for pair, value in split_overlap(dataset).items()},
        verdicts={
            "unique_paths": unique_paths(experiment.task, dataset),
            "balance": balanced(experiment.task, dataset),
        },
    )


def unique_paths(task: TaskSpec, dataset: "Dataset") -> Verdict:
    """Whether the oracle, walking every sequence, finds one path in each, and it is the generator's."""
    from ops.tasks.task import task_of

    measured: dict[str, int | str] = {}
    for split, sequences in dataset.items():
        try:
            solution = task_of(task).solve(sequences.ids)
        except ValueError as error:
            return Verdict(False, {split: str(error)})
        agree = (solution.answer == sequences.labels) & (solution.chain == sequences.chain).all(dim=1)
        measured[split] = int((~agree).sum())
    return Verdict(not any(measured.values()), measured)


def balanced(task: TaskSpec, dataset: "Dataset") -> Verdict:
    """Whether the cells (hop class × target position × answer) of each split hold equally many sequences, ±1."""
    from ops.tasks.dataset import balance

    counts = {split: balance(task, sequences) for split, sequences in dataset.items()}
    spread = {f"{split}_{name}": value for split, count in counts.items() for name, value in count.items()}
    return Verdict(all(count["most"] - count["least"] <= 1 for count in counts.values()), spread)


def what_seeds(experiment: ExperimentSpec) -> dict[str, str]:
    """What a key says of the name that seeds the data, where it is not the experiment's own."""
    return {"data_name": experiment.data_name} if experiment.data_name else {}


def save(sequences: "Sequences", path: Path) -> None:
    """Write one split, token ids as int16 where they fit."""
    import torch
    from safetensors.torch import save_file

    small = {
        name: tensor.to(torch.int16) if tensor.numel() and tensor.abs().max() < 2**15 else tensor
        for name, tensor in sequences._asdict().items()
    }
    save_file({name: tensor.contiguous() for name, tensor in small.items()}, path)


def load(dataset: "Artifact", split: str) -> "Sequences":
    """One split of a dataset artifact, as it was generated."""
    from safetensors.torch import load_file

    from ops.tasks.sequences import Sequences

    tensors = load_file(dataset.file(f"splits/{split}.safetensors"))
    return Sequences(**{name: tensor.long() for name, tensor in tensors.items()})


DATASET = Stage(
    name="dataset",
    order=100,
    description="Train, validation and test sequences from streams of their own.",
    code=("ops.tasks.dataset", "{task}.task"),
    reads=lambda experiment: {"task": experiment.task.model_dump(mode="json"), **what_seeds(experiment)},
    compute=compute,
    checks=(
        Check("unique_paths", "The oracle finds one strictly backward path in every sequence, to the label."),
        Check("balance", "Target position × answer is balanced to ±1 within every hop class of every split."),
    ),
    kinds=("python", "safetensors"),
)
