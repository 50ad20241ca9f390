"""Queries and keys of each head in the RoPE plane that it uses most (arXiv 2605.31558 Fig. 4B, C)."""

import polars as pl
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ
from ops.scores.frequency import frequency_use
from ops.spec.task import TaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of


def dominant_planes(use: Float[Tensor, "layer head plane"]) -> Int[Tensor, "layer head"]:
    """The plane (from 0) of each head whose largest contribution to a logit is the largest on average."""
    return use.argmax(-1)


def qk_plane_frame(model: GPTJ, use_on: Sequences, examples: Sequences, task: TaskSpec, step: int) -> pl.DataFrame:
    """Rows of `qk_plane` on `examples`; the dominant plane is chosen on `use_on`. Coordinates are before RoPE.

    `points_back`: how many positions back the input's own token points (the ideal function), NULL if nowhere.
    """
    planes = dominant_planes(frequency_use(model, use_on.ids).mean)
    names, mechanism = task_of(task).vocabulary, task_of(task).mechanism
    kinds = mechanism.token_kinds
    n, length = examples.ids.shape
    positions = torch.arange(length).expand(n, length)
    back = (positions - mechanism.ideal_hop(examples.ids).attends_to).flatten().tolist()
    tokens = examples.ids.flatten().tolist()
    shared = {
        "step": step,
        "example": torch.arange(n)[:, None].expand(n, length).flatten().tolist(),
        "position": positions.flatten().tolist(),
        "token": [names[i] for i in tokens],
        "token_kind": [kinds[i] for i in tokens],
        "points_back": [k if k > 0 else None for k in back],
    }
    parts = []
    with evaluating(model):
        for state in model.layers(examples.ids.to(model.lm_head.weight.device)):
            for head in range(model.spec.n_heads):
                plane = int(planes[state.layer, head])
                for role, vectors in (("query", state.query), ("key", state.key)):
                    x, y = vectors[:, head, :, 2 * plane : 2 * plane + 2].to("cpu", torch.float64).unbind(-1)
                    parts.append(
                        pl.DataFrame(
                            shared
                            | {
                                "layer": state.layer,
                                "head": head,
                                "role": role,
                                "frequency_id": plane + 1,
                                "theta": float(model.rotary.theta[state.layer, head, plane]),
                                "x": x.flatten().tolist(),
                                "y": y.flatten().tolist(),
                            },
                            schema_overrides={"points_back": pl.Int64},
                        )
                    )
    return pl.concat(parts)
