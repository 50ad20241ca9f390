"""Files that survive a crash: fsync, locks that die with their process, and disk errors as one sentence."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

PARTIAL = ".partial-"
DISK_ERRORS = {
    errno.ENOSPC: "the disk is full; free some space and run again",
    errno.EDQUOT: "the disk quota is used up; free some space and run again",
    errno.EIO: "the disk reports a read or write error; check the disk and run again",
    errno.EACCES: "permission denied; make the folder writable and run again",
    errno.EPERM: "the operation is not permitted; make the folder writable and run again",
    errno.EROFS: "the file system is read-only; point ROPEWALK_STORE at a writable folder",
    errno.ENOLCK: "the file system has no locks; point ROPEWALK_STORE at one that has",
    errno.ENAMETOOLONG: "the path is too long; point ROPEWALK_STORE at a shorter one",
    errno.EEXIST: "a file or link stands there already; choose another path",
    errno.ENOTDIR: "a part of the path is no folder; choose another path",
    errno.ELOOP: "a part of the path is a link to itself; choose another path",
    errno.EFBIG: "a file may not grow so large here; raise the limit (ulimit -f) and run again",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n) and run again",
}
NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class StoreError(RuntimeError):
    """The store cannot do what was asked. The message is one sentence with the path and the remedy."""


@contextlib.contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn an OSError, or a library's error that quotes one, into a StoreError that begins with `doing`."""
    try:
        yield
    except OSError as error:  # shutil's own errors have no number, they quote those of the files
        number = _quoted_error(str(error)) if error.errno is None else error.errno
        raise StoreError(f"{doing}: {_sentence(number, error)}") from error
    except Exception as error:
        number = _quoted_error(str(error))
        if number is None or isinstance(error, StoreError):
            raise
        raise StoreError(f"{doing}: {_sentence(number, error)}") from error


def _quoted_error(message: str) -> int | None:
    """The number of a disk error that a library (Polars, safetensors, DuckDB) wrote into its own exception."""
    quoted = re.search(r"\(os error (\d+)\)|\[Errno (\d+)\]", message)
    if quoted:
        return int(quoted.group(1) or quoted.group(2))
    return next((number for number in DISK_ERRORS if os.strerror(number) in message), None)


def _sentence(number: int | None, error: Exception) -> str:
    text = DISK_ERRORS.get(number or 0)
    if text is None:
        return " ".join(str(error).split())
    name = getattr(error, "filename", None)
    return f"{text} ({name})" if name else text


def sync_file(path: Path) -> None:
    """Force a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Force every file and folder below `folder`, and itself, to the disk; the deepest first."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_file(Path(parent, name))
        sync_file(Path(parent))


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and force it to the disk. Raises FileExistsError rather than replace one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Write `path` anew, whole or not at all, also when several processes do so at once; readers see old or new.

    Each writer has a temporary file of its own beside it (a killed one leaves it: `.partial-…`).
    """
    with partial_file(path, content) as partial:
        os.replace(partial, path)
        sync_file(path.parent)


@contextlib.contextmanager
def partial_file(path: Path, content: bytes) -> Iterator[Path]:
    """A new file with `content` beside `path`, on the disk, under a name that no other writer has; removed after."""
    partial = path.with_name(f"{PARTIAL}{secrets.token_hex(8)}")
    try:
        write_file(partial, content)
        yield partial
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; each new entry is forced to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        sync_file(folder.parent)


def second_name(source: str, target: str) -> str:
    """Make `target` another name of the file `source`, or a copy where the file system has no hard links between them.

    For shutil.copytree as well. Raises OSError.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copyfile(source, target)
    return target


def move(source: Path, target: Path) -> None:
    """Give a file or folder the new name `target`, on another file system too: `target` appears whole, by one rename.

    Raises OSError; what was at `source` is still there then.
    """
    try:
        os.rename(source, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    partial = target.with_name(f".partial-{secrets.token_hex(8)}")
    try:
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, partial, symlinks=True)
            sync_tree(partial)
        else:
            shutil.copyfile(source, partial, follow_symlinks=False)
            sync_file(partial)
        os.rename(partial, target)
    except BaseException:
        remove(partial)
        raise
    remove(source)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Remove a file, link or folder if it is there."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()


def try_lock(path: Path, flags: int = os.O_RDONLY, *, wait: bool = False) -> int | None:
    """The descriptor of `path` with its lock held, or None if another process holds it or the path is gone.

    The kernel drops the lock when the process dies, however it dies. Close the descriptor to release it.
    A path that was replaced or removed before the lock was won counts as gone.
    """
    try:
        descriptor = os.open(path, flags, 0o644)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
