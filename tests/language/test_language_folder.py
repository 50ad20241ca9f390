"""A folder or hub name loads as what stands on disk, or not at all: one sentence, whatever is wrong with its files."""

import contextlib
import json
import logging
import shutil

import pytest
import torch
from made_tokenizers import made_tokenizer
from safetensors.torch import load_file, save_file

from ops.language_models.load import load_model
from ops.language_models.loading_report import common_prefix

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 269060552\n"


@pytest.fixture(scope="module")
def saved(build_model, tmp_path_factory):
    """A tiny Llama with a tokenizer, as save_pretrained leaves them."""
    place = tmp_path_factory.mktemp("saved") / "model"
    build_model("llama", vocab_size=1500).save_pretrained(place)
    made_tokenizer("byte", True).save_pretrained(place)
    return place


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def edit(folder, drop=(), **fields):
    path = folder / "config.json"
    config = {key: value for key, value in json.loads(path.read_text()).items() if key not in drop}
    path.write_text(json.dumps(config | fields))


def rewrite(folder, change):
    """New tensors for all old ones; `change` gets and returns the dictionary."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def changed(name, tensor):
    return lambda f: rewrite(f, lambda tensors: tensors | {name: tensor})


def sharded(folder, missing):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards = {name: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, name in enumerate(sorted(tensors))}
    for shard in set(shards.values()) - {missing}:
        save_file({n: tensors[n] for n in shards if shards[n] == shard}, folder / shard, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))


def only_pickle(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def without_tokenizer(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:20_000])


KEY = "model.layers.1.self_attn.k_proj.weight"
ROPE = ("rope_parameters",)
HARMS = {
    "weights are a pointer": (
        lambda f: (f / "model.safetensors").write_text(POINTER),
        "model.safetensors.*git lfs pull",
    ),
    "config is a pointer": (lambda f: (f / "config.json").write_text(POINTER), r"config\.json.*git lfs pull"),
    "tokenizer is a pointer": (lambda f: (f / "tokenizer.json").write_text(POINTER), r"tokenizer\.json.*git lfs pull"),
    "weights cut off": (cut, "cut off"),
    "weights empty": (lambda f: (f / "model.safetensors").write_bytes(b""), "cut off"),
    "a shard is missing": (lambda f: sharded(f, "model-00002-of-00002.safetensors"), "model-00002.*is missing"),
    "only a pickle": (only_pickle, r"only pytorch_model\.bin, a pickle, which is never loaded"),
    "index leaves the folder": (
        lambda f: (
            (f / "model.safetensors").unlink(),
            (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}'),
        ),
        "beside it",
    ),
    "no tokenizer": (without_tokenizer, "has no tokenizer"),
    "tokenizer cut off": (lambda f: (f / "tokenizer.json").write_text('{"model":'), "tokenizer cannot be loaded"),
    "config null": (lambda f: (f / "config.json").write_text("null"), r"config\.json is no JSON object"),
    "config cut off": (lambda f: (f / "config.json").write_text('{"model_type": "lla'), r"config\.json is empty, cut"),
    "no model type": (lambda f: edit(f, drop=("model_type",)), "no model_type"),
    "unknown type": (lambda f: edit(f, model_type="ropellama9"), "'ropellama9' is not known"),
    "not causal": (lambda f: edit(f, model_type="t5"), "'t5' is no causal language model"),
    "other width": (lambda f: edit(f, hidden_size=64), r"has shape .* asks for .*64"),
    "other depth": (lambda f: edit(f, num_hidden_layers=3), r"layers\.2\..*is missing"),
    "fewer layers": (lambda f: edit(f, num_hidden_layers=1), r"layers\.1\..*is not one of this architecture"),
    "tensor missing": (
        lambda f: rewrite(f, lambda t: {n: v for n, v in t.items() if "layers.1.self_attn" not in n}),
        r"'model\.layers\.1\.self_attn\.k_proj\.weight' is missing \(4 such\)",
    ),
    "tensor unknown": (changed("model.layers.0.surplus", torch.ones(2)), "'model.layers.0.surplus' is not one"),
    "some names prefixed": (
        lambda f: rewrite(f, lambda t: {("_orig_mod." + n if "layers.1" in n else n): v for n, v in t.items()}),
        "is missing .* is not known",
    ),
    "wrong shape": (changed(KEY, torch.ones(16, 31)), r"k_proj\.weight has shape \(16, 31\)"),
    "NaN": (changed(KEY, torch.full((16, 32), torch.nan)), "NaN or infinite"),
    "infinite": (changed(KEY, torch.full((16, 32), torch.inf)), "NaN or infinite"),
    "beyond float32": (changed(KEY, torch.full((16, 32), 1e300, dtype=torch.float64)), "NaN or infinite"),
    "8-bit": (changed(KEY, torch.ones(16, 32).to(torch.float8_e4m3fn)), "stored as F8_E4M3"),
    "complex": (changed(KEY, torch.ones(16, 32, dtype=torch.complex64)), "stored as C64"),
    "integers": (changed(KEY, torch.ones(16, 32, dtype=torch.int32)), "stored as I32"),
    "quantised": (lambda f: edit(f, quantization_config={"quant_method": "fp8"}), "quantization_config names 'fp8'"),
    "an adapter": (lambda f: (f / "adapter_config.json").write_text("{}"), "adapter"),
    "unknown scaling": (
        lambda f: edit(f, drop=ROPE, rope_scaling={"type": "ntk-parts", "factor": 2.0}),
        r"config\.json: rope_scaling .*'ntk-parts' is not known",
    ),
    "scaling without its factor": (lambda f: edit(f, drop=ROPE, rope_scaling={"type": "linear"}), "factor"),
    "a factor that no type uses": (
        lambda f: edit(f, drop=ROPE, rope_scaling={"rope_type": "default", "factor": 2.0}),
        "factor 2.0 is not used",
    ),
    "a field of another library": (
        lambda f: edit(
            f,
            drop=ROPE,
            rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attn_factor": 2.0},
        ),
        "attn_factor 2.0 is not used",
    ),
    "two bases": (lambda f: edit(f, rope_theta=500_000.0), "rope_theta is 500000.0"),
    "a window": (lambda f: edit(f, sliding_window=16), "sliding_window is 16, and LlamaForCausalLM does not apply it"),
    "biases by distance": (lambda f: edit(f, alibi=True), "alibi is True"),
    "logits by log n": (lambda f: edit(f, use_logn_attn=True), "use_logn_attn is True, and LlamaForCausalLM does not"),
    "another base beyond a length": (lambda f: edit(f, use_dynamic_ntk=True), "use_dynamic_ntk is True"),
    "closer positions": (lambda f: edit(f, seq_len_interpolation_factor=4.0), "seq_len_interpolation_factor is 4.0"),
    "a cap on logits": (lambda f: edit(f, attn_logit_softcapping=50.0), "attn_logit_softcapping is 50.0"),
    "a factor on logits": (lambda f: edit(f, attention_multiplier=0.01), "attention_multiplier is 0.01"),
    "part of the dimensions": (lambda f: edit(f, partial_rotary_factor=0.5), "partial_rotary_factor"),
    "other frequencies stored": (
        changed("model.layers.0.self_attn.rotary_emb.inv_freq", torch.tensor([1.0, 0.2, 0.03, 0.004])),
        "stores other frequencies",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_no_model_and_one_sentence(harm, folder):
    change, said = HARMS[harm]
    change(folder)
    with pytest.raises(ValueError, match=said) as failure:
        load_model(folder)
    assert str(folder) in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "model."])
def test_a_prefix_of_all_names_is_dropped_aloud(prefix, folder, saved, caplog):
    rewrite(folder, lambda tensors: {prefix + name: tensor for name, tensor in tensors.items()})
    with caplog.at_level(logging.WARNING, "ops.language_models.loading_report"):
        model = load_model(folder).model
    assert repr(prefix) in caplog.text
    for name, tensor in load_file(saved / "model.safetensors").items():
        assert torch.equal(model.state_dict()[name], tensor), name


def test_a_prefix_that_may_be_read_in_two_ways_is_none():
    assert common_prefix(["a.b.x"], ["b.x", "x"]) is None
    assert common_prefix(["a.x", "y"], ["x", "y"]) is None
    assert common_prefix(["a.x", "a.y"], ["x"]) is None
    assert common_prefix(["a.x", "a.y"], ["x", "y", "tied"]) == "a."


def test_every_architecture_comes_back_as_it_was_saved(architecture, build_model, tmp_path):
    changes = {} if architecture == "gpt-oss-sinks" else {"vocab_size": 1500}
    model = build_model(architecture, **changes)
    model.save_pretrained(tmp_path)
    made_tokenizer("byte", True).save_pretrained(tmp_path)
    loaded = load_model(tmp_path).model.state_dict()
    assert loaded.keys() == model.state_dict().keys()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("name", "changes", "drop", "fields"),
    [
        ("llama", {}, ROPE, {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 5e5,
                             "rope_interleaved": False}),
        ("phi3", {}, ROPE, {"rope_scaling": {"type": "longrope", "short_factor": [1, 2, 3, 4], "long_factor": [4] * 4},
                            "original_max_position_embeddings": 128, "auto_map": {"AutoConfig": "own.Phi3Config"}}),
        ("gpt-neox", {}, ROPE, {"rotary_pct": 0.25, "rotary_emb_base": 50_000}),
        ("gemma3", {}, ROPE, {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 2,
                              "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
        ("gptj", {}, (), {"rotary": True}),
        ("qwen2", {}, (), {"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 2}),
    ],
)  # fmt: skip
def test_older_spellings_of_positions_are_applied(name, changes, drop, fields, build_model, tmp_path):
    build_model(name, vocab_size=1500, **changes).save_pretrained(tmp_path)
    made_tokenizer("byte", True).save_pretrained(tmp_path)
    edit(tmp_path, drop, **fields)
    load_model(tmp_path)


def test_stored_frequencies_that_agree_and_old_masks_are_no_defect(folder):
    old = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.tensor([1.0, 0.1, 0.01, 0.001]).half(),
    }
    rewrite(folder, lambda tensors: tensors | old)
    load_model(folder)


CODE = "open({marker!r}, 'w').write('ran')\nclass C: pass\n"


@pytest.mark.parametrize(
    ("place", "refused"),
    [("config.json", True), ("tokenizer_config.json", True), ("known type", False), ("generation", False)],
)
def test_code_in_a_folder_neither_runs_nor_is_asked_about(place, refused, folder, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda *args: asked.append(args) or "y")
    marker = tmp_path / "ran"
    for name in ("own.py", "custom_generate/generate.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(CODE.format(marker=str(marker)))
    own = {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.C", "AutoTokenizer": ["own.C", None]}
    if place == "config.json":
        edit(folder, model_type="mine", auto_map=own)
    elif place == "known type":
        edit(folder, auto_map=own)
    elif place == "tokenizer_config.json":
        path = folder / place
        path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "Own", "auto_map": own}))
    with pytest.raises(ValueError, match=r"^[^\n]*run code[^\n]*$") if refused else contextlib.nullcontext():
        load_model(folder)  # of a known type: with what transformers has for it
    assert not asked
    assert not marker.exists()


@pytest.mark.parametrize("source", ["~/models/mine", "C:\\models\\mine", "/no/such/folder", "./none", "a/b/c", ""])
def test_what_is_no_source_is_one_sentence(source):
    with pytest.raises(ValueError, match="no folder that exists"):
        load_model(source)


def test_a_hub_name_is_held_to_the_same(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    place, commit = tmp_path / "models--someone--tiny", "0" * 40
    shutil.copytree(saved, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    assert load_model("someone/tiny", local_only=True).model.config.hidden_size == 32
    rewrite(place / "snapshots" / commit, lambda t: {n: v for n, v in t.items() if "layers.1" not in n})
    with pytest.raises(ValueError, match=r"someone/tiny: the tensor .* is missing"):
        load_model("someone/tiny", local_only=True)
    edit(place / "snapshots" / commit, model_type="mine", auto_map={"AutoConfig": "own.C"})
    with pytest.raises(ValueError, match="run code"):
        load_model("someone/tiny", local_only=True)
    with pytest.raises(ValueError, match="someone/other: the model cannot be loaded from the hub"):
        load_model("someone/other", local_only=True)
