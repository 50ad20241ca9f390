"""A model as a folder: config.json and model.safetensors, with Hugging Face's GPT-J names.

A stock configuration loads with `transformers.GPTJForCausalLM.from_pretrained(folder)` and gives the same logits;
`export_reason` says why another one does not. Reading never unpickles, and whatever is wrong with a folder is one
sentence in a CheckpointError.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_MAX_HEADER = 16 * 1024 * 1024  # bytes; a header has about 100 bytes a tensor
_MAX_CONFIG = 4 * 1024 * 1024
_HF_BUFFERS = (".attn.bias", ".attn.masked_bias", ".embed_positions")  # constants that old exports stored
_REFUSED = {"n_embd": 1, "n_head": 2, "n_layer": 1}  # makes `GPTJForCausalLM.from_pretrained` raise before it allocates
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_HF_POSITIONS = 8_192  # length of Hugging Face's sine table; our model has no maximum


class CheckpointError(ValueError):
    """A checkpoint folder that cannot be read or written, in one sentence."""


def export_reason(spec: ModelSpec) -> str | None:
    """Why Hugging Face's GPT-J cannot hold this configuration, or None if it can."""
    every = tuple(range(1, spec.n_frequencies + 1))
    if spec.n_frequencies == 0:
        return "it has no rotary dimensions, and Hugging Face's GPT-J reads rotary_dim 0 as 'all of them'"
    if spec.nope_from_layer is not None and spec.nope_from_layer < spec.n_layers:
        return (
            f"its layers from {spec.nope_from_layer} on have no RoPE, and Hugging Face's GPT-J rotates in every layer"
        )
    if spec.plane_frequencies not in (None, every):
        return "its RoPE planes repeat or reorder frequencies, and Hugging Face's GPT-J has each frequency once"
    if spec.frequencies_present != every:
        return "some of its RoPE planes are removed, and Hugging Face's GPT-J has all of them"
    if spec.frequencies_rotating != every:
        return "some of its RoPE planes are frozen, and Hugging Face's GPT-J rotates all of them"
    if spec.rope_base != 10_000:
        return f"its RoPE base is {spec.rope_base:g}, and Hugging Face's GPT-J only has 10000"
    return None


def state_config(spec: ModelSpec, vocabulary_size: int) -> dict[str, Any]:
    """The content of config.json: our spec under "ropewalk", and for a stock configuration Hugging Face's fields.

    Another one is refused by `from_pretrained`, which would compute something else; "not_hugging_face" says why.
    """
    ours = {"ropewalk": spec.model_dump(mode="json"), "vocab_size": vocabulary_size}
    if reason := export_reason(spec):
        return {"model_type": "ropewalk", "not_hugging_face": reason, **_REFUSED, **ours}
    return {
        "architectures": ["GPTJForCausalLM"],
        "model_type": "gptj",
        "activation_function": "gelu",
        "attn_pdrop": spec.dropout,
        "embd_pdrop": spec.dropout,
        "resid_pdrop": spec.dropout,
        "initializer_range": spec.initial_std,
        "layer_norm_epsilon": spec.layer_norm_eps,
        "n_embd": spec.width,
        "n_head": spec.n_heads,
        "n_inner": spec.mlp_ratio * spec.width,
        "n_layer": spec.n_layers,
        "n_positions": _HF_POSITIONS,
        "rotary_dim": 2 * spec.n_frequencies,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "use_cache": False,
        **ours,
    }


def save_checkpoint(model: GPTJ, folder: Path | str, *, hugging_face: bool = False) -> None:
    """Write config.json and model.safetensors into `folder` (made if absent); equal models give equal bytes.

    With `hugging_face`, raise CheckpointError if the configuration is not one that Hugging Face's GPT-J has.
    """
    if hugging_face and (reason := export_reason(model.spec)):
        raise CheckpointError(f"this model cannot be exported as a Hugging Face GPT-J: {reason}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = json.dumps(state_config(model.spec, model.vocabulary_size), indent=1, sort_keys=True)
    (folder / CONFIG).write_text(config + "\n", encoding="utf-8")
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def load_checkpoint(folder: Path | str, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> GPTJ:
    """The model in `folder`, in eval mode, on `device` in `dtype`; draws no random numbers.

    Reads our folders and foreign Hugging Face GPT-J ones with the exact GELU (one dropout rate is kept: resid_pdrop).
    Raises CheckpointError for a missing, damaged, foreign or hostile file.
    """
    folder = Path(folder)
    spec, vocabulary_size = read_config(folder / CONFIG)
    tensors = _read_weights(folder / WEIGHTS, parameter_shapes(spec, vocabulary_size), dtype)
    with torch.device("meta"):
        model = GPTJ(spec, vocabulary_size)
    model.load_state_dict({name: tensor.to(device) for name, tensor in tensors.items()}, assign=True)
    return model.eval()


def parameter_shapes(spec: ModelSpec, vocabulary_size: int) -> dict[str, tuple[int, ...]]:
    """Name → shape of every tensor of a checkpoint."""
    width, inner = spec.width, spec.mlp_ratio * spec.width
    shapes: dict[str, tuple[int, ...]] = {"transformer.wte.weight": (vocabulary_size, width)}
    for layer in range(spec.n_layers):
        prefix = f"transformer.h.{layer}."
        shapes |= {f"{prefix}ln_1.{part}": (width,) for part in ("weight", "bias")}
        shapes |= {f"{prefix}attn.{part}_proj.weight": (width, width) for part in ("q", "k", "v", "out")}
        shapes |= {f"{prefix}mlp.fc_in.weight": (inner, width), f"{prefix}mlp.fc_in.bias": (inner,)}
        shapes |= {f"{prefix}mlp.fc_out.weight": (width, inner), f"{prefix}mlp.fc_out.bias": (width,)}
    shapes |= {"transformer.ln_f.weight": (width,), "transformer.ln_f.bias": (width,)}
    return shapes | {"lm_head.weight": (vocabulary_size, width), "lm_head.bias": (vocabulary_size,)}


def read_config(path: Path) -> tuple[ModelSpec, int]:
    """(spec, vocabulary size) of a config.json, ours or a Hugging Face GPT-J's. Raises CheckpointError."""
    try:
        if path.stat().st_size > _MAX_CONFIG:
            raise CheckpointError(f"{path} is larger than {_MAX_CONFIG} bytes, so it is no model configuration")
        text = path.read_text(encoding="utf-8")
        if text.startswith("version https://git-lfs"):
            raise CheckpointError(f"{path} is a pointer of git-lfs, not the file itself; fetch it with: git lfs pull")
        config = json.loads(text)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); a checkpoint folder has one") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} is not a JSON object")
    vocabulary_size = config.get("vocab_size")
    if not isinstance(vocabulary_size, int) or isinstance(vocabulary_size, bool) or vocabulary_size < 1:
        raise CheckpointError(f"{path} has no vocab_size that is a positive integer")
    for field in ("rope_parameters", "rope_scaling", "rope_theta", "sliding_window"):
        if config.get(field) not in (None, {}, 10_000):
            raise CheckpointError(f"{path} has {field} {config[field]!r}, which GPT-J does not apply; drop the field")
    fields = config["ropewalk"] if "ropewalk" in config else _foreign_fields(config, path)
    try:
        spec = ModelSpec.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the configuration"
        raise CheckpointError(f"{path}: {where}: {first['msg']}") from error
    if "ropewalk" in config:
        ours = state_config(spec, vocabulary_size)
        for field in ("n_embd", "n_head", "n_layer", "rotary_dim"):
            if field in config and config[field] != ours.get(field):
                raise CheckpointError(
                    f"{path}: {field} is {config[field]!r}, and 'ropewalk' says {ours.get(field)!r}; make them agree"
                )
    return spec, vocabulary_size


def _foreign_fields(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The ModelSpec fields of a Hugging Face GPT-J config; a field left out has Hugging Face's default."""
    if config.get("model_type") != "gptj":
        raise CheckpointError(f"{path} describes a {config.get('model_type')!r} model; only 'gptj' can be read")
    if (activation := config.get("activation_function", "gelu_new")) != "gelu":
        raise CheckpointError(f"{path} has activation_function {activation!r}; only the exact 'gelu' can be read")
    if config.get("tie_word_embeddings"):
        raise CheckpointError(f"{path} ties the word embeddings; only untied ones can be read")
    width, heads = config.get("n_embd", 4096), config.get("n_head", 16)
    inner, rotary = config.get("n_inner"), config.get("rotary_dim", 64)
    inner = 4 * width if inner is None and isinstance(width, int) else inner
    if not (isinstance(width, int) and isinstance(inner, int) and width > 0) or inner % width:
        raise CheckpointError(f"{path}: n_inner {inner!r} is not a multiple of n_embd {width!r}")
    if not rotary and heads != 1:
        raise CheckpointError(f"{path} has no rotary_dim, which Hugging Face's GPT-J can only run with one head")
    return {
        "n_layers": config.get("n_layer", 28),
        "n_heads": heads,
        "width": width,
        "mlp_ratio": inner // width,
        "dropout": config.get("resid_pdrop", 0.0),
        "layer_norm_eps": config.get("layer_norm_epsilon", 1e-5),
        "initial_std": config.get("initializer_range", 0.02),
        "rotary_dims": rotary or None,
        "rope_base": config.get("rotary_base", 10_000),
    }


def _read_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype) -> dict[str, Tensor]:
    """The tensors that `shapes` names in `dtype`, each checked for its shape, a floating type and finite values."""
    _check_header(path)
    try:
        with safe_open(path, framework="pt") as file:
            names = {name for name in file.keys() if not name.endswith(_HF_BUFFERS)}  # noqa: SIM118
            if missing := [name for name in shapes if name not in names]:
                raise CheckpointError(f"{path} lacks the tensor {missing[0]!r} ({len(missing)} missing)")
            if extra := sorted(names - set(shapes)):
                raise CheckpointError(f"{path} has the unknown tensor {extra[0]!r} ({len(extra)} unknown)")
            for name, shape in shapes.items():
                if (found := tuple(file.get_slice(name).get_shape())) != shape:
                    raise CheckpointError(f"{path}: {name} has shape {found}, and config.json asks for {shape}")
            tensors = {name: file.get_tensor(name).clone() for name in shapes}
    except (SafetensorError, OSError, OverflowError) as error:
        raise CheckpointError(f"{path} is damaged or no safetensors file ({error})") from error
    for name, tensor in tensors.items():
        if tensor.dtype not in _FLOATS:
            kind = "8-bit" if tensor.is_floating_point() else "not floating-point"
            raise CheckpointError(
                f"{path}: {name} holds {tensor.dtype}, {kind} weights; save them as float32, float16 or bfloat16"
            )
        tensors[name] = tensor.to(dtype)
        if not torch.isfinite(tensors[name]).all():
            raise CheckpointError(f"{path}: {name} has values that are NaN or infinite in {dtype}")
    return tensors


def _check_header(path: Path) -> None:
    """Refuse what is not a safetensors file before a parser sees it."""
    try:
        with path.open("rb") as file:
            start, size = file.read(8), path.stat().st_size
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); a checkpoint folder has one") from error
    if start[:4] == b"PK\x03\x04" or (
        start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05" and start[2:] != bytes(6)
    ):
        raise CheckpointError(
            f"{path} is a pickle or a torch.save archive, which is never loaded; save it as safetensors"
        )
    if start == b"version ":
        raise CheckpointError(f"{path} is a pointer of git-lfs, not the file itself; fetch it with: git lfs pull")
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length + 8 > size:
        raise CheckpointError(f"{path} is truncated or no safetensors file: {size} bytes, header of {length}")
    if length > _MAX_HEADER:
        raise CheckpointError(f"{path} announces a header of {length} bytes; the most that is read is {_MAX_HEADER}")
