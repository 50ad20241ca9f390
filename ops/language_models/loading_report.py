"""Whether the model in memory is the one on disk: every tensor came from the files, and every number can be used.

A library initialises what a file lacks at random and says so in a log; here that is one sentence and no model.
"""

import logging
import re
from collections.abc import Collection, Mapping
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from ops.language_models.model_files import FLOATS, StoredTensor

logger = logging.getLogger(__name__)


def report_reason(report: Mapping[str, Any]) -> str | None:
    """What transformers' loading report holds against a model, or None. Tied and derived tensors are not in it."""
    if mismatched := sorted(report["mismatched_keys"]):
        name, stored, wanted = mismatched[0]
        return (
            f"{name} has shape {tuple(stored)}, and the configuration asks for {tuple(wanted)} "
            f"({len(mismatched)} such); give the configuration that belongs to the weights"
        )
    missing, unexpected = sorted(report["missing_keys"]), sorted(report["unexpected_keys"])
    if missing:
        beside = f", while {unexpected[0]!r} is not known ({len(unexpected)} such)" if unexpected else ""
        return f"the tensor {missing[0]!r} is missing ({len(missing)} such){beside}; give the complete weights"
    if unexpected:
        return (
            f"the tensor {unexpected[0]!r} is not one of this architecture ({len(unexpected)} such); "
            "give the configuration that belongs to the weights"
        )
    if report["error_msgs"]:
        return f"the weights cannot be read ({str(report['error_msgs'][0]).strip().splitlines()[0]})"
    return None


def common_prefix(names: Collection[str], wanted: Collection[str]) -> str | None:
    """The one prefix of all `names`, such as "_orig_mod.", without which each is one of `wanted`; None if none is.

    Never when a name is one of `wanted` as it stands: then the prefix would be a guess.
    """
    wanted = set(wanted)
    if not names or not wanted.isdisjoint(names):
        return None
    parts = min(names, key=len).split(".")[:-1]
    prefixes = [".".join(parts[: n + 1]) + "." for n in range(len(parts))]
    fitting = [p for p in prefixes if all(n.startswith(p) and n.removeprefix(p) in wanted for n in names)]
    return fitting[0] if len(fitting) == 1 else None


def say_prefix(source: str, prefix: str, n: int) -> None:
    """Log that a prefix was dropped from all names."""
    logger.warning("%s: all %d tensors have %r before their names; it was dropped, and all match", source, n, prefix)


def not_ignored(model: Any, names: Collection[str]) -> list[str]:
    """`names` without those that the architecture declares to be no weights, such as rotary buffers of old files."""
    patterns = [*(model._keys_to_ignore_on_load_unexpected or ()), r"rotary_emb\.inv_freq$"]
    return [name for name in names if not any(re.search(pattern, name) for pattern in patterns)]


def check_numbers(source: str, model: nn.Module) -> None:
    """Raise ValueError unless all weights are in the type of the first, float32 or float64, and finite."""
    dtype = next(model.parameters()).dtype
    for name, tensor in model.state_dict().items():
        if tensor.is_meta:
            raise ValueError(f"{source}: {name} was not loaded; give the complete weights")
        if tensor.dtype != dtype and _is_parameter(model, name):
            raise ValueError(f"{source}: {name} is in {tensor.dtype} and not in {dtype}; give whole weights")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{source}: {name} has values that are NaN or infinite; give weights that are finite")


def _is_parameter(model: nn.Module, name: str) -> bool:
    place, _, last = name.rpartition(".")
    return last in model.get_submodule(place)._parameters


def check_types(source: str, model: nn.Module, stored: Mapping[str, StoredTensor], prefix: str) -> None:
    """Raise ValueError when a floating-point parameter stands in the file as integers or booleans."""
    floats = {name for name, parameter in model.named_parameters() if parameter.is_floating_point()}
    for name, tensor in stored.items():
        if tensor.dtype not in FLOATS and name.removeprefix(prefix) in floats:
            raise ValueError(f"{source}: {name} is stored as {tensor.dtype}, not as floating-point weights")


def stored_frequencies(stored: Mapping[str, StoredTensor]) -> dict[str, torch.Tensor]:
    """The rotary frequencies that old files store beside the weights, by name, in radians a position."""
    found = {}
    for name, tensor in stored.items():
        if name.endswith("inv_freq"):
            with safe_open(tensor.file, framework="pt") as file:
                found[name] = file.get_tensor(name)
    return found
