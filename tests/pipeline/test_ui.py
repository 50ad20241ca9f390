"""`make ui`: whoever ends it ends the web server, the daemon and everything else that it started."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARK = "ROPEWALK_TEST_MARK"


def marked(mark: str) -> dict[int, str]:
    """Command lines of the living processes whose environment has the mark, by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except (OSError, ProcessLookupError):
                continue  # ended meanwhile, or a zombie
    return found


def wait_until(true, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


@pytest.fixture
def served(tmp_path):
    """A running `python -m pipeline.ui` in a session of its own, its mark and its port."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc to find the processes in")
    mark = secrets.token_hex(8)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = {"ROPEWALK_STORE": str(tmp_path / "store"), "DAGSTER_HOME": "", "PYTHONPATH": str(ROOT), MARK: mark}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.ui", "-p", str(port)],
        env=os.environ | places,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process, mark, port
    for left in marked(mark):
        os.kill(left, signal.SIGKILL)
    process.communicate()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_leader_ends_everything(served, tmp_path, number):
    process, mark, port = served
    wait_until(lambda: answers(port), 600)
    running = marked(mark)
    assert any("dagster_webserver" in command for command in running.values())
    assert any("dagster._daemon" in command for command in running.values())
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err.rstrip().endswith(f"ui: stopped by {number.name}")
    wait_until(lambda: not marked(mark), 10)
    assert not answers(port)
    assert (tmp_path / "store" / "dagster" / "dagster.yaml").is_file()


@pytest.mark.timeout(600)
def test_a_signal_while_it_starts_ends_everything(served, tmp_path):
    process, mark, _ = served
    wait_until(lambda: any(" dagster dev " in command for command in marked(mark).values()), 300)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    wait_until(lambda: not marked(mark), 10)


def test_a_home_that_cannot_serve_is_one_sentence(tmp_path):
    places = {"ROPEWALK_STORE": str(tmp_path / "what?"), "DAGSTER_HOME": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.ui"], env=os.environ | places, cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: ROPEWALK_STORE: databases misread the ? in ")
    assert list(tmp_path.iterdir()) == []
