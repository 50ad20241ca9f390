"""One-layer, one-head, attention-only models whose head has a few RoPE planes; many of them side by side.

    logits = unembed(e_query + W_v · Σ_p a_p e_p),   a = softmax over p of  q · R(θ)^(n − p) k_p / √d,   d = 2 planes

with e the embedding, q = W_q e_query and k_p = W_k e_p in the planes' dimensions. Every parameter and every angle has
a leading axis "model"; models share nothing, so training the stack is training each alone. RoPE is `ops.model.rope`.
Nothing but the embedding depends on the vocabulary, so keys, queries and values are computed once a token of the
vocabulary, and looked up. Shapes: M model, B batch, T position (the query's is the last), V vocabulary, C answers.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from ops.model.rope import phasors, turn


class Heads(NamedTuple):
    """The parameters of M models."""

    embedding: Float[Tensor, "model vocabulary width"]
    query: Float[Tensor, "model width dim"]
    key: Float[Tensor, "model width dim"]
    value: Float[Tensor, "model width width"]
    unembedding: Float[Tensor, "model width answer"]


def query_table(heads: Heads) -> Float[Tensor, "model vocabulary dim"]:
    """Each token's query before RoPE."""
    return heads.embedding @ heads.query


def key_table(heads: Heads) -> Float[Tensor, "model vocabulary dim"]:
    """Each token's key before RoPE."""
    return heads.embedding @ heads.key


def look_up(
    table: Float[Tensor, "model vocabulary dim"], ids: Int[Tensor, "model *batch"]
) -> Float[Tensor, "model *batch dim"]:
    """Each model's rows of its own table."""
    n_models, size, _ = table.shape
    first = torch.arange(n_models, device=ids.device).reshape(-1, *[1] * (ids.ndim - 1)) * size
    return F.embedding(ids + first, table.flatten(0, 1))


def attention(
    heads: Heads, theta: Float[Tensor, "model plane"], ids: Int[Tensor, "model batch position"]
) -> Float[Tensor, "model batch position"]:
    """Attention of the last token over all positions, its own included."""
    factors = phasors(torch.arange(ids.shape[-1]), theta)[:, None].to(heads.embedding.dtype)  # (M, 1, T, plane, 2)
    key = turn(look_up(key_table(heads), ids), factors)
    query = turn(look_up(query_table(heads), ids[..., -1:]), factors[..., -1:, :, :])
    logits = (key @ query.mT)[..., 0] * (2 * theta.shape[-1]) ** -0.5
    return logits.softmax(-1)


def answer_logits(
    heads: Heads, theta: Float[Tensor, "model plane"], ids: Int[Tensor, "model batch position"]
) -> Float[Tensor, "model batch answer"]:
    """Logits of the answers at the last token. `theta`: radians per position of each model's planes."""
    weights = attention(heads, theta, ids)
    n_models, n_batch, _ = ids.shape
    size = heads.embedding.shape[1]
    held = torch.zeros(n_models, n_batch, size, dtype=weights.dtype, device=ids.device).scatter_add(2, ids, weights)
    said = heads.embedding @ (heads.value @ heads.unembedding)  # (M, V, C): what attending to a token adds
    kept = heads.embedding @ heads.unembedding  # what the residual stream keeps of the query
    return held @ said + look_up(kept, ids[..., -1])
