"""SIGUSR1 and SIGUSR2, which schedulers send some time before they end a job, end no process of ours."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def outlive_warnings() -> Iterator[None]:
    """Ignore the warnings meanwhile, here and in the programs started here, unless somebody handles them.

    A training takes them up all the same (`ops.training.interruption`) and has its state saved. Every other stage is
    kept when it is published, so there is nothing to save. Outside the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in WARNINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
