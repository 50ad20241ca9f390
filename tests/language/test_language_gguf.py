"""A GGUF file loads as what it says: its scaling of RoPE is applied or refused by name, and every tensor is read."""

import math

import numpy as np
import pytest
import torch
from gguf_files import write_gguf
from made_tokenizers import made_tokenizer

from ops.language_models.heads import profile_frames
from ops.language_models.load import load_model
from ops.language_models.prompt import Prompt

PROMPT = Prompt(
    torch.randint(300, 1400, (40,), generator=torch.Generator().manual_seed(1)), 39, torch.arange(4, 36).reshape(8, 4)
)
PLANES, LENGTH = 4, 256
FACTORS = [1.0, 1.5, 3.0, 8.0]
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64}


def ggml_angles(base=10_000.0, scale=1.0, yarn=None, factors=(1.0,) * PLANES):
    """Radians a position and the factor on cosine and sine, plane by plane, as `ggml_rope` computes them."""
    angles, magnitude = [], 1.0
    if yarn is not None:
        original, fast, slow = yarn

        def plane_of(turns):
            return 2 * PLANES * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(0, math.floor(plane_of(fast))), min(2 * PLANES - 1, math.ceil(plane_of(slow)))
        magnitude = 1 + 0.1 * math.log(1 / scale)
    for plane in range(PLANES):
        extrapolated = base ** (-2 * plane / (2 * PLANES)) / factors[plane]
        angle = scale * extrapolated
        if yarn is not None:
            mix = 1 - min(1, max(0, (plane - low) / max(0.001, high - low)))
            angle = angle * (1 - mix) + extrapolated * mix
        angles.append(angle)
    return angles, magnitude


CASES = {
    "no scaling": ({}, {}, ggml_angles()),
    "a base": ({"rope.freq_base": 500_000.0}, {}, ggml_angles(500_000.0)),
    "linear": ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, {}, ggml_angles(scale=0.25)),
    "a factor without a type": ({"rope.scaling.factor": 2.0}, {}, ggml_angles(scale=0.5)),
    "the old name of a factor": ({"rope.scale_linear": 2.0}, {}, ggml_angles(scale=0.5)),
    "type none": ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, {}, ggml_angles()),
    "yarn": (YARN | {"rope.scaling.finetuned": True}, {}, ggml_angles(scale=0.25, yarn=(64, 32, 1))),
    "yarn with its own ramp": (
        YARN | {"rope.scaling.yarn_beta_fast": 8.0, "rope.scaling.yarn_beta_slow": 2.0},
        {},
        ggml_angles(scale=0.25, yarn=(64, 8, 2)),
    ),
    "llama 3's divisors": (
        {"rope.freq_base": 500_000.0},
        {"rope_freqs.weight": np.array(FACTORS, np.float32)},
        ggml_angles(500_000.0, factors=FACTORS),
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    return made_tokenizer("byte", True)


@pytest.fixture(scope="module")
def llama(build_model):
    return build_model("llama", vocab_size=1500)


@pytest.fixture
def write(llama, tokenizer, tmp_path):
    return lambda *args: write_gguf(llama, tokenizer, tmp_path / "model.gguf", *args)


@pytest.mark.parametrize("case", CASES)
def test_the_angles_are_those_of_a_reference(case, write):
    fields, tensors, (angles, magnitude) = CASES[case]
    model = load_model(write(fields, tensors)).model
    cos, sin = model.model.rotary_emb(torch.zeros(1), torch.arange(LENGTH)[None])
    turned = torch.arange(LENGTH, dtype=torch.float64)[:, None] * torch.tensor(angles, dtype=torch.float64)
    assert torch.allclose(cos[0, :, :PLANES].double(), magnitude * turned.cos(), atol=1e-4)
    assert torch.allclose(sin[0, :, :PLANES].double(), magnitude * turned.sin(), atol=1e-4)
    found = profile_frames(model, [PROMPT], (1e-2,)).frequencies.filter(layer=0, head=0)["theta"]
    assert found.to_list() == pytest.approx(angles, rel=1e-4)


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scores_are_those_of_the_same_model_as_a_folder(kind, build_model, tokenizer, tmp_path):
    rope = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 4.0}
    fields = {"rope.scaling.type": kind, "rope.scaling.factor": 4.0}
    if kind == "yarn":
        rope |= {"original_max_position_embeddings": 64}
        fields |= {"rope.scaling.original_context_length": 64}
    model = build_model("llama", vocab_size=1500, rope_parameters=rope)
    loaded = load_model(write_gguf(model, tokenizer, tmp_path / "model.gguf", fields)).model
    ours, theirs = (profile_frames(m, [PROMPT], (1e-2,)).heads for m in (loaded, model))
    assert (ours["positional_score"] - theirs["positional_score"]).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("fields", "tensors", "said"),
    [
        (
            {"rope.scaling.type": "longrope", "rope.scaling.factor": 4.0},
            {},
            r"llama\.rope\.scaling\.type is 'longrope'",
        ),
        (YARN | {"rope.scaling.yarn_ext_factor": 0.5}, {}, "yarn_ext_factor is 0.5"),
        (YARN | {"rope.scaling.attn_factor": 1.2}, {}, r"attn_factor is 1\.2"),
        (YARN | {"rope.scaling.yarn_log_multiplier": 0.1}, {}, "yarn_log_multiplier"),
        ({"rope.scaling.yarn_beta_fast": 8.0}, {}, "yarn_beta_fast is 8.0"),
        ({"rope.freq_base_swa": 10_000.0}, {}, "freq_base_swa"),
        ({"rope.some_new_key": 3}, {}, r"llama\.rope\.some_new_key is 3"),
        ({"attention.causal": False}, {}, r"llama\.attention\.causal is False"),
        ({"attention.sliding_window": 16}, {}, r"llama\.attention\.sliding_window is 16"),
        ({"attn_logit_softcapping": 30.0}, {}, "attn_logit_softcapping is 30.0"),
        ({"logit_scale": 0.5}, {}, r"llama\.logit_scale is 0\.5"),
        ({"attention.layer_norm_epsilon": 1e-3}, {}, "layer_norm_epsilon is 0.001"),
        (YARN, {"rope_freqs.weight": np.array(FACTORS, np.float32)}, "rope_freqs.weight cannot be applied"),
        ({}, {"rope_freqs.weight": np.array(FACTORS[:3], np.float32)}, "cannot be"),
        ({}, {"blk.0.attn_q_norm.weight": np.ones(8, np.float32)}, "'blk.0.attn_q_norm.weight' was not read"),
        ({}, {"blk.1.attn_k.weight": None}, r"'model\.layers\.1\.self_attn\.k_proj\.weight' is missing"),
        ({}, {"blk.1.ffn_up.weight": np.ones((40, 32), np.float32)}, r"up_proj\.weight has shape \(40, 32\)"),
        ({}, {"output_norm.weight": np.full(32, np.nan, np.float32)}, "NaN or infinite"),
    ],
)
def test_what_is_not_applied_is_refused_by_name(fields, tensors, said, write):
    with pytest.raises(ValueError, match=said) as failure:
        load_model(write(fields, tensors))
    assert "model.gguf" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_tied_weights_are_no_missing_tensor(write, llama):
    model = load_model(write({}, {"output.weight": None})).model
    assert torch.equal(model.lm_head.weight, llama.model.embed_tokens.weight)


def harm_cut(data):
    return data[: len(data) // 2]


def harm_header(data):
    return data[:200]


def harm_pointer(_):
    return b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1000\n"


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (harm_cut, "cut off"),
        (harm_header, "cut off"),
        (lambda data: b"", "cut off"),
        (lambda data: b"{}" + data, "no GGUF file"),
        (harm_pointer, "git lfs pull"),
    ],
)
def test_a_damaged_file_is_one_sentence(harm, said, write):
    path = write()
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(ValueError, match=said) as failure:
        load_model(path)
    assert "\n" not in str(failure.value)
