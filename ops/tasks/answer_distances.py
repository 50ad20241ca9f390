"""How far before the query the answer stands, and how often the query's token alone tells it.

In the number task the integer at the query is the distance of the first hop, so that on 1-hop inputs it is the
answer's; in a letter task a letter says nothing of a distance. What is read off one token needs no hop, so a comparison
of tasks must know how much that is. Ours; no paper reports it.
"""

import polars as pl
import torch
from jaxtyping import Int
from torch import Tensor

from ops.tasks.sequences import Sequences


def distances(sequences: Sequences) -> Int[Tensor, "n"]:
    """Positions between the query, which is the last token, and the answer at the chain's end."""
    target = sequences.chain.gather(1, sequences.hops[:, None])[:, 0]
    return sequences.ids.shape[1] - 1 - target


def answer_distance_frame(known: Sequences, asked: Sequences) -> pl.DataFrame:
    """Rows of `answer_distances` on `asked`: columns hop, distance, share, told_share, n.

    The guess for a query's token is the distance that it had most often in `known`, inputs of the same hop class; of
    equally frequent ones the least, and of a token that `known` lacks that class's most frequent. Raises ValueError on
    a hop class that `known` lacks.
    """
    rows = []
    for hop in asked.hops.unique().tolist():
        seen, here = known.hops == hop, asked.hops == hop
        if not bool(seen.any()):
            raise ValueError(f"no known sequences of {hop} hops; take a split that has all hop classes")
        found = distances(asked)[here]
        told = _guesses(known.ids[seen, -1], distances(known)[seen], asked.ids[here, -1]) == found
        for distance, n in zip(*(part.tolist() for part in found.unique(return_counts=True)), strict=True):
            share, told_share = n / len(found), told[found == distance].double().mean().item()
            rows.append((hop, distance, share, told_share, n))
    schema = {"hop": pl.Int64, "distance": pl.Int64, "share": pl.Float64, "told_share": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _guesses(tokens: Int[Tensor, "k"], at: Int[Tensor, "k"], asked: Int[Tensor, "n"]) -> Int[Tensor, "n"]:
    """The distance that each asked token had most often."""
    size = int(torch.cat((tokens, asked)).max()) + 1
    width = int(at.max()) + 1
    counts = torch.bincount(tokens * width + at, minlength=size * width).view(size, width)
    counts[counts.sum(1) == 0] = counts.sum(0)
    return counts.argmax(1)[asked]
