"""What others put or left where the store exposes its results: kept under another name, and said in one sentence."""

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warehouse import durable, manifest

log = logging.getLogger("ropewalk")


def write_ahead(database: Path) -> list[Path]:
    """The write-ahead logs beside a database: a program that wrote into it was killed, or has not closed it yet.

    DuckDB ends their names in .wal, .wal.checkpoint or .wal.recovery.
    """
    begin = f"{database.name}.wal"
    if not database.parent.is_dir():
        return []
    return sorted(path for path in database.parent.iterdir() if path.name.startswith(begin))


def is_copy(target: Path, manifests: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a real file is the copy of the file of its name in an artifact with one of these manifests."""
    if target.is_symlink() or not target.is_file():
        return False
    digest = durable.sha256_of(target)
    return any(digest == content["files"].get(target.name, {}).get("sha256") for content in manifests)


def why_no_copy(target: Path, manifests: Iterable[Mapping[str, Any]]) -> str | None:
    """Why what stands where a copy is due must be kept, in words; None if nothing does, or a copy of a result."""
    if logs := write_ahead(target):
        return f"has {logs[0].name} beside it, of a program that wrote into it and was killed or still has it open"
    if not os.path.lexists(target) or is_copy(target, manifests):
        return None
    return "is not as the store wrote it (somebody changed or damaged it)"


def why_no_link(target: Path, stage: str, artifacts: Path) -> str | None:
    """Why what stands where a link into `artifacts` is due must be kept, in words; None if there is no reason."""
    if not os.path.lexists(target):
        return None
    if target.is_symlink():
        linked = Path(os.path.normpath(target.parent / os.readlink(target)))
        return None if linked.is_relative_to(artifacts) else "is a link that the store did not make"
    if target.is_dir():
        return None if is_artifact(target, stage) else "is a folder that the store did not make, or was changed since"
    return "is a file that the store did not make"


def is_artifact(folder: Path, stage: str) -> bool:
    """Whether a real folder is exactly what a link to an artifact of `stage` showed: a copy that followed links."""
    try:
        content = manifest.load(folder)
        manifest.read(folder, stage, content["key"])
        return all(durable.sha256_of(folder / name) == entry["sha256"] for name, entry in content["files"].items())
    except (manifest.Invalid, manifest.Newer, FileNotFoundError, NotADirectoryError):
        return False


def set_aside(target: Path, reason: str) -> Path:
    """Keep `target`, with the write-ahead logs beside it, as <stem>.aside-<n><suffix>, and say so.

    A database stays where it is under a second name, so that readers find one at any moment: the caller replaces it.
    Anything else is gone from `target` afterwards. A database and its log have names that belong together: whoever
    opens the kept one finds what was written. A program that has them open goes on in what is kept.
    """
    logs, n = write_ahead(target), 1
    while os.path.lexists(kept := target.with_name(f"{target.stem}.aside-{n}{target.suffix}")):
        n += 1
    if target.is_file() and not target.is_symlink():
        _second_name(target, kept)
    elif os.path.lexists(target):
        os.rename(target, kept)
    for path in logs:
        os.rename(path, kept.with_name(kept.name + path.name.removeprefix(target.name)))
    durable.sync_file(target.parent)
    log.warning("%s %s; it is kept as %s", target, reason, kept.name)
    return kept


def _second_name(target: Path, kept: Path) -> None:
    """A hard link, or a copy on a file system that has none."""
    with contextlib.suppress(OSError):
        os.link(target, kept)
        return
    shutil.copyfile(target, kept)
    durable.sync_file(kept)
