"""A checkpoint's head scores as rows of the table `head_scores`."""

import polars as pl
import torch
from jaxtyping import Int
from torch import Tensor

from ops.model.gptj import GPTJ
from ops.scores.heads import HeadDetails, head_details
from ops.spec.evaluation import ScoringSpec
from ops.tasks.sequences import Sequences

_VALUES = ("positional_score", "symbolic_score", "entropy", "own_mass", "negligible_mass")


def hop_queries(chain: Int[Tensor, "n link"]) -> Int[Tensor, "n query"]:
    """The chain's positions that ask for a next hop, -1 as padding: the last token and the intermediate ones.

    The target asks for nothing and is dropped; so is a position with fewer than two keys before it, which has no score.
    """
    queries = chain.clone()
    queries[torch.arange(len(chain)), (chain >= 0).sum(1) - 1] = -1
    queries[queries < 2] = -1
    return queries[:, : max(1, queries.shape[1] - 1)]


def head_scores_frame(model: GPTJ, sequences: Sequences, spec: ScoringSpec, step: int) -> pl.DataFrame:
    """Rows of the table `head_scores`: means over all of `sequences`, for each query kind, τ, layer and head.

    Query kind "last" is the last token, "hop" every position of the hop chain that asks for a next hop, the last token
    included (`hop_queries`); `n` counts the queries averaged. Masses are shares, entropy is in nats.
    Raises ValueError without sequences, on non-finite logits, or if no query has two keys before it.
    """
    if len(sequences.ids) == 0:
        raise ValueError("head scores need at least one sequence")
    last = torch.full((len(sequences.ids), 1), sequences.ids.shape[1] - 1)
    # The last token heads the chain, so one pass over the chain serves both kinds.
    queries = hop_queries(sequences.chain) if "hop" in spec.queries else last
    if "last" in spec.queries and not torch.equal(queries[:, :1], last):
        raise ValueError("every chain must begin at the last token, and that needs two keys before it")
    details = head_details(model, sequences.ids, queries, spec.taus, spec.eps)
    frames = []
    for kind in spec.queries:
        asked = slice(None) if kind == "hop" else slice(1)
        valid = queries[:, asked] >= 0
        if not bool(valid.any()):
            raise ValueError("no query on the hop chains has two keys before it")
        frames.append(_frame(HeadDetails(*(part[:, asked][valid] for part in details)), kind, spec.taus, step))
    return pl.concat(frames)


def _frame(details: HeadDetails, query: str, taus: tuple[float, ...], step: int) -> pl.DataFrame:
    """Means over the first axis (queries)."""
    scores = details.scores.mean(0).cpu()  # (tau, layer, head, 2)
    n_taus, n_layers, n_heads, _ = scores.shape
    entropy, own_mass = (part.mean(0).cpu().expand(n_taus, -1, -1) for part in (details.entropy, details.own_mass))
    means = (scores[..., 0], scores[..., 1], entropy, own_mass, details.negligible_mass.mean(0).cpu())
    tau, layer, head = torch.meshgrid(*(torch.arange(size) for size in (n_taus, n_layers, n_heads)), indexing="ij")
    return pl.DataFrame(
        {
            "step": torch.full_like(layer, step).flatten().tolist(),
            "layer": layer.flatten().tolist(),
            "head": head.flatten().tolist(),
            "query": [query] * layer.numel(),
            "tau": [taus[i] for i in tau.flatten().tolist()],
            **{name: mean.flatten().tolist() for name, mean in zip(_VALUES, means, strict=True)},
            "n": [len(details.scores)] * layer.numel(),
        }
    )
