"""What a GGUF file says about positions and which tensors it has, and what transformers makes of it.

transformers reads a GGUF's base and drops its scaling, its frequency factors and whatever else it has no name for. Here
the metadata become the configuration's `rope_parameters`; a key that cannot be applied is refused by name.
Source: GGUF specification, llama.cpp `llama-hparams` (defaults) and `ggml_rope` (formulas).
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from ops.language_models.model_files import first_line, refuse_pointer
from ops.language_models.positions import rotary_tables

BASE = 10_000.0  # llama.cpp's, where a file names none
FACTORS = "rope_freqs.weight"  # divisors of the frequencies: the scaling of Llama 3 and its kin
_SHAPES = {"head_count", "head_count_kv", "key_length", "value_length"}  # what they say, the tensors' shapes show
_NO_EFFECT = {"rope.scaling.finetuned"}
_YARN = {
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
_NEUTRAL = {
    "attention.causal": True,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.yarn_ext_factor": 1.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
    "rope.scaling.alpha": 0.0,
    "attention.max_alibi_bias": 0.0,
    "attention.clamp_kqv": 0.0,
}


class GgufFile(NamedTuple):
    """Metadata by key, without the architecture's name in front of its own; shapes of tensors; frequency divisors."""

    path: Path
    architecture: str
    fields: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    factors: list[float] | None


def read_gguf(path: Path) -> GgufFile:
    """The metadata of a complete GGUF file. Raises ValueError with one sentence for anything else."""
    import gguf

    refuse_pointer(path)
    try:
        reader = gguf.GGUFReader(str(path))
        architecture = reader.fields["general.architecture"].contents()
        about = (f"{architecture}.", "split.")
        fields = {
            key.removeprefix(f"{architecture}."): field.contents()
            for key, field in reader.fields.items()
            if key.startswith(about)
        }
        shapes = {str(t.name): tuple(int(n) for n in t.shape) for t in reader.tensors}
        factors = [np.asarray(t.data, np.float64).ravel().tolist() for t in reader.tensors if t.name == FACTORS]
    except (ValueError, KeyError, IndexError, OverflowError, TypeError, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is cut off, damaged or no GGUF file ({first_line(error)}); download the file again"
        ) from None
    if int(fields.get("split.count", 1)) > 1:
        raise ValueError(f"{path} is one part of a model in several files; join them with llama-gguf-split --merge")
    return GgufFile(path, architecture, fields, shapes, factors[0] if factors else None)


def rope_parameters(file: GgufFile, config: Any) -> dict[str, Any] | None:
    """`config.rope_parameters` with the file's base, scaling and factors; None for an architecture without RoPE.

    Raises ValueError for a key about positions that cannot be applied.
    """
    asked, given = _scaling(file), getattr(config, "rope_parameters", None)
    scaled = asked["rope_type"] != "default"
    if not given:
        if scaled or asked["rope_theta"] != BASE:
            raise _refusal(file, "rope.*", "the architecture has no RoPE in transformers")
        return None
    if nested := {key: part for key, part in given.items() if isinstance(part, dict)}:
        if scaled:
            raise _refusal(file, "rope.scaling.type", "its layers turn in several ways, and it is not said which scale")
        if asked["rope_theta"] not in [part["rope_theta"] for part in nested.values()]:
            raise _refusal(file, "rope.freq_base", "no layer of the loaded configuration has this base")
        return given
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    dims = file.fields.get("rope.dimension_count")
    kept = {key: given[key] for key in ("mrope_section", "mrope_interleaved", "partial_rotary_factor") if key in given}
    part = {"partial_rotary_factor": dims / head} if dims and dims != head else {}
    return kept | part | asked


def _scaling(file: GgufFile) -> dict[str, Any]:
    """Base and scaling as Hugging Face's dictionary; a factor without a type is linear, as in llama.cpp."""
    fields = file.fields
    base = float(fields.get("rope.freq_base", BASE))
    factor = float(fields.get("rope.scaling.factor", fields.get("rope.scale_linear", 0.0)) or 1.0)
    kind = str(fields.get("rope.scaling.type", "linear"))
    if kind not in ("none", "linear", "yarn"):
        raise _refusal(file, "rope.scaling.type", f"{kind!r} is not applied to a GGUF")
    if kind == "none" or factor == 1.0:
        kind = "default"
    rope: dict[str, Any] = {"rope_type": kind, "rope_theta": base}
    original = int(fields.get("rope.scaling.original_context_length", fields.get("context_length", 0)))
    if kind != "default":
        rope["factor"] = factor
    if kind == "yarn":
        rope["original_max_position_embeddings"] = original
        rope |= {name: float(fields[key]) for key, name in _YARN.items() if key in fields}
    if file.factors is not None:
        if kind != "default":
            raise _refusal(file, FACTORS, f"the file has a {kind} scaling as well")
        # one divisor a plane, at every length: what transformers calls longrope, without its factor on cosine and sine
        rope |= {"rope_type": "longrope", "short_factor": file.factors, "long_factor": file.factors}
        rope |= {"attention_factor": 1.0, "original_max_position_embeddings": original}
    return rope


def check_gguf(file: GgufFile, model: Any) -> None:
    """Raise ValueError when the loaded model lacks a tensor of the file, or something that it says about positions."""
    config = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    nested = {key: part for key, part in rope.items() if isinstance(part, dict)}
    for key, value in file.fields.items():
        if not key.startswith(("rope.", "attention.")) and not any(word in key for word in _ABOUT):
            continue
        name = key.rpartition(".")[2]
        if key in _NO_EFFECT or name in _SHAPES or key in _USED:
            continue
        if name.endswith("epsilon") and any("eps" in at and _same(has, value) for at, has in vars(config).items()):
            continue
        if key in _YARN and rope.get("rope_type") == "yarn":
            continue
        if key in _NEUTRAL and value == _NEUTRAL[key]:
            continue
        if key == "rope.dimension_count" and (nested or all(2 * len(t) == value for _, _, t in rotary_tables(model))):
            continue
        if key == "rope.dimension_sections" and [n for n in value if n] == rope.get("mrope_section"):
            continue
        if key == "rope.freq_base_swa" and value in [part.get("rope_theta") for part in nested.values()]:
            continue
        if _same(getattr(config, name, None), value):
            continue
        raise _refusal(file, key, "the loaded model does not apply it")
    head = file.fields.get("attention.key_length")
    if (scale := getattr(config, "query_pre_attn_scalar", None)) is not None and scale != head:
        raise _refusal(file, "attention.key_length", f"the loaded model divides logits by the root of {scale}")
    surplus = sum(int(np.prod(shape)) for tensor, shape in file.shapes.items() if tensor != FACTORS) - _n_values(model)
    if surplus:
        unread = sorted(set(file.shapes) - _read_names(file, model) - {FACTORS})
        what = f"the tensor {unread[0]!r} was not read" if unread else "not every tensor was read"
        raise ValueError(
            f"{file.path}: {what}, and file and model differ by {abs(surplus)} numbers; give a file of a plain model"
        )


def _same(has: Any, value: Any) -> bool:
    """Equal, a float up to the rounding of float32."""
    if isinstance(has, float) and isinstance(value, (int, float)):
        return math.isclose(has, value, rel_tol=1e-6)
    return has is not None and has == value


_ABOUT = ("softcap", "sliding", "alibi", "scale")
_USED = {"rope.freq_base", "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear"}
_USED |= {"rope.scaling.original_context_length"}


def _refusal(file: GgufFile, key: str, why: str) -> ValueError:
    key = key if key == FACTORS else f"{file.architecture}.{key}"
    said = file.fields.get(key.removeprefix(f"{file.architecture}."))
    value = "" if said is None else f" is {said!r}, and"
    return ValueError(f"{file.path}: {key}{value} cannot be applied: {why}; give the model as a folder")


def _n_values(model: nn.Module) -> int:
    """Numbers in a model's parameters and persistent buffers, tied ones once."""
    return sum(t.numel() for t in {t.data_ptr(): t for t in model.state_dict().values()}.values())


def _read_names(file: GgufFile, model: nn.Module) -> set[str]:
    """The file's tensors that stand for one of the model's, by the names that the package gguf maps."""
    import gguf

    kind = next((kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == file.architecture), None)
    if kind is None:
        return set()
    names = gguf.get_tensor_name_map(kind, int(file.fields.get("block_count", 0)))
    stems = {name.removesuffix(".weight").removesuffix(".bias") for name in model.state_dict()}
    stems |= {stem.partition(".")[2] for stem in stems}
    known = {names.get_name(stem) for stem in stems}
    return {tensor for tensor in file.shapes if tensor.removesuffix(".weight").removesuffix(".bias") in known}
