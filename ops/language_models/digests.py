"""Digests of whole files, read by several threads: every byte counts, however large the file."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PIECE_BYTES = 32 << 20
READ_BYTES = 1 << 20
MOST_THREADS = 8


def full_digests(files: Sequence[Path]) -> list[str]:
    """The digest of each file's content, 64 hexadecimal digits; links are followed.

    A file's digest is the sha256 over the sha256 of its pieces of 32 MiB, so that one large file too is read by
    several threads (hashing releases the interpreter's lock). Raises OSError when a file cannot be read.
    """
    sizes = [file.stat().st_size for file in files]
    pieces = [
        (file, start) for file, size in zip(files, sizes, strict=True) for start in range(0, max(size, 1), PIECE_BYTES)
    ]
    pool = ThreadPoolExecutor(min(MOST_THREADS, _n_cpus()), thread_name_prefix="digest")
    try:
        found = iter(list(pool.map(_piece_digest, *zip(*pieces, strict=True)))) if pieces else iter(())
    finally:
        pool.shutdown(cancel_futures=True)
    digests = []
    for size in sizes:
        whole = hashlib.sha256()
        for _ in range(0, max(size, 1), PIECE_BYTES):
            whole.update(next(found))
        digests.append(whole.hexdigest())
    return digests


def _piece_digest(file: Path, start: int) -> bytes:
    digest, buffer = hashlib.sha256(), bytearray(READ_BYTES)
    view = memoryview(buffer)
    with file.open("rb", buffering=0) as opened:
        opened.seek(start)
        left = PIECE_BYTES
        while left and (n := opened.readinto(view[: min(left, READ_BYTES)])):
            digest.update(view[:n])
            left -= n
    return digest.digest()


def _n_cpus() -> int:
    counted = getattr(os, "sched_getaffinity", None)
    return len(counted(0)) if counted else os.cpu_count() or 1
