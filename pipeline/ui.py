"""Dagster's pages on this machine: `python -m pipeline.ui`, which is `dagster dev` and ends with all that it started.

Further arguments go to `dagster dev`, such as `-p 3001`.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from pipeline.stopping import end_quietly_on_ctrl_c

if __name__ == "__main__":
    end_quietly_on_ctrl_c()

from pipeline.instance import prepare_instance
from pipeline.surroundings import print_whatever_comes, supply_account, temporary_folder_fit_for_sockets
from warehouse.durable import StoreError
from warehouse.store import Store

QUIET = ["-W", "ignore:Function `dev_command` is superseded"]
ENDING = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
PATIENCE_S = {signal.SIGINT: 10.0, signal.SIGTERM: 3.0, signal.SIGKILL: 2.0}


def serve(arguments: Sequence[str]) -> int:
    """Run `dagster dev` in a session of its own until it ends or a signal comes; then end the whole session.

    Returns Dagster's exit code, or 128 and the number of the signal.
    """
    received: list[int] = []
    for name in ENDING:
        number = getattr(signal, name)
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, frame: received.append(number))
    command = [sys.executable, *QUIET, "-m", "dagster", "dev", "-h", "127.0.0.1", *arguments]
    leader = subprocess.Popen(command, start_new_session=True)
    while not received and leader.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(0.5)
    code = leader.returncode
    end(leader)
    if received:
        print(f"ui: stopped by {signal.Signals(received[0]).name}", file=sys.stderr)
        return 128 + received[0]
    return code


def end(leader: subprocess.Popen[bytes]) -> None:
    """End every process of the leader's session: asked by Ctrl-C first, which Dagster passes on, then made to."""
    leader.send_signal(signal.SIGINT)
    for number, patience_s in PATIENCE_S.items():
        if number != signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader.pid, number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            leader.poll()
            try:
                os.killpg(leader.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)


def main(arguments: Sequence[str]) -> int:
    """Prepare Dagster's home and serve. The exit code is 1, with one sentence, where the home cannot be used."""
    print_whatever_comes()
    try:
        store = Store.from_environment().root
        prepare_instance(store)
        supply_account(store / "home")
        with temporary_folder_fit_for_sockets():
            return serve(arguments)
    except StoreError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
