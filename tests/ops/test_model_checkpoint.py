"""Checkpoints: parity with Hugging Face in both directions, and one sentence for whatever is wrong."""

import json
import pickle
import shutil
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPTJConfig, GPTJForCausalLM

from ops.model.checkpoint import (
    CheckpointError,
    export_reason,
    load_checkpoint,
    parameter_shapes,
    save_checkpoint,
    state_config,
)
from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec

GOLDEN = Path(__file__).parents[1] / "golden"
SPEC = ModelSpec(n_layers=2, n_heads=2, width=16, rotary_dims=4, initial_std=0.3)
NOT_STOCK = {
    "rotate": ModelSpec(n_layers=2, width=16, frequencies_rotating=(1, 2)),
    "removed": ModelSpec(n_layers=2, width=16, frequencies_present=(2, 3)),
    "no RoPE": ModelSpec(n_layers=2, width=16, nope_from_layer=1),
    "rotary": ModelSpec(n_layers=2, width=16, rotary_dims=0),
    "base": ModelSpec(n_layers=2, width=16, rope_base=500.0),
}
IDS = torch.randint(0, 30, (3, 17), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_checkpoint(GPTJ(SPEC, 30), tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_round_trip_is_exact_and_draws_no_random_numbers(folder: Path) -> None:
    torch.manual_seed(0)
    model = GPTJ(SPEC, 30).eval()
    state = torch.get_rng_state()
    loaded = load_checkpoint(folder)
    assert torch.equal(torch.get_rng_state(), state)
    assert loaded.spec == SPEC
    assert not loaded.training
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert torch.equal(loaded(IDS), model(IDS))
    assert load_checkpoint(str(folder), dtype=torch.float64)(IDS).dtype == torch.float64


def test_equal_models_give_equal_bytes(folder: Path, tmp_path: Path) -> None:
    save_checkpoint(load_checkpoint(folder), tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_loaded_weights_do_not_hang_on_the_file(folder: Path) -> None:
    model = load_checkpoint(folder)
    before = model(IDS)
    (folder / "model.safetensors").write_bytes(bytes((folder / "model.safetensors").stat().st_size))
    assert torch.equal(model(IDS), before)


def test_hugging_face_loads_ours(folder: Path) -> None:
    theirs, ours = GPTJForCausalLM.from_pretrained(folder).eval(), load_checkpoint(folder)
    with torch.no_grad():
        torch.testing.assert_close(theirs(IDS).logits, ours(IDS), rtol=0, atol=1e-5)


def test_we_load_hugging_faces(folder: Path, tmp_path: Path) -> None:
    theirs = GPTJForCausalLM.from_pretrained(folder).eval()
    theirs.config.resid_pdrop = 0.25
    theirs.save_pretrained(tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    del config["ropewalk"]
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    ours = load_checkpoint(tmp_path / "theirs")
    assert ours.spec.dropout == 0.25
    with torch.no_grad():
        torch.testing.assert_close(ours(IDS), theirs(IDS).logits, rtol=0, atol=1e-5)


def test_the_golden_folder_loads(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "gptj_small.json", tmp_path / "config.json")
    shutil.copy(GOLDEN / "gptj_small.safetensors", tmp_path / "model.safetensors")
    model = load_checkpoint(tmp_path)
    assert (model.spec.n_layers, model.spec.n_heads, model.spec.n_frequencies, model.vocabulary_size) == (3, 2, 8, 137)


@pytest.mark.parametrize("word", NOT_STOCK)
def test_other_configurations_say_why_they_are_not_exported(word: str, tmp_path: Path) -> None:
    model = GPTJ(NOT_STOCK[word], 30).eval()
    reason = export_reason(model.spec)
    assert reason is not None
    assert word in reason
    with pytest.raises(CheckpointError, match="cannot be exported"):
        save_checkpoint(model, tmp_path, hugging_face=True)
    save_checkpoint(model, tmp_path)
    assert load_checkpoint(tmp_path).spec == model.spec
    assert torch.equal(load_checkpoint(tmp_path)(IDS), model(IDS))
    assert state_config(model.spec, 30)["not_hugging_face"] == reason
    with pytest.raises(ValueError, match="divisible"):
        GPTJForCausalLM(GPTJConfig.from_dict(state_config(model.spec, 30)))


def test_stock_configurations_have_no_reason() -> None:
    for spec in (ModelSpec(), SPEC, ModelSpec(nope_from_layer=12)):
        assert export_reason(spec) is None


def test_parameter_shapes_are_the_models() -> None:
    model = GPTJ(SPEC, 30)
    assert parameter_shapes(SPEC, 30) == {name: tuple(p.shape) for name, p in model.state_dict().items()}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def rewrite(folder: Path, **changes: object) -> None:
    tensors: dict = weights(folder) | changes
    save_file({name: t for name, t in tensors.items() if t is not None}, folder / "model.safetensors")


def edit(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 269060552\n"


def as_pickle(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps({"transformer.wte.weight": [1.0] * 1000}))


def as_torch_archive(folder: Path) -> None:
    torch.save({"transformer.wte.weight": torch.ones(3)}, folder / "model.safetensors")


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def empty(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def oversized_header(folder: Path) -> None:
    path = folder / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 50_000_000))
        file.truncate(60_000_000)


def header_beyond_the_file(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + path.read_bytes()[8:])


def header_of_garbage(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[8:20] = b"\xff" * 12
    path.write_bytes(bytes(content))


DAMAGES = {
    "a pickle": (as_pickle, "never loaded"),
    "a torch archive": (as_torch_archive, "never loaded"),
    "truncated": (truncated, "damaged"),
    "empty": (empty, "truncated"),
    "oversized header": (oversized_header, "header of 50000000 bytes"),
    "header beyond the file": (header_beyond_the_file, "truncated"),
    "header of garbage": (header_of_garbage, "damaged"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "cannot be read"),
    "no config": (lambda f: (f / "config.json").unlink(), "cannot be read"),
    "missing tensor": (lambda f: rewrite(f, **{"lm_head.bias": None}), "lacks the tensor 'lm_head.bias'"),
    "extra tensor": (lambda f: rewrite(f, surplus=torch.ones(1)), "unknown tensor 'surplus'"),
    "../ in a name": (lambda f: rewrite(f, **{"../../etc/x": torch.ones(1)}), "unknown tensor '../../etc/x'"),
    "wrong shape": (lambda f: rewrite(f, **{"lm_head.bias": torch.ones(31)}), r"shape \(31,\)"),
    "integers": (lambda f: rewrite(f, **{"lm_head.bias": torch.ones(30, dtype=torch.int64)}), "not floating-point"),
    "NaN": (lambda f: rewrite(f, **{"lm_head.bias": torch.full((30,), torch.nan)}), "NaN"),
    "infinite": (lambda f: rewrite(f, **{"lm_head.bias": torch.full((30,), torch.inf)}), "infinite"),
    **{
        f"8-bit {dtype}": (lambda f, d=dtype: rewrite(f, **{"lm_head.bias": torch.ones(30).to(d)}), "8-bit weights")
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)
    },
    "complex": (lambda f: rewrite(f, **{"lm_head.bias": torch.ones(30, dtype=torch.complex64)}), "not floating-point"),
    "beyond float32": (
        lambda f: rewrite(f, **{"lm_head.bias": torch.full((30,), 1e300, dtype=torch.float64)}),
        r"infinite in torch\.float32",
    ),
    "prefixed names": (
        lambda f: save_file({f"_orig_mod.{n}": t for n, t in weights(f).items()}, f / "model.safetensors"),
        "lacks the tensor 'transformer.wte.weight'",
    ),
    "a git-lfs pointer": (lambda f: (f / "model.safetensors").write_text(POINTER), "git lfs pull"),
    "config a git-lfs pointer": (lambda f: (f / "config.json").write_text(POINTER), "git lfs pull"),
    "scaled RoPE": (lambda f: edit(f, rope_scaling={"type": "linear", "factor": 2.0}), "rope_scaling"),
    "another base": (lambda f: edit(f, rope_theta=500_000.0), "rope_theta 500000.0"),
    "heads that disagree": (lambda f: edit(f, n_head=4), "n_head is 4, and 'ropewalk' says 2"),
    "dimensions that disagree": (lambda f: edit(f, rotary_dim=8), "rotary_dim is 8, and 'ropewalk' says 4"),
    "config not JSON": (lambda f: (f / "config.json").write_text("{"), "not JSON"),
    "config not UTF-8": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe{}"), "not JSON"),
    "config nested": (lambda f: (f / "config.json").write_text("[" * 100_000), "not JSON"),
    "config a list": (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
    "config huge": (lambda f: (f / "config.json").write_bytes(b" " * 5_000_000), "larger than"),
    "vocabulary": (lambda f: (f / "config.json").write_text('{"vocab_size": "30"}'), "vocab_size"),
    "other model": (lambda f: (f / "config.json").write_text('{"vocab_size": 30, "model_type": "llama"}'), "llama"),
    "tanh GELU": (lambda f: (f / "config.json").write_text('{"vocab_size": 30, "model_type": "gptj"}'), "gelu_new"),
    "spec": (lambda f: (f / "config.json").write_text('{"vocab_size": 30, "ropewalk": {"n_layers": -1}}'), "n_layers"),
    "spec no object": (lambda f: (f / "config.json").write_text('{"vocab_size": 30, "ropewalk": 3}'), "configuration"),
    "giant": (
        lambda f: (f / "config.json").write_text('{"vocab_size": 9, "ropewalk": {"width": 1000000}}'),
        "lacks|shape",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_hostile_folder_gets_one_sentence(folder: Path, damage: str) -> None:
    harm, message = DAMAGES[damage]
    harm(folder)
    with pytest.raises(CheckpointError, match=message) as raised:
        load_checkpoint(folder)
    assert str(folder) in str(raised.value)


def test_every_flipped_header_byte_is_an_error_or_harmless(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    for at in range(0, 8 + struct.unpack("<Q", content[:8])[0], 23):
        damaged = bytearray(content)
        damaged[at] ^= 0x40
        path.write_bytes(bytes(damaged))
        with pytest.raises(CheckpointError):
            load_checkpoint(folder)
