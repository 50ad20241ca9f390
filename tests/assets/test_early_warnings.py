"""A scheduler's early warning ends neither a run nor the programs that it started."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from assets.early_warnings import WARNINGS, outlive_warnings

PROGRAM = """
import os, signal, subprocess, sys
from assets.early_warnings import outlive_warnings
number, inside = int(sys.argv[1]), sys.argv[2] == "inside"
child = [sys.executable, "-c", f"import os; os.kill(os.getpid(), {number}); print('child lives')"]
if inside:
    with outlive_warnings():
        os.kill(os.getpid(), number)
        subprocess.run(child, check=True)
        print("lives", flush=True)
else:
    with outlive_warnings():
        pass
    os.kill(os.getpid(), number)
"""


@pytest.mark.parametrize("number", WARNINGS)
def test_a_warning_ends_nothing_meanwhile_and_what_it_did_before_afterwards(number):
    command = [sys.executable, "-c", PROGRAM, str(int(number))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    run = subprocess.run([*command, "inside"], capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stdout) == (0, "child lives\nlives\n")
    assert subprocess.run([*command, "after"], env=environment).returncode == -number


def test_a_handler_of_somebody_else_stays_and_other_threads_change_nothing():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with outlive_warnings():
            signal.raise_signal(signal.SIGUSR1)
        assert heard == [signal.SIGUSR1]

        def in_a_thread():
            with outlive_warnings():
                heard.append(signal.getsignal(signal.SIGUSR2))

        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        assert heard[1] is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)
