"""The store: whole or absent, verified, quarantined, exposed."""

import json
import logging
import os
import time

import polars as pl
import pytest

from ops.tables.tables import frame_for, write_table
from warehouse import manifest
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


def damage_newer_format(folder):
    rewrite_manifest(folder, format=manifest.FORMAT + 1)


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


def test_expose_does_not_replace_a_folder_of_the_user(store):
    artifact = publish(store)
    (store.root / "report").mkdir()
    with pytest.raises(StoreError, match="did not make; move it away"):
        store.expose(artifact, "report")


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
