"""What the libraries take from the machine as given: a folder for sockets, a home, a user, shared memory, addresses."""

import contextlib
import multiprocessing
import os
import pwd
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ops.spec.study import StudySpec
from warehouse.durable import StoreError

# A socket's path has at most 107 bytes (103 on macOS); multiprocessing adds 32 to the temporary folder's.
SOCKET_FOLDER_BYTES = 64
PLAIN = re.compile(r"[A-Za-z0-9._/+-]+")  # gRPC reads a socket's path as a URI: no blank, %, ? or #
ADDRESS_BYTES = 72 * 10**9  # V8 in vl-convert 1.9: 69 GB of addresses at its peak
ACCOUNT = ("LOGNAME", "USER", "LNAME", "USERNAME")


@contextlib.contextmanager
def temporary_folder_fit_for_sockets() -> Iterator[None]:
    """Within, $TMPDIR has a short and plain name, where need be that of a link to the same folder.

    Raises StoreError with one sentence when there is no temporary folder, or no place for the link.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        raise StoreError("there is no writable temporary folder; set TMPDIR to one") from None
    if PLAIN.fullmatch(folder) and len(folder) <= SOCKET_FOLDER_BYTES:
        yield
        return
    given = os.environ.get("TMPDIR")
    with short_name(folder) as link:
        os.environ["TMPDIR"] = tempfile.tempdir = link
        try:
            yield
        finally:
            os.environ.pop("TMPDIR") if given is None else os.environ.update(TMPDIR=given)
            tempfile.tempdir = None


@contextlib.contextmanager
def short_name(folder: str) -> Iterator[str]:
    """A link to `folder` in a private folder under a short name, both removed at the end. Raises StoreError."""
    for parent in ("/tmp", "/var/tmp", "/dev/shm", f"/run/user/{os.getuid()}"):
        with contextlib.suppress(OSError):
            private = tempfile.mkdtemp(prefix="rw-", dir=parent)
            break
    else:
        raise StoreError(
            f"the temporary folder {folder} has {len(os.fsencode(folder))} bytes, or a letter that a socket's path "
            f"cannot have; set TMPDIR to one of at most {SOCKET_FOLDER_BYTES} letters, digits, . _ + -"
        )
    link = os.path.join(private, "t")
    try:
        os.symlink(folder, link)
        yield link
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)
        os.rmdir(private)


def supply_account(home: Path) -> None:
    """Set HOME and USER where neither the environment nor the system has them, as in a container with --user.

    Libraries ask for both when they are imported. `home` is made by whoever writes into it.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        os.environ.setdefault("HOME", str(home))
        if not any(os.environ.get(name) for name in ACCOUNT):
            os.environ["USER"] = f"uid{os.getuid()}"


def refuse_without_shared_memory(study: StudySpec) -> None:
    """Raise StoreError if the study's executor needs locks between processes and the machine has none."""
    if study.executor == "in_process":
        return
    try:
        multiprocessing.get_context("forkserver").Lock()
    except (OSError, ImportError) as error:
        raise StoreError(
            f"processes cannot share locks here ({error}); mount /dev/shm writable, or set executor: in_process in the "
            f"YAML of {study.study}"
        ) from None


def refuse_little_address_space() -> None:
    """Raise StoreError under a limit of addresses (ulimit -v) that the chart renderer would die of at the run's end."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < ADDRESS_BYTES:
        raise StoreError(
            f"this shell allows {allowed / 1e9:.0f} GB of addresses (ulimit -v), and drawing charts reserves "
            f"{ADDRESS_BYTES / 1e9:.0f} GB of them, though less than 1 GB of memory; run ulimit -v unlimited, or limit "
            "resident memory instead"
        )


def print_whatever_comes() -> None:
    """A letter that the terminal's encoding lacks is printed as an escape rather than ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by whoever started us
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
