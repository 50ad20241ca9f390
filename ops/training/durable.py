"""Folders that exist whole or not at all: written beside, fsynced, renamed, and verified by SHA-256 when read."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_UNFINISHED = ".unfinished-"


class TrainingWriteError(OSError):
    """A snapshot or a resumable state could not be written (disk full, no permission, …)."""


def cannot_write(what: Path, error: OSError) -> TrainingWriteError:
    """The one-sentence error of a failed write."""
    reason = error.strerror or error
    remedy = "make room or access and start again, training continues from its last resumable state"
    return TrainingWriteError(error.errno, f"cannot write {what}: {reason}; {remedy}")


def sha256(data: bytes) -> str:
    """Hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_file(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_folder(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write `files` (name → bytes) as `folder`, replacing what is there; returns name → SHA-256.

    The folder appears by one rename after its files are on disk. Raises TrainingWriteError with the folder and
    the reason; the unfinished copy is removed then, and the folder is the old one or absent.
    """
    unfinished = folder.parent / f"{_UNFINISHED}{folder.name}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, data in files.items():
            _write_file(unfinished / name, data)
        sync_folder(unfinished)
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(unfinished, folder)
        sync_folder(folder.parent)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise cannot_write(folder, error) from error
    return {name: sha256(data) for name, data in files.items()}


def problem_with(folder: Path, digests: Mapping[str, str]) -> str | None:
    """What keeps `folder` from being exactly the files of `digests`, in words; None when nothing does.

    Files that systems and file managers put beside them (.DS_Store, Thumbs.db) do not count.
    """
    if not folder.is_dir():
        return "is missing"
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {"Thumbs.db", "desktop.ini"}
    if surplus := sorted(names - set(digests)):
        return f"holds the unknown file {surplus[0]}"
    for name, expected in digests.items():
        path = folder / name
        if not path.is_file():
            return f"lacks {name}"
        if sha256(path.read_bytes()) != expected:
            return f"has a damaged {name}"
    return None


def remove_unfinished(parent: Path) -> list[str]:
    """Remove the left-overs of killed writers in `parent`; returns their names."""
    names = sorted(path.name for path in parent.glob(f"{_UNFINISHED}*"))
    for name in names:
        shutil.rmtree(parent / name)
    return names
