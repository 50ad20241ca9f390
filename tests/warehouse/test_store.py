"""The store: whole or absent, verified, quarantined, exposed."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time

import duckdb
import polars as pl
import pytest

from ops.tables.tables import frame_for, write_table
from warehouse import manifest
from warehouse.reading import read_only
from warehouse.store import Store, StoreError
from warehouse.verify import main as verify_main

KEY = "ab" * 32
MANIFEST = {"spec": {"steps": 1}, "inputs": {"dataset": "cd"}, "provenance": {"wall_s": 0.5}, "summary": {"n": 3}}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def write_two(folder):
    (folder / "step_1").mkdir()
    (folder / "step_1" / "config.json").write_text("{}")
    (folder / "weights.bin").write_bytes(b"\x00\x01" * 100)


def publish(store, key=KEY, write=write_two, stage="checkpoints", **changed):
    return store.publish(stage, key, write, **(MANIFEST | changed))


def partial_folders(store):
    return [path for path in store.root.rglob("*") if path.name.startswith(".partial-")]


def wait_for_a_clock_tick():
    """Two writes within one tick of the file system's clock look like one to the digest memory."""
    time.sleep(0.02)


def test_publish_then_get(store):
    assert store.get("checkpoints", KEY) is None
    assert not store.root.exists()
    published = publish(store)
    found = store.get("checkpoints", KEY)
    assert found == published
    assert found.files == ("step_1/config.json", "weights.bin")
    assert found.file("weights.bin").read_bytes() == b"\x00\x01" * 100
    assert found.summary == {"n": 3}
    assert found.n_bytes == 202
    assert {name: found.manifest[name] for name in MANIFEST} == MANIFEST
    assert partial_folders(store) == []


@pytest.mark.parametrize("name", ["runs?", "runs*", "[runs]", "it's {a} 100% #"])
def test_a_table_is_read_from_its_own_store_whatever_the_folder_is_called(name, tmp_path):
    """As a pattern, the first two names would match the neighbour too, and the third only another one."""
    for place, step in ((tmp_path / name, 1), (tmp_path / "runs1", 2)):
        rows = pl.DataFrame({"step": [step], "loss": 1.0, "learning_rate": 1.0, "steps_per_s": 1.0, "grad_norm": 1.0})
        frame = frame_for("training_log", rows, "e", 0)
        publish(Store(place), write=lambda folder, frame=frame: write_table(folder, "training_log", frame))
    assert Store(tmp_path / name).get("checkpoints", KEY).table("training_log")["step"].to_list() == [1]


def test_a_table_comes_back(store):
    frame = frame_for(
        "shortcut_accuracy",
        pl.DataFrame({"task": ["number"], "shortcut": ["query"], "hop": [None], "accuracy": [0.25], "n": [100]}),
        "quick_number",
        3,
    )
    artifact = publish(store, write=lambda folder: write_table(folder, "shortcut_accuracy", frame))
    assert artifact.table("shortcut_accuracy").equals(frame)
    with pytest.raises(StoreError, match=r"has no file 'accuracy\.parquet'; it has shortcut_accuracy\.parquet"):
        artifact.table("accuracy")


def test_the_first_publisher_wins(store):
    first = publish(store)
    second = publish(store, write=lambda folder: (folder / "other").write_text("late"))
    assert second == first
    assert partial_folders(store) == []


def test_a_failed_write_publishes_nothing(store):
    for failure in (RuntimeError("NaN loss"), KeyboardInterrupt(), MemoryError()):

        def fail(folder, failure=failure):
            write_two(folder)
            raise failure

        with pytest.raises(type(failure)):
            publish(store, write=fail)
        assert store.get("checkpoints", KEY) is None
        assert partial_folders(store) == []


def test_what_must_not_be_published(store, tmp_path):
    with pytest.raises(StoreError, match="wrote no files"):
        publish(store, write=lambda folder: None)
    with pytest.raises(StoreError, match="is a link or a device"):
        publish(store, write=lambda folder: (folder / "link").symlink_to(tmp_path))
    with pytest.raises(StoreError, match=r"or one named manifest\.json"):
        publish(store, write=lambda folder: (folder / "manifest.json").write_text("{}"))
    with pytest.raises(StoreError, match="use null for NaN"):
        publish(store, summary={"accuracy": float("nan")})
    for stage, key in (("../x", KEY), ("x", "../../y"), ("", KEY), ("x", "a/b"), (".x", KEY)):
        with pytest.raises(StoreError, match="is not a stage or key"):
            publish(store, key=key, stage=stage)
    assert list(store.artifacts()) == []


def damage_truncate(folder):
    (folder / "weights.bin").write_bytes(b"\x00\x01" * 99)


def damage_flip(folder):
    (folder / "weights.bin").write_bytes(b"\x00\x01" * 99 + b"\x00\x00")


def damage_remove(folder):
    (folder / "weights.bin").unlink()


def damage_add(folder):
    (folder / "step_1" / "model.pt").write_bytes(b"")


def damage_link(folder):
    (folder / "weights.bin").rename(folder.parent / "elsewhere")
    (folder / "weights.bin").symlink_to(folder.parent / "elsewhere")


def damage_no_manifest(folder):
    (folder / "manifest.json").unlink()


def damage_manifest_value(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"n": 3', '"n": 4'))


def rewrite_manifest(folder, **changed):
    content = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_bytes(manifest.render(content | changed))


def damage_climbing_name(folder):
    (folder.parent / "outside").write_bytes(b"")
    rewrite_manifest(folder, files={"../outside": {"bytes": 0, "sha256": "0" * 64}})


def damage_absolute_name(folder):
    rewrite_manifest(folder, files={"/etc/hostname": {"bytes": 0, "sha256": "0" * 64}})


def damage_files_of_another_kind(folder):
    rewrite_manifest(folder, files={"weights.bin": "yes"})


def damage_other_key(folder):
    rewrite_manifest(folder, key="cd" * 32)


def damage_format_without_a_new_digest(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace(f'"format": {manifest.FORMAT}', f'"format": {manifest.FORMAT + 1}'))


def damage_format_of_no_edition(folder):
    rewrite_manifest(folder, format=0)


@pytest.mark.parametrize(
    "damage",
    [value for name, value in sorted(globals().items()) if name.startswith("damage_")],
    ids=lambda d: d.__name__,
)
def test_damage_is_quarantined_said_and_mended(store, caplog, damage):
    artifact = publish(store)
    wait_for_a_clock_tick()
    damage(artifact.path)
    with caplog.at_level(logging.WARNING, logger="ropewalk"):
        assert store.get("checkpoints", KEY) is None
    (record,) = caplog.records
    assert f"checkpoints {KEY[:12]} is damaged: " in record.getMessage()
    quarantined = store.root / "quarantine" / f"checkpoints-{KEY}-1"
    assert str(quarantined) in record.getMessage()
    assert quarantined.is_dir()
    assert store.get("checkpoints", KEY) is None
    again = publish(store)
    assert again.files == artifact.files
    assert again.manifest["files"] == artifact.manifest["files"]


def test_what_a_newer_edition_wrote_stays_and_is_said(store, caplog, monkeypatch, capsys):
    newer, ours = publish(store), publish(store, key="cd" * 32)
    content = json.loads((newer.path / "manifest.json").read_text())
    written = manifest.render(content | {"format": manifest.FORMAT + 1, "of_tomorrow": [1]})
    (newer.path / "manifest.json").write_bytes(written)
    for reading in (lambda: store.get("checkpoints", KEY), lambda: publish(store)):
        with pytest.raises(StoreError, match=r"was written by a newer edition .*; use that edition"):
            reading()
    with caplog.at_level(logging.WARNING, logger="ropewalk"):
        assert [artifact.key for artifact in store.artifacts()] == [ours.key]
    assert [record.getMessage().endswith("(1 such)") for record in caplog.records] == [True]
    monkeypatch.setenv("ROPEWALK_STORE", str(store.root))
    assert verify_main() == 0
    assert "1 artifacts sound" in capsys.readouterr().out
    assert (newer.path / "manifest.json").read_bytes() == written
    assert not (store.root / "quarantine").exists()


def test_what_file_managers_leave_in_an_artifact_does_no_harm(store, caplog):
    def write(folder):
        write_two(folder)
        (folder / ".DS_Store").write_bytes(b"then")

    artifact = publish(store, write=write)
    for name in (".DS_Store", "step_1/._config.json", "step_1/Thumbs.db", "desktop.ini"):
        (artifact.path / name).write_bytes(b"now")
    (artifact.path / "@eaDir").mkdir()
    (artifact.path / "@eaDir" / "x").write_bytes(b"")
    (artifact.path / ".#weights.bin").symlink_to("someone@host.1234")
    assert store.verify() == []
    assert store.get("checkpoints", KEY).files == ("step_1/config.json", "weights.bin")
    assert not caplog.records


def test_folders_that_are_not_named_as_ours_are_left_alone(store, caplog):
    """A store that lies in somebody's project, beside their own folders called artifacts and work."""
    publish(store)
    theirs = [store.root / name for name in ("artifacts/ci/build", "artifacts/a/b", "refused/x/y", "work/project/src")]
    for folder in theirs:
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine")
    assert store.verify() == store.clean() == []
    assert [artifact.key for artifact in store.artifacts()] == [KEY]
    assert all((folder / "mine").is_file() for folder in theirs)
    assert not caplog.records


def test_quarantined_artifacts_keep_their_numbers(store):
    for n in (1, 2, 3):
        artifact = publish(store)
        (artifact.path / "manifest.json").write_bytes(b"")
        assert store.get("checkpoints", KEY) is None
        assert (store.root / "quarantine" / f"checkpoints-{KEY}-{n}").is_dir()


def test_a_file_damaged_after_a_light_look_is_found_when_read(store):
    publish(store)
    wait_for_a_clock_tick()
    artifact = store.get("checkpoints", KEY, verify="sizes")
    damage_flip(artifact.path)
    assert store.get("checkpoints", KEY, verify="sizes") is not None
    with pytest.raises(StoreError, match=r"damaged .*run again and it is computed anew"):
        artifact.file("weights.bin")
    assert store.get("checkpoints", KEY) is None


def test_workdir_lasts_until_its_key_is_published(store):
    with store.building("checkpoints", KEY) as folder:
        (folder / "resume").write_text("step 10")
        assert store.workdir("checkpoints", KEY) == folder
    assert (folder / "resume").read_text() == "step 10"
    assert store.clean() == []
    with store.building("checkpoints", KEY) as folder:
        assert (folder / "resume").read_text() == "step 10"
        publish(store)
    assert list((store.root / "work" / "checkpoints").iterdir()) == []


def test_clean_removes_only_what_nobody_holds(store):
    publish(store)
    left = store.root / "artifacts" / "checkpoints" / f".partial-{KEY[:16]}-0123"
    left.mkdir()
    (left / "weights.bin").write_bytes(b"half")
    stale = store.workdir("checkpoints", KEY)
    removed = []

    def write_while_another_cleans(folder):
        (folder / "file").write_text("x")
        removed.extend(Store(store.root).clean())

    publish(store, key="cd" * 32, write=write_while_another_cleans)
    assert removed == [left, stale]
    assert len(list(store.artifacts())) == 2


def test_expose_a_file_is_a_copy_that_is_mended(store):
    first = publish(store, write=lambda folder: (folder / "warehouse.duckdb").write_text("one"))
    second = publish(store, key="cd" * 32, write=lambda folder: (folder / "warehouse.duckdb").write_text("two"))
    target = store.expose(first, "warehouse.duckdb")
    assert target == store.root / "warehouse.duckdb"
    before = target.stat()
    store.expose(first, "warehouse.duckdb")
    assert os.path.samestat(before, target.stat())
    store.expose(second, "warehouse.duckdb")
    assert target.read_text() == "two"
    target.write_text("spoiled")
    assert store.expose(second, "warehouse.duckdb").read_text() == "two"
    assert (store.root / "warehouse.aside-1.duckdb").read_text() == "spoiled"
    assert store.get("checkpoints", "cd" * 32) == second
    assert partial_folders(store) == []


def test_expose_a_folder_survives_a_move_of_the_store(store, tmp_path):
    first = publish(store)
    second = publish(store, key="cd" * 32, write=lambda folder: (folder / "index.html").write_text("two"))
    store.expose(first, "report")
    assert (store.root / "report" / "weights.bin").exists()
    store.expose(second, "report")
    store.root.rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "report" / "index.html").read_text() == "two"


def names(store):
    return sorted(path.name for path in store.root.iterdir() if path.name not in ("artifacts", "quarantine"))


def test_expose_sets_aside_what_a_user_put_in_its_place(store, caplog):
    artifact = publish(store)
    (store.root / "report").mkdir()
    (store.root / "report" / "mine.txt").write_text("mine")
    store.expose(artifact, "report")
    assert (store.root / "report" / "weights.bin").exists()
    assert (store.root / "report.aside-1" / "mine.txt").read_text() == "mine"
    assert "report is a folder that the store did not make, or was changed since; it is kept as report.aside-1" in (
        caplog.text
    )
    (store.root / "report").unlink()
    (store.root / "report").write_text("a file")
    store.expose(artifact, "report")
    assert (store.root / "report.aside-2").read_text() == "a file"
    (store.root / "report").unlink()
    (store.root / "report").symlink_to("report.aside-1")
    store.expose(artifact, "report")
    assert (store.root / "report.aside-3" / "mine.txt").exists()
    caplog.clear()
    store.expose(artifact, "report")
    assert caplog.text == ""
    assert names(store) == ["report", "report.aside-1", "report.aside-2", "report.aside-3"]


def test_a_store_copied_with_links_followed_is_taken_as_it_is(store, tmp_path, caplog):
    old = publish(store)
    new = publish(store, key="cd" * 32, write=lambda folder: (folder / "index.html").write_text("two"))
    store.expose(old, "report")
    shutil.copytree(store.root, tmp_path / "copy", symlinks=False)
    copy = Store(tmp_path / "copy")
    assert not (copy.root / "report").is_symlink()
    copy.expose(copy.get("checkpoints", new.key), "report")
    assert (copy.root / "report").is_symlink()
    assert (copy.root / "report" / "index.html").read_text() == "two"
    assert names(copy) == ["report"]
    assert caplog.text == ""


def test_a_copy_that_somebody_wrote_in_is_set_aside(store, tmp_path):
    artifact = publish(store)
    store.expose(artifact, "report")
    shutil.copytree(store.root, tmp_path / "copy", symlinks=False)
    copy = Store(tmp_path / "copy")
    (copy.root / "report" / "notes.txt").write_text("mine")
    copy.expose(copy.get("checkpoints", KEY), "report")
    assert names(copy) == ["report", "report.aside-1"]
    assert (copy.root / "report.aside-1" / "notes.txt").read_text() == "mine"


def database(rows):
    def write(folder):
        with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
            connection.sql(f"CREATE TABLE overview AS SELECT * FROM range({rows})")

    return write


def write_in(path, end):
    """Another program writes notes into a database: it is killed, or it closes the database."""
    program = (
        f"import duckdb, os; c = duckdb.connect({str(path)!r}); c.execute('CREATE TABLE notes AS SELECT 7 AS n'); {end}"
    )
    subprocess.run([sys.executable, "-c", program], check=False)


def tables(path):
    with read_only(path) as connection:
        return {name for (name,) in connection.sql("SHOW TABLES").fetchall()}


@pytest.mark.parametrize("again", ["the same", "a new one"])
def test_the_log_of_a_killed_writer_is_set_aside_with_its_database(store, caplog, again):
    first = publish(store, write=database(3))
    target = store.expose(first, "warehouse.duckdb")
    write_in(target, "os._exit(9)")
    assert target.with_name("warehouse.duckdb.wal").exists()
    later = first if again == "the same" else publish(store, key="cd" * 32, write=database(5))
    store.expose(later, "warehouse.duckdb")
    assert names(store) == ["warehouse.aside-1.duckdb", "warehouse.aside-1.duckdb.wal", "warehouse.duckdb"]
    assert tables(target) == {"overview"}
    assert tables(store.root / "warehouse.aside-1.duckdb") == {"overview", "notes"}
    assert caplog.text.count("it is kept as warehouse.aside-1.duckdb") == 1
    caplog.clear()
    store.expose(later, "warehouse.duckdb")
    assert caplog.text == ""
    assert len(names(store)) == 3


def test_notes_in_a_database_that_was_closed_are_kept_too(store):
    target = store.expose(publish(store, write=database(3)), "warehouse.duckdb")
    write_in(target, "c.close()")
    store.expose(publish(store, key="cd" * 32, write=database(5)), "warehouse.duckdb")
    assert names(store) == ["warehouse.aside-1.duckdb", "warehouse.duckdb"]
    assert tables(store.root / "warehouse.aside-1.duckdb") == {"overview", "notes"}


def stale_log(path):
    """A database with the log of another beside it, as an edition before this one left it."""
    write_in(path, "os._exit(9)")
    other = path.with_name("other.duckdb")
    with duckdb.connect(str(other)) as connection:
        connection.sql("CREATE TABLE t AS SELECT 1")
    other.rename(path)


def test_readers_say_in_a_sentence_why_a_database_does_not_open(tmp_path):
    path = tmp_path / "warehouse.duckdb"
    stale_log(path)
    with pytest.raises(StoreError, match=r"does not open with warehouse\.duckdb\.wal beside it.*; run a study"):
        read_only(path)
    cookbook = [sys.executable, "-m", "warehouse.cookbook", str(path)]
    run = subprocess.run(cookbook, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert "warehouse.duckdb.wal" in run.stderr
    path.with_name("warehouse.duckdb.wal").unlink()
    run = subprocess.run(cookbook, capture_output=True, text=True)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "not a results database of this edition" in run.stderr
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(StoreError, match="is damaged or no DuckDB database"):
        read_only(path)


def test_readers_name_the_program_that_writes(tmp_path):
    path = tmp_path / "warehouse.duckdb"
    program = f"import duckdb; c = duckdb.connect({str(path)!r}); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as writer:
        writer.stdout.readline()
        with pytest.raises(StoreError, match=f"is open for writing in another program .PID {writer.pid}"):
            read_only(path)
        writer.communicate("\n")


def test_a_refused_artifact_is_no_result_and_is_replaced_and_verified(store, caplog):
    store.workdir("checkpoints", KEY)
    first = publish(store, refused=True)
    assert store.get("checkpoints", KEY) is None
    assert list(store.artifacts()) == []
    assert store.refused("checkpoints", KEY) == first
    assert first.path == store.root / "refused" / "checkpoints" / KEY
    assert first.file("weights.bin").read_bytes() == b"\x00\x01" * 100
    assert not (store.root / "work" / "checkpoints" / KEY).exists()

    second = publish(store, refused=True, summary={"n": 4})
    assert store.refused("checkpoints", KEY) == second != first
    store.workdir("checkpoints", KEY)
    left = store.root / "refused" / "checkpoints" / ".partial-dead"
    left.mkdir()
    assert store.clean() == [left, store.root / "work" / "checkpoints" / KEY]

    damage_flip(second.path)
    assert store.verify() == [second.path]
    assert store.refused("checkpoints", KEY) is None
    assert len(list((store.root / "quarantine").iterdir())) == 1

    publish(store, refused=True)
    good = publish(store)
    assert store.refused("checkpoints", KEY) is None
    store.refuse(good)
    assert store.get("checkpoints", KEY) is None
    assert store.refused("checkpoints", KEY).manifest == good.manifest
    store.refuse(good)  # another process did so already
    assert store.refused("checkpoints", KEY).manifest == good.manifest
    assert caplog.text.count("is refused; moved to") == 1


def test_verify_command(store, monkeypatch, capsys):
    publish(store)
    artifact = publish(store, key="cd" * 32)
    monkeypatch.setenv("ROPEWALK_STORE", str(store.root))
    assert verify_main() == 0
    damage_flip(artifact.path)
    assert verify_main() == 1
    assert "1 artifacts sound (0.0 MB), 1 quarantined" in capsys.readouterr().out


def test_the_store_is_found_by_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / "here"))
    assert Store.from_environment().root == tmp_path / "here"
    monkeypatch.delenv("ROPEWALK_STORE")
    monkeypatch.chdir(tmp_path)
    assert Store.from_environment().root == tmp_path / "store"
