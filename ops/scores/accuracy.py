"""A checkpoint's accuracy and loss by hop class, as rows of the table `accuracy`."""

import polars as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ
from ops.model.rope import RotaryTable
from ops.tasks.sequences import Sequences


def answers(
    model: GPTJ, ids: Int[Tensor, "n position"], labels: Int[Tensor, " n"], rotary: RotaryTable | None = None
) -> tuple[Bool[Tensor, " n"], Float[Tensor, " n"]]:
    """Whether the last position's largest logit is the label, and its cross-entropy (nats, float64), on the CPU.

    Dropout is off. `rotary`: another table of angles than the model's. Raises ValueError on a loss that is not finite.
    """
    device = model.lm_head.weight.device
    chunk = inputs_per_chunk(model, ids.shape[1])
    right, losses = [], []
    with evaluating(model):
        for start in range(0, len(ids), chunk):
            logits = model.last_logits(ids[start : start + chunk].to(device), rotary).double()
            wanted = labels[start : start + chunk].to(device)
            right.append((logits.argmax(-1) == wanted).cpu())
            losses.append(F.cross_entropy(logits, wanted, reduction="none").cpu())
    loss = torch.cat(losses) if losses else torch.zeros(0, dtype=torch.float64)
    if not bool(loss.isfinite().all()):
        raise ValueError("the loss is not finite: the weights hold a NaN or an infinity")
    return torch.cat(right) if right else torch.zeros(0, dtype=torch.bool), loss


def accuracy_frame(model: GPTJ, sequences: Sequences, split: str, step: int) -> pl.DataFrame:
    """Rows of the table `accuracy`: one a hop class in rising order, then one over all (hop null).

    Raises ValueError without sequences, or on a loss that is not finite.
    """
    if len(sequences.ids) == 0:
        raise ValueError(f"the split {split} has no sequences")
    right, loss = answers(model, sequences.ids, sequences.labels)
    each = pl.DataFrame({"hop": sequences.hops.tolist(), "right": right.tolist(), "loss": loss.tolist()})
    facts = (pl.col("right").mean().alias("accuracy"), pl.col("loss").mean(), pl.len().cast(pl.Int64).alias("n"))
    overall = each.select(pl.lit(None, dtype=pl.Int64).alias("hop"), *facts)
    rows = pl.concat([each.group_by("hop").agg(*facts).sort("hop"), overall])
    return rows.select(pl.lit(step, dtype=pl.Int64).alias("step"), pl.lit(split).alias("split"), pl.all())
