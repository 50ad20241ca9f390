"""A prompt with its blocks: what a head is scored on."""

from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor


class Prompt(NamedTuple):
    """Token ids, the query's position, and equal blocks of earlier positions (0-based, disjoint, none with a sink)."""

    ids: Int[Tensor, "position"]
    query: int
    blocks: Int[Tensor, "block token"]
    text: str = ""
    answer: int | None = None


def check_prompt(prompt: Prompt) -> None:
    """Raise ValueError, naming what is wrong, unless blocks are disjoint, before the query and free of position 0."""
    ids, query, blocks = prompt.ids, prompt.query, prompt.blocks
    if blocks.ndim != 2 or blocks.shape[0] < 2 or blocks.shape[1] < 1:
        raise ValueError(f"a prompt needs two or more blocks of equal length, not of shape {tuple(blocks.shape)}")
    if not 0 < query < len(ids):
        raise ValueError(f"the query position is {query}, but the prompt has positions 1 to {len(ids) - 1}")
    if int(blocks.min()) < 1 or int(blocks.max()) >= query:
        raise ValueError(
            f"blocks cover positions {int(blocks.min())} to {int(blocks.max())}; they must lie between 1 (position 0 "
            f"is the attention sink) and {query - 1} (before the query)"
        )
    if blocks.unique().numel() != blocks.numel():
        raise ValueError("blocks overlap; a position may belong to one block only")
