"""Every stage of a replicate, inputs first. A new stage is one line here."""

from assets.ablation import ABLATION
from assets.accuracy import ACCURACY
from assets.canonical import CANONICAL
from assets.checkpoints import CHECKPOINTS
from assets.dataset import DATASET
from assets.extrapolation import EXTRAPOLATION
from assets.frequency_use import FREQUENCY_USE
from assets.head_scores import HEAD_SCORES
from assets.language_models import LANGUAGE_MODELS
from assets.prompting import PROMPTING
from assets.shortcuts import SHORTCUTS

STAGES = (
    DATASET,
    SHORTCUTS,
    CHECKPOINTS,
    ACCURACY,
    HEAD_SCORES,
    FREQUENCY_USE,
    ABLATION,
    EXTRAPOLATION,
    CANONICAL,
    LANGUAGE_MODELS,
    PROMPTING,
)
