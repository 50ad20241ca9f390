"""Which model a folder is: every byte of every file that decides counts, and nothing else."""

import json
import os

import pytest
from made_tokenizers import made_tokenizer

from assets.language_models import LANGUAGE_MODELS
from assets.stage import Replicate, plan, refuse_changed_reads
from ops.language_models.digests import PIECE_BYTES, full_digests
from ops.language_models.identity import identity, is_pinned
from ops.language_models.load import load_model
from ops.tasks.registry import parse_study


@pytest.fixture
def folder(tmp_path, build_model):
    """A tiny Llama with a tokenizer, as save_pretrained leaves them."""
    place = tmp_path / "model"
    build_model("llama", vocab_size=1500).save_pretrained(place)
    made_tokenizer("byte", True).save_pretrained(place)
    return place


def edit(file, place=-1):
    """Change one byte in place: neither the size nor the modification time tells."""
    times = file.stat()
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    with file.open("r+b") as opened:
        opened.write(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_one_byte_anywhere_in_a_large_file_is_seen(tmp_path):
    file = tmp_path / "weights.gguf"
    with file.open("wb") as opened:
        opened.truncate(3 * PIECE_BYTES + 17)  # sparse: takes no room
    seen = {identity(str(file))}
    for place in (0, 1_234_567, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES + 16):
        with file.open("r+b") as opened:
            opened.seek(place)
            opened.write(b"\1")
        seen.add(identity(str(file)))
    assert len(seen) == 6


def test_digests_tell_pieces_and_files_apart(tmp_path):
    contents = [b"", b"a", b"b", b"ab", b"a" * PIECE_BYTES, b"a" * (PIECE_BYTES + 1)]
    files = [tmp_path / str(i) for i in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    found = full_digests(files)
    assert len(set(found)) == len(contents)
    assert [full_digests([file])[0] for file in files] == found
    assert full_digests([]) == []


def test_every_file_that_decides_counts(folder):
    names = sorted(file.name for file in folder.iterdir())
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= set(names)
    seen = {identity(str(folder))}
    for n, name in enumerate(names, 2):
        edit(folder / name)
        seen.add(identity(str(folder)))
        assert len(seen) == n, name
    for name in ("chat_template.jinja", "adapter_config.json", "vocab.bpe", "additional_chat_templates/tool.jinja"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
        assert identity(str(folder)) not in seen, name
        seen.add(identity(str(folder)))
    for name in ("README.md", "pytorch_model.bin", ".DS_Store", "checkpoint-5/model.safetensors"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
        assert identity(str(folder)) in seen, name


def test_links_shards_and_an_adapters_base_are_followed(folder, tmp_path):
    blob = tmp_path / "blob"
    (folder / "model.safetensors").rename(blob)
    (folder / "model.safetensors").symlink_to(blob)
    shard, base = folder / "part" / "1.safetensors", tmp_path / "base"
    shard.parent.mkdir()
    base.mkdir()
    shard.write_bytes(b"1")
    (base / "config.json").write_bytes(b"{}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "part/1.safetensors"}}))
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    seen = {identity(str(folder))}
    for n, file in enumerate((blob, shard, base / "config.json"), 2):
        edit(file)
        seen.add(identity(str(folder)))
        assert len(seen) == n, file


def test_beside_a_gguf_file_the_tokenizers_files_count_and_others_do_not(tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    alone = identity(str(file))
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "other.gguf").write_text("{}")
    assert identity(str(file)) == alone
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert identity(str(file)) != alone


def test_a_file_that_cannot_be_read_does_not_stop_other_studies(folder):
    def refused(files):
        raise PermissionError(13, "Permission denied", str(files[0]))

    assert identity(str(folder), digests=refused).endswith("cannot be read: Permission denied")


def test_only_a_commit_pins_a_hub_name(folder):
    assert is_pinned(str(folder), None)
    assert is_pinned("org/name", "0123456789abcdef0123456789abcdef01234567")
    assert not is_pinned("org/name", "main")
    assert identity("org/name", "main") == "org/name@main"


def test_a_model_edited_after_the_planning_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ROPEWALK_STORE", str(tmp_path / "store"))
    text = f"study: s\ndescription: d.\nexperiments:\n  lm: {{language_model: {{source: {folder}}}}}\n"
    replicate = Replicate(parse_study(text, "s.yaml").experiments[0], 0)
    keys = plan(replicate, [LANGUAGE_MODELS])
    refuse_changed_reads(LANGUAGE_MODELS, replicate, keys)
    edit(folder / "model.safetensors")
    with pytest.raises(ValueError, match="changed while this run was on; start the run again"):
        refuse_changed_reads(LANGUAGE_MODELS, replicate, keys)
    assert plan(replicate, [LANGUAGE_MODELS]) != keys
    assert not (tmp_path / "store").exists()  # planning makes no store


def test_a_home_sign_in_a_source_is_home(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert identity("~/model") == identity(str(folder))
    assert is_pinned("~/model", None)
    assert load_model("~/model", local_only=True).model.config.vocab_size == 1500
