"""Positional and symbolic head scores, purity, frequency use."""

from ops.scores.closed_form import swap_scores
from ops.scores.heads import head_details, score_heads

__all__ = ["head_details", "score_heads", "swap_scores"]
