"""The artifact store: results that are either whole or absent.

    store/artifacts/<stage>/<key>/    manifest.json and the files; written beside, fsynced, renamed into place at once
    store/refused/<stage>/<key>/      the same, but a blocking check failed: kept with its verdicts, never a result
    store/work/<stage>/<key>/         resumable partial work of a stage that takes long
    store/quarantine/                 artifacts that failed verification, kept for a look
    store/answers/, digests/          answers of prompted models; what large model files were when last read
    store/warehouse.duckdb, report    the newest results, exposed under names that stay
    store/<name>.aside-<n>            what others left under such a name, kept

What is published is never changed. A killed writer leaves a folder with a leading dot, which nobody reads and
`Store.clean` removes.
"""

import contextlib
import errno
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from warehouse import aside, durable, manifest
from warehouse.durable import PARTIAL, StoreError, disk_errors
from warehouse.places import place

log = logging.getLogger("ropewalk")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
KEY = re.compile(r"[0-9a-f]{64}")  # of folders that are found and not asked for: others are not ours
FORSAKEN_S = 86_400.0
PARTS = ("artifacts", "refused")
Verification = Literal["all", "sizes"]

_verified: set[tuple[str, int, int, int, str]] = set()


@dataclass(frozen=True)
class Artifact:
    """A published result. `path` is its folder, `manifest` the content of its manifest.json."""

    stage: str
    key: str
    path: Path
    manifest: Mapping[str, Any] = field(repr=False)
    store: "Store" = field(repr=False)

    @property
    def summary(self) -> dict[str, Any]:
        """The small JSON that the stage gave for metadata and checks."""
        return self.manifest["summary"]

    @property
    def files(self) -> tuple[str, ...]:
        """Relative paths of its files, sorted."""
        return tuple(sorted(self.manifest["files"]))

    @property
    def n_bytes(self) -> int:
        """Size of its files, in bytes."""
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    def file(self, name: str) -> Path:
        """The path of one file, its sha256 checked at the first read in this process.

        Raises StoreError when the artifact has no such file, or when the file is damaged: the artifact is then
        quarantined, and the next run computes it again.
        """
        if name not in self.manifest["files"]:
            raise StoreError(f"{self.path} has no file {name!r}; it has {', '.join(self.files)}")
        with disk_errors(f"cannot read {self.path / name}"):
            try:
                _verify_file(self.path, name, self.manifest["files"][name]["sha256"])
            except (manifest.Invalid, FileNotFoundError) as error:
                self.store._find(self.path.parent.parent.name, self.stage, self.key)
                raise StoreError(
                    f"{self.stage} {self.key[:12]} is damaged ({error}); run again and it is computed anew"
                ) from None
        return self.path / name

    def table(self, name: str) -> pl.DataFrame:
        """The rows of `<name>.parquet`. Raises StoreError like `file`."""
        return pl.read_parquet(self.file(f"{name}.parquet"), glob=False)  # else [ ? * in the store's path would be read


class Store:
    """The artifact store below the folder `root`. Opening it creates nothing; any number of processes may share it."""

    def __init__(self, root: Path | str):
        self.root = Path(root).absolute()

    @classmethod
    def from_environment(cls) -> "Store":
        """The store at $ROPEWALK_STORE, or at ./store. Raises StoreError on a path that cannot be meant."""
        return cls(place("ROPEWALK_STORE", "store"))

    def get(self, stage: str, key: str, verify: Verification = "all") -> Artifact | None:
        """The artifact, or None when there is none.

        Its files are checked: names and sizes always, digests unless `verify="sizes"` (they are then checked by
        `Artifact.file`); a file is hashed once a process. An artifact that fails is moved to the quarantine with a
        warning, and counts as absent. Raises StoreError when the disk cannot be read.
        """
        return self._find("artifacts", stage, key, verify)

    def refused(self, stage: str, key: str, verify: Verification = "sizes") -> Artifact | None:
        """The artifact of this key that was refused, or None; checked as `get` checks."""
        return self._find("refused", stage, key, verify)

    def _find(self, part: str, stage: str, key: str, verify: Verification = "all") -> Artifact | None:
        folder = self._folder(part, stage, key)
        with disk_errors(f"cannot read {folder}"):
            try:
                return self._read(folder, stage, key, verify)
            except FileNotFoundError:
                return None
            except manifest.Invalid:
                return self._quarantine(folder, stage, key, verify)

    def publish(
        self,
        stage: str,
        key: str,
        write: Callable[[Path], object],
        *,
        spec: Mapping[str, Any],
        inputs: Mapping[str, str],
        provenance: Mapping[str, Any],
        summary: Mapping[str, Any],
        code: Mapping[str, Any] | None = None,
        refused: bool = False,
    ) -> Artifact:
        """Let `write(folder)` fill an empty folder, and publish that folder at once and for good.

        The files and then the manifest go to the disk in a folder beside the artifact's; one rename makes them the
        artifact. Of several processes that publish one key the first wins, and all get the winner's artifact. The
        stage's work folder for this key is removed afterwards. `spec`, `inputs`, `code` (see
        `warehouse.keys.code_of`), `provenance` and `summary` are JSON values and go into the manifest.
        With `refused` it is kept as refused and is no result: `get` does not find it; it replaces the one of this key
        that was refused before, and a published one takes such a one away.
        Raises StoreError on a full or failing disk (also inside `write`), on links among the files and when nothing
        was written; anything else that `write` raises passes through. Nothing is published then.
        """
        folder, aside = self._folder("artifacts", stage, key), self._folder("refused", stage, key)
        doing = f"cannot publish {stage} {key[:12]} in {self.root}"
        target = aside if refused else folder
        with disk_errors(doing), self._partial_folder(target) as partial:
            write(partial)
            parts = {"spec": spec, "inputs": inputs, "code": code or {}, "provenance": provenance, "summary": summary}
            if refused:
                durable.remove(aside)
            artifact = self._commit(partial, target, parts, doing)
            if not refused:
                durable.remove(aside)
        self.discard_workdir(stage, key)
        return artifact

    def refuse(self, artifact: Artifact) -> None:
        """Move a published artifact to the refused ones, in place of one of its key; said in the log."""
        target = self._folder("refused", artifact.stage, artifact.key)
        with disk_errors(f"cannot move {artifact.path} to {target}"):
            durable.make_folder(target.parent)
            lock = durable.try_lock(self.root / "refused", wait=True)
            try:
                if artifact.path.is_dir():
                    durable.remove(target)
                    os.rename(artifact.path, target)
                    durable.sync_file(target.parent)
                    durable.sync_file(artifact.path.parent)
                    log.warning("%s %s is refused; moved to %s", artifact.stage, artifact.key[:12], target)
            finally:
                if lock is not None:
                    os.close(lock)

    def _commit(self, partial: Path, folder: Path, parts: Mapping[str, Mapping[str, Any]], doing: str) -> Artifact:
        stage, key = folder.parent.name, folder.name
        try:
            files = manifest.describe(partial)
            content = {"format": manifest.FORMAT, "stage": stage, "key": key, "files": files}
            content |= {name: dict(part) for name, part in parts.items()}
            rendered = manifest.render(content)
        except manifest.Invalid as error:
            raise StoreError(f"{doing}: {error}") from None
        except (TypeError, ValueError) as error:
            raise StoreError(f"{doing}: the manifest takes JSON values only ({error}); use null for NaN") from None
        if not files or manifest.MANIFEST in files:
            raise StoreError(f"{doing}: the stage wrote no files, or one named {manifest.MANIFEST}")
        durable.sync_tree(partial)
        durable.write_file(partial / manifest.MANIFEST, rendered)
        durable.sync_file(partial)
        while True:
            try:
                os.rename(partial, folder)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
            if (winner := self._find(folder.parent.parent.name, stage, key)) is not None:
                return winner
        durable.sync_file(folder.parent)
        for name in files:
            _verified.add(_identity(folder, name, files[name]["sha256"]))
        return self._read(folder, stage, key, "all")

    def workdir(self, stage: str, key: str) -> Path:
        """The folder for a stage's resumable partial work; created if need be, kept until the key is published."""
        folder = self._folder("work", stage, key)
        with disk_errors(f"cannot create {folder}"):
            durable.make_folder(folder)
        return folder

    def discard_workdir(self, stage: str, key: str) -> None:
        """Remove a stage's partial work for this key, if there is any."""
        folder = self._folder("work", stage, key)
        with disk_errors(f"cannot remove {folder}"):
            durable.remove(folder)

    @contextlib.contextmanager
    def building(self, stage: str, key: str) -> Iterator[Path]:
        """The work folder of a key, held by one process at a time; the others wait.

        Ask `get` again inside: whoever held it before may have published. The lock dies with its process.
        """
        folder = self._folder("work", stage, key)
        lock = folder.with_name(f".{key}.lock")
        said = False
        with disk_errors(f"cannot lock {lock}"):
            while True:
                durable.make_folder(folder.parent)
                descriptor = durable.try_lock(lock, os.O_RDWR | os.O_CREAT, wait=said)
                if descriptor is not None:
                    break
                if not said:
                    log.info("%s %s: waiting for the process that builds it", stage, key[:12])
                    said = True
        try:
            yield self.workdir(stage, key)
        finally:
            published = self._folder("artifacts", stage, key).is_dir()
            if published:
                with contextlib.suppress(OSError):
                    durable.remove(folder)
                    lock.unlink()
            os.close(descriptor)

    def expose(self, artifact: Artifact, name: str) -> Path:
        """Make an artifact the one that readers find as `<root>/<name>`; readers see the old one or the new one.

        If the artifact has a file of that name, the file is copied (what a reader does to the copy harms nothing) and
        replaces the old copy; else `<root>/<name>` becomes a relative link to the artifact's folder.
        What the store did not write there itself, and the log of a program that wrote into a copy and was killed, is
        set aside under another name and said; a folder that is a copy of an artifact, files and manifest, is replaced.
        Raises StoreError on disk errors.
        """
        target = self.root / name
        with disk_errors(f"cannot expose {target}"):
            source = artifact.file(name) if name in artifact.manifest["files"] else None
            if source is not None:
                if aside.is_copy(target, [artifact.manifest]) and not aside.write_ahead(target):
                    return target
                reason = aside.why_no_copy(
                    target, (other.manifest for other in self.artifacts(stages=(artifact.stage,)))
                )
            else:
                reason = aside.why_no_link(target, artifact.stage, self.root / "artifacts")
            if reason:
                aside.set_aside(target, reason)
            with self._partial_folder(target) as partial:
                if source is None and target.is_dir() and not target.is_symlink():
                    os.rename(target, partial / f"{name}.copy")
                if source is not None:
                    shutil.copyfile(source, partial / name)
                    durable.sync_file(partial / name)
                else:
                    os.symlink(os.path.relpath(artifact.path, self.root), partial / name)
                os.replace(partial / name, target)
                durable.sync_file(self.root)
        log.info("%s is now %s %s", target, artifact.stage, artifact.key[:12])
        return target

    def artifacts(self, verify: Verification = "sizes", stages: Sequence[str] = ("*",)) -> Iterator[Artifact]:
        """Every valid artifact, by stage and key, or those of some stages. Invalid ones are quarantined on the way.

        Those of a newer edition are left as they are, and said.
        """
        newer = []
        for folder in self._kept("artifacts", stages):
            try:
                if artifact := self.get(folder.parent.name, folder.name, verify):
                    yield artifact
            except manifest.Newer as error:
                newer.append(error)
        if newer:
            log.warning("%s (%d such)", newer[0], len(newer))

    def _kept(self, part: str, stages: Sequence[str] = ("*",)) -> list[Path]:
        """The folders of a part that are named as artifacts are."""
        found = (folder for stage in stages for folder in self.root.glob(f"{part}/{stage}/*"))
        return sorted(f for f in found if _NAME.fullmatch(f.parent.name) and KEY.fullmatch(f.name))

    def verify(self) -> list[Path]:
        """Check every file of every artifact, refused ones too; quarantine what fails.

        Returns the folders that the quarantined ones had. Those of a newer edition are left as they are.
        """
        _verified.clear()
        damaged = []
        for folder in [folder for part in PARTS for folder in self._kept(part)]:
            with contextlib.suppress(manifest.Newer):  # `artifacts` says so
                if self._find(folder.parents[1].name, folder.parent.name, folder.name) is None:
                    damaged.append(folder)
        return damaged

    def clean(self) -> list[Path]:
        """Remove what dead writers left: partial folders that no process holds, work of keys published or refused.

        Returns what was removed. Raises StoreError on disk errors.
        """
        removed = []
        with disk_errors(f"cannot clean {self.root}"):
            left = [path for part in (".", *(f"{p}/*" for p in PARTS)) for path in self.root.glob(f"{part}/{PARTIAL}*")]
            for folder in sorted(left):
                if (descriptor := durable.try_lock(folder)) is not None:
                    durable.remove(folder)
                    os.close(descriptor)
                    removed.append(folder)
            for file in sorted([*self.root.glob(f"answers/*/{PARTIAL}*"), *self.root.glob(f"digests/{PARTIAL}*")]):
                with contextlib.suppress(FileNotFoundError):  # its writer may be done just now
                    if time.time() - file.stat().st_mtime > FORSAKEN_S:
                        durable.remove(file)
                        removed.append(file)
            for folder in self._kept("work"):
                stage, key = folder.parent.name, folder.name
                if any(self._folder(part, stage, key).is_dir() for part in PARTS):
                    durable.remove(folder)
                    removed.append(folder)
        return removed

    def _folder(self, part: str, stage: str, key: str) -> Path:
        for name in (stage, key):
            if not _NAME.fullmatch(name):
                raise StoreError(f"{name!r} is not a stage or key; use lower-case letters, digits, - and _")
        return self.root / part / stage / key

    def _read(self, folder: Path, stage: str, key: str, verify: Verification) -> Artifact:
        content = manifest.read(folder, stage, key)
        if verify == "all":
            for name, entry in content["files"].items():
                _verify_file(folder, name, entry["sha256"])
        return Artifact(stage, key, folder, content, self)

    def _quarantine(self, folder: Path, stage: str, key: str, verify: Verification) -> Artifact | None:
        """Move an invalid artifact away, unless another process did so and has published a valid one meanwhile."""
        quarantine = self.root / "quarantine"
        durable.make_folder(quarantine)
        lock = durable.try_lock(quarantine, wait=True)
        try:
            return self._read(folder, stage, key, verify)
        except FileNotFoundError:
            return None
        except manifest.Invalid as error:
            n = 1
            while os.path.lexists(target := quarantine / f"{stage}-{key}-{n}"):
                n += 1
            durable.move(folder, target)
            durable.sync_file(quarantine)
            durable.sync_file(folder.parent)
            log.warning("%s %s is damaged: %s; moved to %s, will be computed anew", stage, key[:12], error, target)
            return None
        finally:
            if lock is not None:
                os.close(lock)

    @contextlib.contextmanager
    def _partial_folder(self, folder: Path) -> Iterator[Path]:
        """A new locked folder beside `folder`, removed at the end if it is still there."""
        durable.make_folder(folder.parent)
        while True:
            partial = folder.with_name(f"{PARTIAL}{folder.name[:16]}-{secrets.token_hex(8)}")
            partial.mkdir()
            if (descriptor := durable.try_lock(partial, wait=True)) is not None:
                break
        try:
            yield partial
        finally:
            with contextlib.suppress(OSError):
                durable.remove(partial)
            os.close(descriptor)


def _identity(folder: Path, name: str, digest: str) -> tuple[str, int, int, int, str]:
    status = (folder / name).stat()
    return str(folder / name), status.st_ino, status.st_size, status.st_mtime_ns, digest


def _verify_file(folder: Path, name: str, digest: str) -> None:
    """Raise Invalid if the file's sha256 is not `digest`; a file that did not change is hashed once a process."""
    identity = _identity(folder, name, digest)
    if identity not in _verified:
        if durable.sha256_of(folder / name) != digest:
            raise manifest.Invalid(f"{name} does not match its sha256")
        _verified.add(identity)
