"""Remembered digests: a file is read once, and again whenever it may have changed."""

import os

import pytest

from ops.language_models.digests import full_digests
from warehouse import digests
from warehouse.digests import SETTLED_NS, RememberedDigests, doubt, stamp_of


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file worth remembering, on a file system that says it is ext4, where changes settle at once."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n")
    monkeypatch.setattr(digests, "MOUNTS", mounts)
    monkeypatch.setattr(digests, "SETTLED_NS", 0)
    path = tmp_path / "weights"
    path.write_bytes(bytes(digests.REMEMBERED_BYTES))
    return path


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Digests as a new process finds them, and the list of files that were read."""
    (tmp_path / "store").mkdir()
    read = []

    def reading(files):
        read.extend(files)
        return full_digests(files)

    def asked(*files):
        monkeypatch.setattr(digests, "_known", {})
        return RememberedDigests(tmp_path / "store" / "digests", reading)(files)

    asked.read = read
    return asked


def edit(path, content):
    """Overwrite in place; size and modification time stay. Not within the tick of the clock that dated the file."""
    times = path.stat()
    while path.stat().st_ctime_ns == times.st_ctime_ns:
        with path.open("r+b") as opened:
            opened.write(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_file_at_rest_is_read_once_and_an_edit_in_place_is_seen(file, ask):
    first = ask(file)
    assert ask(file) == first == full_digests([file])
    assert ask.read == [file]
    edit(file, b"edited")
    assert ask(file) == full_digests([file]) != first
    assert ask.read == [file, file]


def test_another_file_under_the_name_is_seen(file, ask, tmp_path):
    first = ask(file)
    other = tmp_path / "other"
    other.write_bytes(b"1" + file.read_bytes()[1:])
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    link = tmp_path / "link"
    link.symlink_to(file)
    assert ask(link) == first
    assert ask.read == [file]
    link.unlink()
    link.symlink_to(other)
    assert ask(link) == full_digests([other]) != first
    os.replace(other, file)
    assert ask(file) == full_digests([file]) != first


def test_a_file_that_changed_just_now_is_read_again(file, ask, monkeypatch, tmp_path):
    monkeypatch.setattr(digests, "SETTLED_NS", SETTLED_NS)
    assert ask(file) == ask(file)
    assert ask.read == [file, file]
    assert not (tmp_path / "store" / "digests").exists()


def test_a_change_of_a_minute_or_a_clock_in_the_past_is_in_doubt(file, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED_NS", SETTLED_NS)
    stamp, mounts = stamp_of(file), [("/", "ext4")]
    assert doubt(stamp, stamp.ctime_ns + SETTLED_NS - 1, mounts)
    assert doubt(stamp, stamp.ctime_ns - 10 * SETTLED_NS, mounts)
    assert not doubt(stamp, stamp.ctime_ns + SETTLED_NS, mounts)
    assert doubt(stamp._replace(mtime_ns=stamp.ctime_ns + 1), stamp.ctime_ns + SETTLED_NS, mounts)


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("2 1 0:9 / {folder} rw - tmpfs tmpfs rw", 2),
        ("2 1 0:9 / {folder} rw - fuse.sshfs host: rw", 2),
        ("2 1 0:9 / {folder} rw - tmpfs tmpfs rw\n3 1 0:9 / {folder} rw - xfs /dev/b rw", 1),
        ("2 1 0:9 / {folder}x rw - tmpfs tmpfs rw", 1),
        ("", 1),
    ],
)
def test_memory_is_kept_only_where_every_edit_is_dated(line, reads, file, ask, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    placed = file.rename(folder / "weights")
    mount = line.format(folder=str(folder).replace(" ", "\\040"))
    digests.MOUNTS.write_text(f"{digests.MOUNTS.read_text()}{mount}\n")
    assert ask(placed) == ask(placed)
    assert len(ask.read) == reads


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"digest": "0"}', b"\xff"])
def test_a_damaged_memory_counts_as_none(damage, file, ask, tmp_path):
    first = ask(file)
    (kept,) = (tmp_path / "store" / "digests").iterdir()
    kept.write_bytes(damage)
    assert ask(file) == first
    assert ask.read == [file, file]
    assert ask(file) == first
    assert len(ask.read) == 2


def test_small_files_are_always_read_and_no_store_is_made(file, ask, tmp_path):
    small = tmp_path / "config.json"
    small.write_text("{}")
    ask(small)
    ask(small)
    assert ask.read == [small, small]
    assert RememberedDigests(tmp_path / "none" / "digests", full_digests)([file]) == full_digests([file])
    assert not (tmp_path / "none").exists()


def test_a_large_model_is_said_with_its_time(file, ask, monkeypatch, caplog):
    monkeypatch.setattr(digests, "SAID_BYTES", digests.REMEMBERED_BYTES)
    ask(file)
    before, after = caplog.messages
    assert str(file) in before
    assert " s; not read again until a file changes" in after
    ask(file)
    assert len(caplog.messages) == 2
