"""Digests of large files, remembered: a file is read again whenever it may have changed, and not otherwise.

A digest is remembered by path, device, inode, size and both times of the file: an edit in place that keeps the size
and puts the modification time back still moves the change time. It is read again, and not remembered, when in doubt:

- within a minute of the file's times, or while they lie ahead of the clock: two edits may share one tick of a coarse
  clock, and pages that a program has mapped are dated up to 35 s before their last edit;
- on file systems that do not date every edit (in memory, FAT, SMB, FUSE, unknown ones).
"""

import hashlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.durable import replace_file

log = logging.getLogger("ropewalk")

REMEMBERED_BYTES = 1 << 20
SAID_BYTES = 1_000_000_000
SETTLED_NS = 60 * 1_000_000_000
_known: dict["Stamp", str] = {}  # of this process: for where there is no store
MOUNTS = Path("/proc/self/mountinfo")
DATED = frozenset(
    {"apfs", "bcachefs", "beegfs", "btrfs", "ceph", "erofs", "ext2", "ext3", "ext4", "f2fs", "gfs2", "gpfs", "iso9660"}
    | {"jfs", "lustre", "nfs", "nfs4", "ocfs2", "overlay", "squashfs", "xfs", "zfs"}
)


class Stamp(NamedTuple):
    """What the system says of a file; whoever edits the file changes one of these. Times in nanoseconds."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class RememberedDigests:
    """Digests of files, those of large ones kept below `folder`, a small file each. Any number of processes share it.

    `read` gives the digests of files by reading them. Without the folder's parent (the store) nothing is written.
    """

    def __init__(self, folder: Path, read: Callable[[Sequence[Path]], Sequence[str]]):
        self.folder, self.read = folder, read

    def __call__(self, files: Sequence[Path]) -> list[str]:
        """The digest of each file. Raises OSError when one cannot be read."""
        stamps = [stamp_of(file) for file in files]
        mounts = _mounts()
        doubts = [doubt(stamp, time.time_ns(), mounts) for stamp in stamps]
        known = [
            None if why or stamp.size < REMEMBERED_BYTES else self._recall(stamp)
            for stamp, why in zip(stamps, doubts, strict=True)
        ]
        unknown = [i for i, digest in enumerate(known) if digest is None]
        for i, digest in zip(
            unknown, self._read([files[i] for i in unknown], [stamps[i] for i in unknown]), strict=True
        ):
            known[i] = digest
            if not doubts[i] and stamps[i].size >= REMEMBERED_BYTES and stamp_of(files[i]) == stamps[i]:
                self._remember(stamps[i], digest)
        return [digest for digest in known if digest is not None]

    def _read(self, files: Sequence[Path], stamps: Sequence[Stamp]) -> Sequence[str]:
        n_bytes = sum(stamp.size for stamp in stamps)
        if n_bytes < SAID_BYTES:
            return self.read(files)
        largest = max(stamps, key=lambda stamp: stamp.size)
        place = f"{len(files)} files, {n_bytes / 1e9:.1f} GB, the largest {largest.path}"
        log.warning("reading a model to tell whether it changed: %s", place)
        began = time.monotonic()
        found = self.read(files)
        why = doubt(largest, time.time_ns(), _mounts()) or ("" if self.folder.parent.is_dir() else "no store yet")
        log.warning(
            "read %.1f GB in %.1f s; %s",
            n_bytes / 1e9,
            time.monotonic() - began,
            f"to be read again ({why})" if why else "not read again until a file changes",
        )
        return found

    def _place(self, stamp: Stamp) -> Path:
        return self.folder / f"{hashlib.sha256(os.fsencode(stamp.path)).hexdigest()}.json"

    def _recall(self, stamp: Stamp) -> str | None:
        """The remembered digest if it belongs to this very state of the file. A damaged memory counts as none."""
        if stamp in _known:
            return _known[stamp]
        try:
            found = json.loads(self._place(stamp).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            log.warning("%s cannot be read (%s); the file is read again", self._place(stamp), error.strerror)
            return None
        digest = found.get("digest") if isinstance(found, dict) else None
        belongs = isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest) and found == _entry(stamp, digest)
        return digest if belongs else None

    def _remember(self, stamp: Stamp, digest: str) -> None:
        _known[stamp] = digest
        if not self.folder.parent.is_dir():
            return
        try:
            self.folder.mkdir(exist_ok=True)
            replace_file(self._place(stamp), json.dumps(_entry(stamp, digest), indent=1).encode())
        except OSError as error:
            log.warning("%s cannot be written (%s); %s is read again", self.folder, error.strerror, stamp.path)


def stamp_of(file: Path) -> Stamp:
    """What the system says of a file, links followed. It is opened: NFS asks its server only then."""
    path = os.path.realpath(file)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Stamp(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def doubt(stamp: Stamp, now_ns: int, mounts: Sequence[tuple[str, str]]) -> str:
    """Why a digest of a file in this state must not be remembered or recalled; empty where it may."""
    if now_ns - max(stamp.mtime_ns, stamp.ctime_ns) < SETTLED_NS:
        return "changed within a minute, or dated ahead of the clock"
    kind = _file_system(stamp.path, mounts)
    return "" if kind in DATED else f"the file system {kind} does not date every edit"


def _file_system(path: str, mounts: Sequence[tuple[str, str]]) -> str:
    within = [(len(point), kind) for point, kind in mounts if path == point or path.startswith(point.rstrip("/") + "/")]
    longest = max((length for length, _ in within), default=0)
    return [kind for length, kind in within if length == longest][-1] if within else "unknown"


def _mounts() -> list[tuple[str, str]]:
    """Mount points and their file systems' kinds, the later above the earlier."""
    if sys.platform == "darwin":
        return [("/", "apfs"), ("/Volumes", "unknown")]
    try:
        lines = os.fsdecode(MOUNTS.read_bytes()).splitlines()
    except OSError:
        return []
    fields = [line.split(" ") for line in lines if " - " in line]
    return [(_unescaped(field[4]), field[field.index("-") + 1].partition(".")[0]) for field in fields]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def _entry(stamp: Stamp, digest: str) -> dict[str, Any]:
    return {**stamp._asdict(), "digest": digest}
