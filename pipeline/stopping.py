"""A Ctrl-C outside a run, such as during the slow imports of a command's start, is one line and exit code 130."""

import os
import signal
import sys
from types import TracebackType

SIGINT_CODE = 128 + signal.SIGINT


def end_quietly_on_ctrl_c() -> None:
    """From now on an uncaught KeyboardInterrupt ends this process with one line; other errors are shown as ever."""
    shown = sys.excepthook

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            return shown(kind, error, trace)
        print("stopped by SIGINT; what was finished is kept", file=sys.stderr, flush=True)
        os._exit(SIGINT_CODE)

    sys.excepthook = told
