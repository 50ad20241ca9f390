"""Which RoPE frequencies a head uses: each plane's largest contribution to a logit (arXiv 2605.31558 §3.4, App. G)."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ, LayerState
from ops.model.rope import RotaryTable
from ops.tasks.sequences import Sequences


class FrequencyUse(NamedTuple):
    """Over inputs, of u = a plane's largest contribution to a logit of the last query, before the logit scale."""

    mean: Float[Tensor, "layer head plane"]
    q25: Float[Tensor, "layer head plane"]
    q50: Float[Tensor, "layer head plane"]
    q75: Float[Tensor, "layer head plane"]


def frequency_use(model: GPTJ, ids: Int[Tensor, "input position"], rotary: RotaryTable | None = None) -> FrequencyUse:
    """Mean and quartiles over inputs of each plane's largest contribution, float64, frequency ID k at plane k − 1.

    The contribution of a plane to the logit on a key is Re(q·k̄ e^{iθ(n − p)}), before the logit scale; the largest is
    taken over all keys that the last token sees, itself included. A plane that is dropped contributes 0.
    Source: arXiv 2605.31558 §3.4, App. G. Raises ValueError without inputs or on non-finite contributions.
    """
    if len(ids) == 0:
        raise ValueError("frequency use needs at least one input")
    table = model.rotary if rotary is None else rotary
    device = model.lm_head.weight.device
    chunk = inputs_per_chunk(model, ids.shape[1])
    largest: list[list[Tensor]] = [[] for _ in range(table.shape[0])]
    with evaluating(model):
        for start in range(0, len(ids), chunk):
            for state in model.layers(ids[start : start + chunk].to(device), rotary):
                largest[state.layer].append(largest_contributions(state, table))
    uses = torch.stack([torch.cat(parts) for parts in largest])  # (L, B, H, plane)
    if not bool(uses.isfinite().all()):
        raise ValueError("contributions to the logits are not finite: the weights hold a NaN or an infinity")
    at = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64, device=device)
    return FrequencyUse(uses.mean(1), *torch.quantile(uses, at, dim=1))


def largest_contributions(state: LayerState, table: RotaryTable) -> Float[Tensor, "input head plane"]:
    """Each plane's largest contribution over the keys that the last token sees, an input and head, float64."""
    device, length = state.key.device, state.key.shape[2]
    theta = table.theta[state.layer].to(device)
    width = 2 * theta.shape[-1]
    query, key = (
        torch.view_as_complex(x[..., :width].to(torch.float64).reshape(*x.shape[:-1], width // 2, 2))
        for x in (state.query[:, :, -1:], state.key)
    )
    back = torch.arange(length - 1, -1, -1, dtype=torch.float64, device=device)[:, None] * theta[:, None]
    turned = query * torch.polar(torch.ones_like(back), back)  # the query, at its distance from each key
    contributions = turned.real * key.real + turned.imag * key.imag
    return contributions.amax(2) * table.present[state.layer].to(device)


def weighted_frequency_id(
    use: Float[Tensor, "*head plane"], power: int = 2, ids: Sequence[int] | None = None
) -> Float[Tensor, "*head"]:
    """Mean frequency ID of a head, weights u (power 1) or u² (power 2), u the mean use; NaN if no plane is used.

    `ids`: each plane's frequency ID, if they are not 1, 2, …; ID 0, a plane that stands still, has no weight.
    u² reproduces the paper's table. It is the square of the mean over inputs, unclipped (a mean can be negative).
    Reference for the view `frequency_summary`. Source: arXiv 2605.31558, Table 1.
    """
    weight = use.to(torch.float64) ** power
    if ids is None:
        ids = range(1, use.shape[-1] + 1)
    each = torch.tensor(list(ids), dtype=torch.float64, device=use.device)
    weight = weight * (each > 0)
    return (weight * each).sum(-1) / weight.sum(-1)


def frequency_use_frame(model: GPTJ, sequences: Sequences, step: int) -> pl.DataFrame:
    """Rows of the table `frequency_use` for one checkpoint, on all of `sequences`; angles in radians a position."""
    use = frequency_use(model, sequences.ids)
    layer, head, plane = (
        axis.flatten().tolist()
        for axis in torch.meshgrid(*(torch.arange(size) for size in model.rotary.shape), indexing="ij")
    )
    columns = {name: getattr(use, name).flatten().tolist() for name in FrequencyUse._fields}
    return pl.DataFrame(
        {
            "step": [step] * len(layer),
            "layer": layer,
            "head": head,
            "frequency_id": [k + 1 for k in plane],
            "theta": model.rotary.theta.flatten().tolist(),
            **columns,
        }
    )
