"""A head's logits on every content at every position: what swaps and permutations of the keys would give."""

import torch
from jaxtyping import Float
from torch import Tensor

from ops.model.gptj import LayerState
from ops.model.rope import RotaryTable, rotate


def placed_logits(
    state: LayerState, table: RotaryTable, query: int
) -> tuple[Float[Tensor, "batch head place content"], Float[Tensor, "batch head"]]:
    """Scaled logit of the query at position `query` on each earlier content at each earlier position; and on itself.

    float64. Swapping contents changes keys only, since queries, like all positions, are computed before it.
    """
    device = state.key.device
    theta = table.theta[state.layer].to(device)
    weight = (table.present[state.layer] * table.logit_scale[state.layer][:, None]).to(device)
    width, plain_scale = 2 * theta.shape[-1], table.logit_scale[state.layer].to(device)[:, None, None]
    q = state.query[:, :, query : query + 1].to(torch.float64)
    key = state.key[:, :, : query + 1].to(torch.float64)
    there = rotate(q, torch.tensor([query]), theta)[..., :width] * weight.repeat_interleave(2, -1)[:, None]
    # turning the query back by a position's angle equals turning every content there
    places = torch.arange(query, device=device)
    back = rotate(there.expand(-1, -1, query, -1), -places, theta)
    logits = back @ key[:, :, :query, :width].mT
    own = (rotate(there, torch.tensor([-query]), theta) * key[:, :, query:, :width]).sum((-2, -1))
    if q.shape[-1] > width:
        plain = (q[..., width:] * plain_scale) @ key[..., width:].mT  # (B, H, 1, query + 1)
        logits, own = logits + plain[..., :query], own + plain[..., 0, query]
    return logits, own
