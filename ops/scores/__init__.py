"""Positional and symbolic head scores, purity, frequency use."""

from ops.scores.accuracy import accuracy_frame
from ops.scores.blocks import block_swap_scores
from ops.scores.closed_form import swap_scores
from ops.scores.frequency import frequency_use, frequency_use_frame
from ops.scores.heads import head_details, score_heads
from ops.scores.purity import head_purity
from ops.scores.table import head_scores_frame

__all__ = [
    "accuracy_frame",
    "block_swap_scores",
    "frequency_use",
    "frequency_use_frame",
    "head_details",
    "head_purity",
    "head_scores_frame",
    "score_heads",
    "swap_scores",
]
