"""`python -m bench`: rows with the agreed fields in a file; a failing benchmark loses nobody else's rows."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

harness = importlib.import_module("bench.__main__")
ROW = {
    "name": "a",
    "ours_s": 1.0,
    "theirs_s": 2.0,
    "ratio": 0.5,
    "machine": "m",
    "command": "c",
    "bar": "",
    "met": None,
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=harness.HERE.parent, capture_output=True, text=True, check=False)


def test_a_benchmark_in_a_process_of_its_own(tmp_path):
    done = bench("--quick", "--results", str(tmp_path / "results.json"), "generator")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in rows] == [
        "generator",
        *(f"generator_{n}" for n in ("number", "letter", "letter_matched")),
    ]
    assert all(row["ratio"] == pytest.approx(row["ours_s"] / row["theirs_s"]) for row in rows)
    assert all({*harness.FIELDS, "bar", "met"} <= set(row) for row in rows)
    assert rows[0]["ours_s"] == max(row["ours_s"] for row in rows)
    assert "generator_letter_matched" in done.stdout


def test_an_unknown_benchmark_is_named():
    done = bench("nonesuch")
    assert done.returncode == 2
    assert "there is no benchmark 'nonesuch'" in done.stderr


def test_a_failing_benchmark_loses_no_other_row(tmp_path, monkeypatch, capsys):
    path = tmp_path / "results.json"
    harness.write(path, [ROW | {"name": "b"}, ROW | {"name": "old"}], keep_others=False)
    monkeypatch.setattr(harness, "names", lambda: ["a", "b"])
    monkeypatch.setattr(harness, "measured", lambda name, quick: [ROW] if name == "a" else None)
    assert harness.main(["--results", str(path)]) == 1
    assert [row["name"] for row in json.loads(path.read_text())] == ["b", "old", "a"]
    assert "b: FAILED" in capsys.readouterr().out


@pytest.mark.parametrize("name", harness.names())
def test_every_benchmark_has_rows(name):
    text = (harness.HERE / f"bench_{name}.py").read_text()
    assert "\ndef rows(" in text
    assert Path(harness.HERE / f"bench_{name}.py").stem.removeprefix("bench_") == name
