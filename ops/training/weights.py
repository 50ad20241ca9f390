"""A model's weights as the bytes of a snapshot: what is published of a training at a step."""

import json

import torch
from safetensors.torch import save
from torch import Tensor

from ops.model.checkpoint import state_config
from ops.model.gptj import GPTJ
from ops.spec.training import TrainingSpec
from ops.training.log import diverged


def weights_on_cpu(model: GPTJ, training: TrainingSpec, step: int) -> dict[str, Tensor]:
    """The weights as contiguous CPU tensors. Raises TrainingDiverged when one is not finite."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise diverged(f"The weights of {name} are not finite", step, None, training)
    return weights


def snapshot_files(model: GPTJ, weights: dict[str, Tensor]) -> dict[str, bytes]:
    """config.json and model.safetensors, as ops.model.load_checkpoint reads them, by name."""
    config = json.dumps(state_config(model.spec, model.vocabulary_size), indent=1, sort_keys=True) + "\n"
    return {"config.json": config.encode(), "model.safetensors": save(dict(weights), metadata={"format": "pt"})}
