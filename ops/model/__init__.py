"""The RoPE Transformer, its checkpoints and its rotary tables."""

from ops.model.checkpoint import CheckpointError, export_reason, load_checkpoint, save_checkpoint, state_config
from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ, LayerState, attend, attention_weights
from ops.model.rope import RotaryTable, frequencies, rotate

__all__ = [
    "GPTJ",
    "CheckpointError",
    "LayerState",
    "RotaryTable",
    "attend",
    "attention_weights",
    "evaluating",
    "export_reason",
    "frequencies",
    "load_checkpoint",
    "rotate",
    "save_checkpoint",
    "state_config",
]
