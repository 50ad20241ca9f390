"""One training a folder at a time: a lock that a killed process leaves open."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.training.durable import cannot_write

logger = logging.getLogger(__name__)


@contextmanager
def sole_user(folder: Path, poll_s: float = 0.5) -> Iterator[None]:
    """Hold `folder` (made if absent) alone; wait, and say so, while another process does.

    The kernel releases the lock of a dead process. A folder that was removed while we waited is made anew.
    Raises TrainingWriteError when the folder cannot be made or opened.
    """
    said = False
    while True:
        path = folder / "lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(folder, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                break
        except BlockingIOError:
            if not said:
                logger.warning("Waiting for another process that trains in %s.", folder)
                said = True
            time.sleep(poll_s)
        os.close(descriptor)
    try:
        yield
    finally:
        os.close(descriptor)
