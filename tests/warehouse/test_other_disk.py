"""A store whose big folder is a link to another file system: published, found damaged and cleaned as anywhere."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from warehouse import durable
from warehouse.durable import StoreError, disk_errors
from warehouse.store import Store

KEY = "ab" * 32
MANIFEST = {"spec": {}, "inputs": {}, "provenance": {}, "summary": {}}


@pytest.fixture
def other_disk(tmp_path):
    """A folder on another file system than tmp_path."""
    for parent in ("/dev/shm", "/var/tmp", "/tmp"):
        if os.path.isdir(parent) and os.stat(parent).st_dev != tmp_path.stat().st_dev and os.access(parent, os.W_OK):
            folder = Path(tempfile.mkdtemp(prefix="ropewalk-test-", dir=parent))
            yield folder
            shutil.rmtree(folder)
            return
    pytest.skip("this machine has one file system only")


def filled(store: Store) -> Path:
    """A work folder with a file in a folder, as a training leaves one."""
    work = store.workdir("checkpoints", KEY)
    (work / "made").mkdir()
    (work / "made" / "weights").write_bytes(b"w" * 1000)
    return work


@pytest.mark.parametrize("elsewhere", ["artifacts", "work", "quarantine"])
def test_a_part_of_the_store_on_another_disk(other_disk, tmp_path, elsewhere):
    store = Store(tmp_path / "store")
    store.root.mkdir()
    (store.root / elsewhere).symlink_to(other_disk)
    work = filled(store)
    write = lambda folder: shutil.copytree(work / "made", folder / "made", copy_function=durable.second_name)  # noqa: E731
    published = store.publish("checkpoints", KEY, write, **MANIFEST)
    assert published.file("made/weights").read_bytes() == b"w" * 1000
    store.expose(published, "newest")
    assert (store.root / "newest" / "made" / "weights").read_bytes() == b"w" * 1000

    (published.path / "made" / "weights").write_bytes(b"x" * 1000)
    assert Store(tmp_path / "store").verify() == [published.path]
    assert (store.root / "quarantine" / f"checkpoints-{KEY}-1" / "made" / "weights").read_bytes() == b"x" * 1000
    assert [path.name for path in (store.root / "quarantine").iterdir()] == [f"checkpoints-{KEY}-1"]
    assert not published.path.exists()


def test_a_move_to_another_disk_is_whole_and_keeps_the_source_until_then(other_disk, tmp_path):
    source = tmp_path / "made"
    source.mkdir()
    (source / "file").write_text("content")
    (other_disk / "taken").mkdir()
    (other_disk / "taken" / "kept").touch()
    with pytest.raises(OSError) as caught:
        durable.move(source, other_disk / "taken")
    assert caught.value.errno in (errno.ENOTEMPTY, errno.EEXIST)
    assert (source / "file").read_text() == "content"
    assert [path.name for path in other_disk.iterdir()] == ["taken"]
    durable.move(source, other_disk / "made")
    assert (other_disk / "made" / "file").read_text() == "content"
    assert not source.exists()
    durable.move(other_disk / "made" / "file", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "content"
    assert list((other_disk / "made").iterdir()) == []


def test_what_a_copy_of_many_files_quotes_is_still_one_sentence(tmp_path):
    with pytest.raises(StoreError) as caught, disk_errors("cannot publish"):
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'"), ("c", "d", "[Errno 28] No space")])
    assert str(caught.value) == "cannot publish: the disk is full; free some space and run again"
