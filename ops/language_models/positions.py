"""The rotations that a model's files name, computed here, against those that the loaded model has.

A library drops what its architecture does not know: a scaling of RoPE, another base. Scores are then those of another
model, and a verification on it cannot tell. So every field about positions is applied, or the model is refused.
Sources: RoPE arXiv:2104.09864, YaRN arXiv:2309.00071, LongRoPE arXiv:2402.13753.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

TOLERANCE = 1e-4  # of a frequency; float32 gives 1e-6, and any scaling moves one by more
_ALWAYS = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "finetuned"}
_ALWAYS |= {"mrope_section", "mrope_interleaved"}  # one text has the same position on every axis
_ALWAYS |= {"max_position_embeddings", "llama_4_scaling_beta"}  # no effect within the original length
_TAKES: dict[str, set[str]] = {
    "default": set(),
    "linear": {"factor"},
    "dynamic": {"factor"},
    "proportional": {"factor"},
    "yarn": {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor"},
    "longrope": {"factor", "attention_factor", "short_factor", "long_factor"},
}
_SAME_TYPE = {"su": "longrope", "mrope": "default"}
_ABOUT = re.compile(  # a field that moves positions or rescales the logits of attention
    r"(^|_)(rope|rotary|yarn|alibi|nope|sliding|ntk|logn|xpos|interpolation|\w*softcap\w*)(_|$)"
    r"|^(attention_multiplier|query_pre_attn_scalar)$"
)
_READ_BY_CLASS = {"sliding_window_pattern", "rotary"}  # makes layer_types; GPT-J says that it has RoPE


def frequencies(rope: Mapping[str, Any], n_planes: int, max_positions: int) -> tuple[Tensor, float]:
    """Radians a position of each plane, fastest first, in float64, and the factor on cosine and sine.

    `rope` is Hugging Face's dictionary; for "dynamic" and "longrope" up to the original length.
    Raises ValueError for a type or field that is not known here.
    """
    kind = _SAME_TYPE.get(str(_kind(rope)), str(_kind(rope)))
    if kind not in _TAKES:
        raise ValueError(f"rope_type {kind!r} is not known; known are {', '.join(_TAKES)}")
    if stray := [key for key in rope if key not in _ALWAYS | _TAKES[kind] and rope[key] not in (None, False, 1)]:
        raise ValueError(f"{stray[0]} {rope[stray[0]]!r} is not used by rope_type {kind!r}")
    for key in ("rope_theta", "factor", *_TAKES[kind]):
        if isinstance(value := rope.get(key), (bool, str)) and key != "truncate":
            raise ValueError(f"{key} is {value!r}, which is no number")
        if isinstance(value, (int, float)) and not value > 0 and key in ("rope_theta", "factor"):
            raise ValueError(f"{key} is {value!r}; it is above 0")
    plane = torch.arange(n_planes, dtype=torch.float64)
    base = float(rope["rope_theta"])
    theta = base ** (-plane / n_planes)
    original = float(rope.get("original_max_position_embeddings") or max_positions)
    factor = float(rope.get("factor") or (1.0 if kind in ("default", "proportional") else max_positions / original))
    if kind == "linear":
        return theta / factor, 1.0
    if kind == "proportional":
        turning = int(float(rope.get("partial_rotary_factor") or 1.0) * n_planes)
        return torch.where(plane < turning, theta / factor, 0.0), 1.0
    if kind == "llama3":
        low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
        turns = original * theta / (2 * math.pi)
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        return theta * (kept + (1 - kept) / factor), 1.0
    if kind == "yarn":
        return _yarn(rope, theta, base, original, factor)
    if kind == "longrope":
        scaling = rope.get("attention_factor")
        if scaling is None:
            scaling = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        return theta / torch.tensor(rope["short_factor"], dtype=torch.float64), float(scaling)
    return theta, 1.0


def _yarn(rope: Mapping[str, Any], theta: Tensor, base: float, original: float, factor: float) -> tuple[Tensor, float]:
    """Between a plane that turns `beta_fast` times in the original length and one of `beta_slow`, a ramp."""
    n_planes = len(theta)

    def plane_of(turns: float) -> float:
        return n_planes * math.log(original / (turns * 2 * math.pi)) / math.log(base)

    low, high = plane_of(float(rope.get("beta_fast") or 32)), plane_of(float(rope.get("beta_slow") or 1))
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * n_planes - 1)
    ramp = ((torch.arange(n_planes, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
    scaling = rope.get("attention_factor")
    if scaling is None:
        over, under = rope.get("mscale"), rope.get("mscale_all_dim")
        scaling = _mscale(factor, over) / _mscale(factor, under) if over and under else _mscale(factor, 1.0)
    return theta * (1 - ramp) + theta / factor * ramp, float(scaling)


def _mscale(factor: float, by: float) -> float:
    return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0


def _kind(rope: Mapping[str, Any]) -> Any:
    return rope.get("rope_type") or rope.get("type") or "default"


def rotary_tables(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """(module, layer type or "", radians a position of each plane) of every rotary table that a model has."""
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name:
                yield module, name.removesuffix("inv_freq").rstrip("_"), buffer.detach().double().cpu()


def refuse_fields(path: str, said: Mapping[str, Any]) -> None:
    """Raise ValueError when config.json, `said`, names a rotation that is not known here, before anything is loaded."""
    for field, part in _named_rotations(path, said):
        try:
            kept = {"rope_theta": 10_000.0, **part}
            frequencies(kept, len(kept.get("short_factor") or ()) or 1, 1)
        except (ValueError, KeyError, TypeError, ZeroDivisionError, RuntimeError) as error:
            raise ValueError(f"{path}: {field} {dict(part)}: {_said(error)}; mend or drop the field") from None


def _named_rotations(path: str, said: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(field, dictionary) of each rotation that a configuration names, one a layer type where it has several."""
    nested = said.get("text_config")
    said = {**said, **nested} if isinstance(nested, dict) else said
    for field in ("rope_parameters", "rope_scaling"):
        if not (named := said.get(field)):
            continue
        if not isinstance(named, dict):
            raise ValueError(f"{path}: {field} is {named!r}; it is an object with rope_type")
        yield from ((field, part) for part in [p for p in named.values() if isinstance(p, dict)] or [named])


def check_tables(source: str, model: nn.Module) -> None:
    """Raise ValueError unless every rotary table is the one that the model's own configuration names."""
    for module, layer_type, table in rotary_tables(model):
        config = getattr(module, "config", None)
        rope = getattr(config, "rope_parameters", None)
        if config is None or not rope:
            continue
        rope = rope.get(layer_type, rope)
        try:
            wanted, scaling = frequencies(rope, len(table), getattr(config, "max_position_embeddings", 0) or 0)
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            raise ValueError(
                f"{source}: the rope_parameters {dict(rope)} cannot be checked ({_said(error)}); drop or mend the field"
            ) from None
        share = rope.get("partial_rotary_factor") or 1.0
        if share != 1 and _kind(rope) != "proportional":
            head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            if 2 * len(table) != int(head * share):
                raise ValueError(
                    f"{source}: partial_rotary_factor is {share}, and {2 * len(table)} of {head} dimensions turn; "
                    "give a model whose architecture applies it"
                )
        has = getattr(module, f"{layer_type}_attention_scaling" if layer_type else "attention_scaling", 1.0)
        if not torch.allclose(table, wanted, rtol=TOLERANCE, atol=0) or abs(has - scaling) > TOLERANCE * scaling:
            raise ValueError(
                f"{source}: the rope_parameters {dict(rope)} were not applied (slowest plane {float(table[-1]):.6g} "
                f"instead of {float(wanted[-1]):.6g} radians a position); give a model whose architecture applies them"
            )


def _said(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def check_named(source: str, model: Any, said: Mapping[str, Any]) -> None:
    """Raise ValueError when config.json, `said`, has a field about positions that did not reach the model's tables."""
    nested = said.get("text_config")
    said = {**said, **nested} if isinstance(nested, dict) else said
    config = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    applied = [part for part in rope.values() if isinstance(part, dict)] or ([rope] if rope else [])
    if not any(True for _ in rotary_tables(model)):
        applied = []
    for field, part in _named_rotations(source, said):
        if applied or _scales(part):
            _check_carried(source, field, part, applied)
    bases = [float(part["rope_theta"]) for part in applied if part.get("rope_theta")] or [10_000.0]
    for field in ("rope_theta", "rotary_emb_base", "rotary_base"):
        if (base := said.get(field)) and base not in bases:
            raise ValueError(
                f"{source}: {field} is {base!r}, and {type(model).__name__} turns with base {bases[0]:g}; "
                "give a model whose architecture applies it"
            )
    declared = (
        {field.name for field in dataclasses.fields(config)} | set(config.attribute_map) | set(vars(type(config)()))
    )
    for field, value in said.items():
        if not value or not _ABOUT.search(field) or field in declared | _READ_BY_CLASS or field in _CHECKED:
            continue
        if field in vars(config):  # kept as a stray attribute: no class took it
            raise ValueError(
                f"{source}: {field} is {value!r}, and {type(model).__name__} does not apply it; "
                "give a model whose architecture does, or drop the field"
            )


_CHECKED = {"rope_parameters", "rope_scaling", "rope_theta", "rotary_emb_base", "rotary_base", "text_config"}


def _scales(part: Mapping[str, Any]) -> bool:
    return _kind(part) != "default" or part.get("rope_theta") not in (None, 10_000)


def _check_carried(source: str, field: str, named: Mapping[str, Any], applied: list[dict]) -> None:
    """Every entry of `named` stands in one of the `applied` dictionaries with the same value."""
    wanted = {("rope_type" if key == "type" else key): value for key, value in named.items() if value is not None}
    for part in applied:
        has = {**part, "rope_type": _kind(part)}
        kinds = {wanted.get("rope_type", "default"), _SAME_TYPE.get(wanted.get("rope_type", ""), "default")}
        if all(has.get(key) == value or (key == "rope_type" and has[key] in kinds) for key, value in wanted.items()):
            return
    raise ValueError(
        f"{source}: {field} is {dict(named)}, and the loaded model does not apply it; "
        "give a model whose architecture does"
    )


def check_stored(source: str, model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Raise ValueError when a file stores rotary frequencies other than the model's."""
    tables = [table for _, _, table in rotary_tables(model)]
    for name, tensor in stored.items():
        kept = tensor.double()
        close = max(TOLERANCE, torch.finfo(tensor.dtype).eps)
        if not any(t.shape == kept.shape and torch.allclose(t, kept, rtol=close, atol=close**2) for t in tables):
            raise ValueError(f"{source}: {name} stores other frequencies than config.json gives; mend config.json")
