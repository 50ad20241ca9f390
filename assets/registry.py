"""Every stage of a replicate, inputs first. A new stage is one line here."""

from assets.ablation import ABLATION
from assets.accuracy import ACCURACY
from assets.canonical import CANONICAL
from assets.checkpoints import CHECKPOINTS
from assets.dataset import DATASET
from assets.discrepancy import DISCREPANCY
from assets.exclusion import EXCLUSION
from assets.frequency_use import FREQUENCY_USE
from assets.head_scores import HEAD_SCORES
from assets.information_flow import INFORMATION_FLOW
from assets.language_models import LANGUAGE_MODELS
from assets.length import LENGTH
from assets.prompting import PROMPTING
from assets.qk_plane import QK_PLANE
from assets.shortcuts import SHORTCUTS
from assets.theory import THEORY
from assets.value_patching import VALUE_PATCHING

STAGES = (
    DATASET,
    SHORTCUTS,
    CHECKPOINTS,
    ACCURACY,
    HEAD_SCORES,
    FREQUENCY_USE,
    ABLATION,
    LENGTH,
    CANONICAL,
    LANGUAGE_MODELS,
    PROMPTING,
    INFORMATION_FLOW,
    VALUE_PATCHING,
    QK_PLANE,
    EXCLUSION,
    DISCREPANCY,
    THEORY,
)
