"""What a machine may lack: a short temporary folder, an account, shared memory, an encoding."""

import multiprocessing.connection
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ops.tasks.registry import parse_study
from pipeline import surroundings
from pipeline.surroundings import refuse_without_shared_memory, temporary_folder_fit_for_sockets
from warehouse.durable import StoreError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["job-4711-" * 11, "a b", "50%41", "ü"])
def test_sockets_work_under_any_temporary_folder(name, tmp_path, monkeypatch):
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with temporary_folder_fit_for_sockets():
        short = tempfile.gettempdir()
        assert os.environ["TMPDIR"] == short
        assert os.path.samefile(short, folder)
        assert len(short) < 40
        with multiprocessing.connection.Listener(tempfile.mktemp(prefix="listener-", dir=tempfile.mkdtemp())):
            assert len(list(folder.iterdir())) == 1
    assert os.environ["TMPDIR"] == str(folder)
    assert tempfile.gettempdir() == str(folder)
    assert not os.path.lexists(short)
    assert not os.path.exists(os.path.dirname(short))


def test_no_place_for_the_short_name_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("n" * 100)))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    with pytest.raises(StoreError, match="set TMPDIR to one of at most 64"), temporary_folder_fit_for_sockets():
        pytest.fail("there was no place for it")


def test_an_account_that_the_system_does_not_know_gets_a_home(tmp_path):
    """As a container with --user: no passwd entry, no HOME. Altair asks for the home when it is imported."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become a user that does not exist")
    uid = next(uid for uid in range(54321, 60000) if not known(uid))
    capable = "+dac_override,+dac_read_search"
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    become += [f"--inh-caps={capable}", f"--ambient-caps={capable}"]
    program = (
        "import sys, getpass; from pathlib import Path; from pipeline.surroundings import supply_account\n"
        "supply_account(Path(sys.argv[1]))\n"
        "import altair; print(getpass.getuser(), Path.home())"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", *surroundings.ACCOUNT, "XDG_CACHE_HOME")}
    done = subprocess.run(
        [*become, sys.executable, "-c", program, str(tmp_path / "home")],
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"uid{uid} {tmp_path / 'home'}\n", "")
    assert list(tmp_path.iterdir()) == []


def known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def test_an_account_that_is_known_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    surroundings.supply_account(tmp_path)
    assert "HOME" not in os.environ


def test_no_shared_memory_is_one_sentence_where_it_is_needed(tmp_path, tiny_yaml, monkeypatch):
    """A read-only /dev/shm in a mount namespace of its own."""
    alone = tmp_path / "studies"
    alone.mkdir()
    (alone / "several.yaml").write_text(tiny_yaml.replace("in_process", "multiprocess"))
    refuse_without_shared_memory(parse_study(tiny_yaml, "tiny.yaml"))
    command = 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$0" -m pipeline.run tiny'
    places = {"ROPEWALK_STORE": str(tmp_path / "store"), "ROPEWALK_EXPERIMENTS": str(alone), "PYTHONPATH": str(ROOT)}
    try:
        probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True)
    except FileNotFoundError as error:
        pytest.skip(f"no unshare command: {error}")
    if probe.returncode:
        pytest.skip("mounting is not allowed here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, sys.executable], env=os.environ | places, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: processes cannot share locks here (")
    assert done.stderr.endswith("; mount /dev/shm writable, or set executor: in_process in the YAML of tiny\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()


def test_few_addresses_are_one_sentence_before_anything_runs(tmp_path, tiny_yaml):
    """As SGE's h_vmem sets them; torch loads, and the chart renderer would abort the whole process at the end."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.yaml").write_text(tiny_yaml)
    places = {"ROPEWALK_STORE": str(tmp_path / "store"), "ROPEWALK_EXPERIMENTS": str(tmp_path / "studies")}
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 8000000 && exec "$0" -m pipeline.run tiny', sys.executable],
        env=os.environ | places | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(
        "Error: this shell allows 8 GB of addresses (ulimit -v), and drawing charts reserves "
    )
    assert not (tmp_path / "store").exists()


def test_a_letter_that_the_terminal_lacks_does_not_end_the_program(tmp_path):
    places = {"ROPEWALK_EXPERIMENTS": str(tmp_path / "ü"), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    program = "from pipeline.surroundings import print_whatever_comes as p; p(); print('ü')"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | places, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\xfc\n", "")
