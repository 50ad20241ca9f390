"""The manifest: the list of an artifact's files with their digests, and where the artifact came from.

A manifest is valid only if its bytes are exactly what `render` writes, its own digest included, so that every flipped
bit in it is found.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.spec.study import canonical_json
from warehouse.durable import StoreError, sha256_of

FORMAT = 2
MANIFEST = "manifest.json"
FIELDS = {"format", "stage", "key", "files", "spec", "inputs", "code", "provenance", "summary", "digest"}
WITHOUT_CODE = 1  # the format of the first edition, whose manifests do not say which definitions made the key


class Invalid(ValueError):
    """Why a folder is not a valid artifact, in a few words."""


class Newer(StoreError):
    """An artifact that a newer edition wrote: whole, and not ours to read, move or replace."""


def is_stray(name: str) -> bool:
    """Whether systems and file managers put files or folders of this name wherever they look or copy."""
    return name in ("Thumbs.db", "desktop.ini", "@eaDir") or name.startswith((".", "~$"))


def describe(folder: Path) -> dict[str, dict[str, Any]]:
    """{relative path: {bytes, sha256}} of every file below `folder` but strays.

    Raises Invalid on a link, a device, or a name that is not plain text.
    """
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in sorted(_names(folder))
    }


def render(content: Mapping[str, Any]) -> bytes:
    """The manifest's bytes. `content` has every field but `digest`, which is added."""
    plain = {field: value for field, value in content.items() if field != "digest"}
    digest = hashlib.sha256(canonical_json(plain).encode()).hexdigest()
    text = json.dumps(plain | {"digest": digest}, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return (text + "\n").encode()


def load(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, its own digest checked and nothing else. Raises Invalid and Newer like `read`."""
    path = folder / MANIFEST
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise Invalid("it is not a folder")
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Invalid(f"{MANIFEST} is not a plain file")
        raw = path.read_bytes()
        manifest = json.loads(raw)
    except FileNotFoundError:
        raise Invalid(f"it has no {MANIFEST}") from None
    except (ValueError, RecursionError):
        raise Invalid(f"{MANIFEST} is not JSON") from None
    if not isinstance(manifest, dict):
        raise Invalid(f"{MANIFEST} is no JSON object")
    try:
        intact = render(manifest) == raw
    except (ValueError, TypeError, RecursionError):
        intact = False
    number = manifest.get("format")
    if intact and isinstance(number, int) and number > FORMAT:
        raise Newer(
            f"{folder} was written by a newer edition of Ropewalk (format {number}, this one reads up to {FORMAT}) and "
            "stays as it is; use that edition, or point ROPEWALK_STORE at another folder"
        )
    first_edition = number == WITHOUT_CODE
    if set(manifest) != (FIELDS - {"code"} if first_edition else FIELDS):
        raise Invalid(f"{MANIFEST} has not the fields of format {FORMAT}")
    if not intact:
        raise Invalid(f"{MANIFEST} does not match its own digest")
    if first_edition:
        manifest["code"] = {}
    return manifest


def read(folder: Path, stage: str, key: str) -> dict[str, Any]:
    """The manifest of an artifact's folder, with names and sizes of its files checked (not yet their digests).

    Strays beside them do not count. Raises Invalid, with the reason, on whatever else `render` and `describe` would not
    have written, and Newer on what a newer edition wrote.
    """
    manifest = load(folder)
    if manifest["format"] not in (WITHOUT_CODE, FORMAT) or (manifest["stage"], manifest["key"]) != (stage, key):
        raise Invalid(f"{MANIFEST} belongs to {manifest['stage']} {manifest['key']}, format {manifest['format']}")
    parts = ("spec", "inputs", "code", "provenance", "summary")
    if odd := [part for part in parts if not isinstance(manifest[part], dict)]:
        raise Invalid(f"{MANIFEST} has a faulty {odd[0]}")
    _check_files(folder, manifest["files"])
    return manifest


def _check_files(folder: Path, files: Any) -> None:
    if not isinstance(files, dict) or not files:
        raise Invalid(f"{MANIFEST} lists no files")
    for name, entry in files.items():
        if not isinstance(entry, dict) or set(entry) != {"bytes", "sha256"}:
            raise Invalid(f"{MANIFEST} does not describe {name!r}")
        if name != os.path.normpath(name) or name.startswith(("/", "..")) or "\0" in name:
            raise Invalid(f"{MANIFEST} lists {name!r}, which is not a path below the folder")
    present = _names(folder) - {MANIFEST}
    if missing := sorted(set(files) - present):
        raise Invalid(f"{missing[0]} is missing")
    if unknown := sorted(present - set(files)):
        raise Invalid(f"{unknown[0]} is not in {MANIFEST}")
    for name, entry in files.items():
        n_bytes = (folder / name).stat().st_size
        if n_bytes != entry["bytes"]:
            raise Invalid(f"{name} has {n_bytes} bytes in place of {entry['bytes']}")


def _names(folder: Path) -> set[str]:
    """Relative paths of all files below a folder but strays; all must be plain files, in real folders."""
    names: set[str] = set()
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as scan:
            entries = list(scan)
        for entry in entries:
            relative = Path(entry.path).relative_to(folder).as_posix()
            if is_stray(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                names.add(relative)
            else:
                raise Invalid(f"{relative} is a link or a device, not a plain file")
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise Invalid("a file's name is not UTF-8") from None
    return names
