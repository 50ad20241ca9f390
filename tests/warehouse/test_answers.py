"""Answer files: whole or absent, shared by processes, the first one kept."""

import errno
import hashlib
import os
import subprocess
import sys

import pytest

from warehouse.answers import AnswerFiles
from warehouse.durable import PARTIAL, StoreError
from warehouse.store import FORSAKEN_S, Store

KEY = hashlib.sha256(b"question").hexdigest()
KEEP = """
import hashlib, sys
from pathlib import Path
from warehouse.answers import AnswerFiles
files = AnswerFiles(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for i in range(300):
    files.put(hashlib.sha256(str(i).encode()).hexdigest(), {"text": sys.argv[2]})
"""


def test_processes_that_keep_the_same_answers_at_once_do_not_collide(tmp_path):
    command = [sys.executable, "-c", KEEP, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    files = AnswerFiles(tmp_path)
    kept = [files.get(hashlib.sha256(str(i).encode()).hexdigest()) for i in range(300)]
    assert all(answer in ({"text": "one"}, {"text": "two"}) for answer in kept)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 300


def test_the_first_answer_wins_and_a_damaged_one_is_replaced(tmp_path):
    files = AnswerFiles(tmp_path)
    assert files.put(KEY, {"text": "first"}) == {"text": "first"}
    assert files.put(KEY, {"text": "second"}) == {"text": "first"}
    (path,) = tmp_path.rglob("*.json")
    for damage in ("", "{", "[]", f'{{"key": "{KEY}"}}', f'{{"key": "{KEY}", "answer": 3}}'):
        path.write_text(damage)
        assert files.get(KEY) is None
        assert files.put(KEY, {"text": "again"}) == files.get(KEY) == {"text": "again"}


def test_a_file_system_without_hard_links_will_do(tmp_path, monkeypatch):
    def refused(*paths):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    files = AnswerFiles(tmp_path)
    files.put(KEY, {"text": "A"})
    assert files.get(KEY) == {"text": "A"}
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


def test_a_folder_in_the_way_is_one_sentence(tmp_path):
    files = AnswerFiles(tmp_path)
    (tmp_path / KEY[:2] / f"{KEY}.json").mkdir(parents=True)
    with pytest.raises(StoreError, match="reading an answer"):
        files.get(KEY)


def test_what_a_killed_writer_left_is_cleaned_a_day_later(tmp_path):
    fresh, forsaken = (tmp_path / "answers" / "ab" / f"{PARTIAL}{n}" for n in (1, 2))
    fresh.parent.mkdir(parents=True)
    for path in (fresh, forsaken):
        path.write_text("{")
    os.utime(forsaken, (0, fresh.stat().st_mtime - FORSAKEN_S - 60))
    assert Store(tmp_path).clean() == [forsaken]
    assert fresh.exists()
