"""The files of a model's folder, before any library reads them: what is there, whole, and fit to compute with.

Weights are safetensors, never a pickle; code in a folder is never run. Whatever is wrong is one sentence that names the
file and what would be right.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")
_CONSTANTS = ("I64", "I32", "I16", "I8", "U8", "BOOL")  # masks and position ids that old exports stored
_POINTER = b"version https://git-lfs.github.com/spec/"
_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")
_HUB_SMALL = ["*.json", "*.txt", "*.model", "*.jinja"]


class StoredTensor(NamedTuple):
    """Where a tensor stands; `dtype` is safetensors' name of its type."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


def model_folder(source: str | Path, revision: str | None, local_only: bool) -> Path:
    """The folder of `source`: itself, or the snapshot of a hub name, its weights included.

    Raises ValueError with one sentence when there is none.
    """
    name, path = str(source), Path(source)
    if name and path.is_dir():
        return path
    if name and path.exists():
        raise ValueError(f"{name} is a file, but no .gguf file; give a folder, a .gguf file or a hub name")
    if not name or name.startswith(("~", ".", "/")) or "\\" in name or name.count("/") > 1:
        hint = "; write ~ out" if name.startswith("~") else ""
        raise ValueError(f"{name!r} is no folder that exists{hint}; give a folder, a .gguf file or a hub's owner/model")
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"revision": revision, "local_files_only": local_only}
    try:
        folder = Path(snapshot_download(name, allow_patterns=_HUB_SMALL, ignore_patterns=["*/*"], **options))
        # one commit for the rest, even if the name moves meanwhile; a local copy is taken as it is
        weights = {**options, "revision": options["revision"] if local_only else folder.name}
        return Path(snapshot_download(name, allow_patterns=[WEIGHTS, *shard_names(folder)], **weights))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{name}: the model cannot be loaded from the hub ({first_line(error)}); check the name, the access and "
            "the network, or give a folder"
        ) from None


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .:") if lines else type(error).__name__


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder whose files are all there; what cannot be profiled is refused.

    Raises ValueError: pointer files of git-lfs, no configuration, an adapter, quantised weights, code to run.
    """
    for file in sorted(folder.iterdir()):
        if file.suffix in _READ and file.is_file():
            refuse_pointer(file)
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"{folder}: there is no {CONFIG}; save the model with save_pretrained, or name a .gguf file")
    if (folder / "adapter_config.json").is_file():
        raise ValueError(
            f"{folder}: adapter_config.json names an adapter, which is not applied; merge it into its model"
        )
    config = read_json(path)
    for name in ("tokenizer_config.json", "generation_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            read_json(folder / name)
    for part in (config, config.get("text_config")):
        if not isinstance(part, dict):
            continue
        if quantised := part.get("quantization_config") or part.get("compression_config"):
            method = quantised.get("quant_method", "unnamed") if isinstance(quantised, dict) else quantised
            raise ValueError(
                f"{path}: quantization_config names {method!r}, and scores need whole weights; give the model in "
                "float32, float16 or bfloat16, or a .gguf file"
            )
    if "transformers_weights" in config:
        raise ValueError(f"{path}: transformers_weights is not read; name the weights {WEIGHTS} and drop the field")
    _refuse_unknown_type(path, config)
    return config


def _refuse_unknown_type(path: Path, config: Mapping[str, Any]) -> None:
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"{path} has no model_type; save the model with save_pretrained")
    if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind in CONFIG_MAPPING:
        return
    if "auto_map" in config:
        raise ValueError(
            f"{path}: auto_map asks to run code that came with the model, which is never done; "
            f"give a model whose type transformers knows, not {kind!r}"
        )
    known = "is no causal language model" if kind in CONFIG_MAPPING else "is not known to this version of transformers"
    raise ValueError(f"{path}: model_type {kind!r} {known}; give a causal language model that transformers has")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises ValueError for anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); check the file") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is empty, cut off or no JSON; download the file again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is no JSON object; download the file again")
    return content


def refuse_pointer(path: Path) -> None:
    """Raise ValueError for a file that git-lfs left a pointer for, or that cannot be opened."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_POINTER))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); check the file") from None
    if start == _POINTER:
        raise ValueError(f"{path} is a pointer of git-lfs, not the file itself; fetch it with: git lfs pull")


def shard_names(folder: Path) -> list[str]:
    """The weight files that the folder's index names, itself aside; none without an index."""
    if not (folder / INDEX).is_file():
        return []
    refuse_pointer(folder / INDEX)
    shards = read_json(folder / INDEX).get("weight_map")
    if not isinstance(shards, dict) or not shards or not all(isinstance(name, str) for name in shards.values()):
        raise ValueError(f"{folder / INDEX} has no weight_map of tensor and file names; download the file again")
    names = sorted(set(shards.values()))
    if wrong := [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]:
        raise ValueError(f"{folder / INDEX} names {wrong[0]!r}; only .safetensors files beside it are read")
    return names


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Name → type and shape of every tensor of the folder's weight files, each file complete.

    Raises ValueError: no safetensors, a missing, cut-off or damaged file, a tensor twice, or an 8-bit or complex type.
    """
    names = [WEIGHTS] if (folder / WEIGHTS).is_file() else shard_names(folder)
    if not names:
        pickles = sorted(file.name for file in folder.iterdir() if file.suffix in (".bin", ".pt", ".pth", ".ckpt"))
        has = f"only {pickles[0]}, a pickle, which is never loaded" if pickles else f"no {WEIGHTS}"
        raise ValueError(f"{folder} has {has}; save the weights as safetensors")
    found: dict[str, StoredTensor] = {}
    for name in names:
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing, but {INDEX} names it; download the file")
        refuse_pointer(path)
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118
                    part = file.get_slice(key)
                    if key in found:
                        raise ValueError(f"{path}: the tensor {key!r} is also in {found[key].file.name}; keep one")
                    found[key] = StoredTensor(path, part.get_dtype(), tuple(part.get_shape()))
        except (SafetensorError, OSError, OverflowError) as error:
            raise ValueError(
                f"{path} is cut off, damaged or no safetensors file ({first_line(error)}); download the file again"
            ) from None
    for key, tensor in found.items():
        if tensor.dtype not in FLOATS + _CONSTANTS:
            raise ValueError(
                f"{tensor.file}: {key} is stored as {tensor.dtype}, which scores cannot be computed from; save the "
                "weights as float32, float16 or bfloat16"
            )
    return found
