"""Accuracy by length as rows: the plain model, changes at inference, and the active lengthening."""

import polars as pl
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ops.length.lengthening import Lengthened, joined, lengthen, move_answers, solve_lengthened
from ops.length.prefixes import logits_behind, prefixes_at
from ops.length.stretch import stretched
from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ
from ops.model.rope import RotaryTable
from ops.scores.accuracy import answers
from ops.spec.length import ActiveSpec, InferenceSpec
from ops.spec.task import TaskSpec
from ops.statistics.clustered import clustered_interval
from ops.tasks.sequences import Seed

PLAIN = "none"


def right_behind(
    model: GPTJ, inputs: Lengthened, lengths: list[int], change: InferenceSpec | None = None
) -> Bool[Tensor, "length prefix sequence"]:
    """Whether the model names each sequence's label at each whole length, with a change at inference if one is given.

    `lengths` are whole lengths, the sequence included. Raises ValueError on logits that are not finite.
    """
    width = inputs.ids.shape[2]

    def table_at(n: int) -> RotaryTable:
        assert change is not None
        return stretched(model.rotary, change, n + width, width)

    right = torch.empty(len(lengths), *inputs.labels.shape, dtype=torch.bool)
    for p, (prefix_ids, ids, labels) in enumerate(zip(inputs.prefixes, inputs.ids, inputs.labels, strict=True)):
        numbers = [length - width for length in lengths]
        for i, (prefix, table) in enumerate(prefixes_at(model, prefix_ids, numbers, table_at if change else None)):
            logits = logits_behind(model, prefix, ids, table)
            if not bool(logits.isfinite().all()):
                raise ValueError(f"logits are not finite at {lengths[i]} tokens: the weights hold a NaN or an infinity")
            right[i, p] = logits.argmax(-1).cpu() == labels
    return right


def right_when_moved(
    model: GPTJ, task: TaskSpec, active: ActiveSpec, seed: Seed
) -> tuple[Bool[Tensor, "length prefix sequence"], Int[Tensor, "prefix sequence"]]:
    """Whether the model names the label of inputs lengthened the active way, and the hop class of each.

    Every input is walked by the oracle first. Raises ValueError if one has no unique path to its label.
    """
    inputs = lengthen(task, active.lengths[-1], n_prefixes=active.n_prefixes, n_sequences=active.n_sequences, seed=seed)
    right = []
    for length in active.lengths:
        moved = move_answers(task, inputs, length, seed)
        ids, labels = moved.ids.flatten(0, 1), moved.labels.flatten()
        if bool((solve_lengthened(task, ids).answer != labels).any()):
            raise ValueError(f"the path of an input of {length} tokens does not end at its label")
        right.append(answers(model, ids, labels)[0].reshape(moved.labels.shape))
    return torch.stack(right), inputs.hops


def valid_paths(task: TaskSpec, inputs: Lengthened) -> bool:
    """Whether the oracle, walking every input at the longest length, finds one path, to the label.

    A shorter input is the same one without some tokens of its window, so its path is unique too.
    Raises ValueError naming a row without a unique path.
    """
    longest = inputs.prefixes.shape[1] + inputs.ids.shape[2]
    for p, labels in enumerate(inputs.labels):
        one = Lengthened(*(column[p : p + 1] for column in inputs))
        if bool((solve_lengthened(task, joined(one, longest)[0]).answer != labels).any()):
            return False
    return True


def shared_prefix_error(model: GPTJ, inputs: Lengthened, lengths: list[int], n_rows: int = 2) -> float:
    """Largest difference over `n_rows` sequences and `lengths` between logits behind a shared prefix and plain ones."""
    width, worst = inputs.ids.shape[2], 0.0
    numbers = [length - width for length in lengths]
    for length, (prefix, _) in zip(lengths, prefixes_at(model, inputs.prefixes[0], numbers), strict=True):
        shared = logits_behind(model, prefix, inputs.ids[0, :n_rows])
        with evaluating(model):
            plain = model.last_logits(joined(inputs, length)[0, :n_rows].to(shared.device))
        worst = max(worst, float((shared - plain).abs().max()))
    return worst


def accuracy_rows(
    right: Bool[Tensor, "length prefix sequence"],
    hops: Int[Tensor, "prefix sequence"],
    lengths: list[int],
    *,
    step: int,
    lengthening: str,
    inference: str = PLAIN,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `length_accuracy` and of `length_accuracy_by_prefix`, for each hop class and over all (hop null)."""
    whole, by_prefix = [], []
    for i, length in enumerate(lengths):
        for hop in (None, *hops.unique().tolist()):
            chosen = torch.ones_like(hops, dtype=torch.bool) if hop is None else hops == hop
            n, n_right = chosen.sum(1), (right[i] & chosen).sum(1)
            kept = n > 0
            share, low, high = clustered_interval(n_right[kept], n[kept])
            what = {
                "step": step, "lengthening": lengthening, "inference": inference, "length": length, "hop": hop,
            }  # fmt: skip
            whole.append(
                what
                | {
                    "accuracy": share, "ci_low": low, "ci_high": high, "n": int(n.sum()), "n_prefixes": int(kept.sum()),
                }
            )  # fmt: skip
            by_prefix += [
                what | {"prefix": p, "n_right": int(n_right[p]), "n": int(n[p])} for p in range(len(n)) if kept[p]
            ]
    return pl.DataFrame(whole, infer_schema_length=None), pl.DataFrame(by_prefix, infer_schema_length=None)
