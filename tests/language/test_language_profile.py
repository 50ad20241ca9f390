"""What a profile says of hand-made heads, what it leaves undefined, and what it refuses."""

import pytest
import torch

from ops.language_models.attention import LayerAttention, Rotation, UnsupportedModel, observe_layers
from ops.language_models.heads import average_heads, profile_frames, score_prompts
from ops.language_models.load import load_model, untrained_twin
from ops.language_models.profile import profile_layer, profile_prompt
from ops.language_models.prompt import Prompt
from ops.language_models.verify import verify_heads

BLOCKS = torch.arange(2, 18).reshape(4, 4)


def hand_made(still, contents, theta, **changes):
    """One head of two planes at position 19, turned by theta a position, as a LayerAttention."""
    position = torch.arange(20, dtype=torch.float64)
    angle = position[:, None] * torch.tensor(theta, dtype=torch.float64)
    rotation = Rotation(torch.tensor([0, 1]), torch.tensor([2, 3]), angle.cos(), angle.sin())
    fields = {
        "layer": 0,
        "layer_type": "full",
        "position": 19,
        "query": rotation.rotate(still.expand(1, 20, 4).clone())[:, 19],
        "contents": contents,
        "keys": rotation.rotate(contents),
        "rotation": rotation,
        "visible": torch.ones(20, dtype=torch.bool),
        "scaling": 1.0,
        "softcap": None,
        "sink": None,
    }
    return LayerAttention(**(fields | changes))


def profiled(layer, blocks=BLOCKS):
    return profile_layer(layer, blocks, (1e-2, 1.0), True, torch.Generator().manual_seed(0))


def test_a_head_on_one_fast_plane_with_equal_contents_is_positional():
    layer = hand_made(
        torch.tensor([4.0, 0, 0, 0]).double(), torch.tensor([3.0, 0, 0, 0]).double().expand(1, 20, 4), [0.3, 0.0]
    )
    found = profiled(layer)
    assert found.scores[0, :, 0] == pytest.approx(1.0, abs=1e-12)
    assert float(found.scores[0, 1, 1]) < 0.9
    assert found.variance_share[0].tolist() == [1.0, 0.0]
    assert found.theta.tolist() == pytest.approx([0.3, 0.0])


def test_a_head_on_a_plane_that_stands_still_is_symbolic_and_the_dead_plane_undefined():
    stream = torch.Generator().manual_seed(0)
    contents = torch.zeros(1, 20, 4, dtype=torch.float64)
    contents[..., 1] = torch.randn(20, generator=stream, dtype=torch.float64) * 2
    layer = hand_made(torch.tensor([0, 2.0, 0, 0]).double(), contents, [0.3, 0.0])
    found = profiled(layer)
    assert found.scores[0, :, 1] == pytest.approx(1.0, abs=1e-12)
    assert found.plane_scores[0, 1, 1] == pytest.approx(1.0, abs=1e-12)
    assert bool(found.plane_scores[0, 0].isnan().all())  # undefined, not a number that means nothing
    assert found.variance_share[0].tolist() == [0.0, 1.0]


def test_planes_add_up_to_the_head():
    stream = torch.Generator().manual_seed(1)
    contents = torch.randn(1, 20, 4, generator=stream, dtype=torch.float64)
    layer = hand_made(torch.randn(4, generator=stream, dtype=torch.float64), contents, [0.9, 0.01])
    one_plane = contents.clone()
    one_plane[..., [1, 3]] = 0
    alone = profiled(hand_made(layer.query[0], one_plane, [0.9, 0.01], query=layer.query))
    assert torch.equal(profiled(layer).plane_scores[0, 0].round(decimals=10), alone.scores[0, 0].round(decimals=10))


def test_blocks_outside_the_window_are_left_out_and_one_block_is_undefined():
    stream = torch.Generator().manual_seed(2)
    contents = torch.randn(1, 20, 4, generator=stream, dtype=torch.float64)
    query = torch.randn(4, generator=stream, dtype=torch.float64)
    visible = torch.arange(20) >= 9
    windowed = profiled(hand_made(query, contents, [0.9, 0.01], visible=visible))
    two = profiled(hand_made(query, contents, [0.9, 0.01], visible=visible), BLOCKS[2:])
    assert torch.equal(windowed.scores, two.scores)
    alone = profiled(hand_made(query, contents, [0.9, 0.01], visible=torch.arange(20) >= 13))
    assert bool(alone.scores.isnan().all() & alone.random_scores.isnan().all() & alone.plane_scores.isnan().all())
    assert bool(alone.own_mass.isfinite().all())


def test_random_logits_are_strongly_anticorrelated():
    stream = torch.Generator().manual_seed(3)
    query = torch.randn(400, 4, generator=stream, dtype=torch.float64) * 3
    contents = torch.randn(1, 20, 4, generator=stream, dtype=torch.float64)
    layer = hand_made(query[0], contents, [0.9, 0.01], query=query)
    found = profile_layer(layer, BLOCKS, (1e-4,), False, stream).random_scores[:, 0]
    assert float(torch.corrcoef(found.T)[0, 1]) < -0.7
    assert torch.equal(found, found.clamp(0, 1))


def test_the_model_is_left_as_it_was_found(build_model, tiny_prompt):
    model = build_model("gemma2").train()
    model.model.layers[0].eval()
    before = [module.training for module in model.modules()]
    implementation = model.config._attn_implementation
    generator = torch.random.get_rng_state()
    profile_prompt(model, tiny_prompt)
    verify_heads(model, tiny_prompt)
    assert [module.training for module in model.modules()] == before
    assert model.config._attn_implementation == implementation
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert torch.equal(torch.random.get_rng_state(), generator)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_forward_pass_is_the_models_own(build_model, tiny_prompt):
    model = build_model("gpt-oss-sinks")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(tiny_prompt.ids[None], use_cache=False).logits[0, -1]
    assert torch.allclose(observe_layers(model, tiny_prompt.ids, 29, lambda layer: None), expected, atol=1e-5)


def test_long_prompts_are_computed_in_rows(build_model, monkeypatch, tiny_prompt):
    model = build_model("qwen3")
    whole = profile_prompt(model, tiny_prompt)
    monkeypatch.setattr("ops.language_models.attention.ROWS_AT_ONCE", 7)
    rows = profile_prompt(model, tiny_prompt)
    for a, b in zip(whole.layers, rows.layers, strict=True):
        assert torch.allclose(a.scores, b.scores, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("OPT", {"word_embed_proj_dim": 32, "ffn_dim": 48}, "only models with RoPE"),
        ("HunYuanDenseV1", {"head_dim": 16}, "no rotation of their contents"),
    ],
)
def test_refused_with_one_sentence(name, changes, said, build_model, tiny_prompt):
    with pytest.raises(UnsupportedModel, match=said) as failure:
        profile_prompt(build_model(name, **changes), tiny_prompt)
    assert "\n" not in str(failure.value)


def test_low_precision_is_refused(build_model, tiny_prompt):
    with pytest.raises(UnsupportedModel, match="float32"):
        profile_prompt(build_model("llama").bfloat16(), tiny_prompt)
    with pytest.raises(ValueError, match="too coarse"):
        load_model("smollm2", dtype="bfloat16")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"blocks": torch.arange(0, 8).reshape(2, 4)}, "attention sink"),
        ({"blocks": torch.arange(24, 32).reshape(2, 4)}, "before the query"),
        ({"blocks": torch.tensor([[2, 3], [3, 4]])}, "overlap"),
        ({"blocks": torch.arange(4, 8).reshape(1, 4)}, "two or more blocks"),
        ({"query": 30}, "query position"),
    ],
)
def test_bad_blocks_are_refused(changes, said, build_model, tiny_prompt):
    with pytest.raises(ValueError, match=said):
        profile_prompt(build_model("llama"), tiny_prompt._replace(**changes))


def test_no_prompts_is_an_error(build_model):
    with pytest.raises(ValueError, match="no prompts"):
        score_prompts(build_model("llama"), None, [])


def test_a_prompt_given_twice_is_an_error(build_model, tiny_prompt):
    again = tiny_prompt._replace(ids=tiny_prompt.ids.clone())
    with pytest.raises(ValueError, match="prompts 0 and 1 are one and the same"):
        profile_frames(build_model("llama"), [tiny_prompt, again])


def test_mean_over_prompts_counts_them(build_model, tiny_prompt):
    other = tiny_prompt._replace(ids=tiny_prompt.ids.flip(0))
    frame = profile_frames(build_model("llama"), [tiny_prompt, other], (1e-2,), False).heads
    mean = average_heads(frame)
    assert mean["n"].unique().to_list() == [2]
    first = frame.filter(layer=0, head=0)["positional_score"].mean()
    assert mean.filter(layer=0, head=0)["positional_score"].item() == pytest.approx(first)


def test_untrained_twin_is_reproducible_and_leaves_the_generator(build_model):
    model = build_model("gemma3")
    state = torch.random.get_rng_state()
    one, same, other = (untrained_twin(model, seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("source", ["nowhere/model.gguf", "no-such/model-at-all"])
def test_missing_model_is_one_sentence(source):
    with pytest.raises(ValueError, match=r"no such GGUF file|cannot be loaded") as failure:
        load_model(source, local_only=True)
    assert "\n" not in str(failure.value)


def test_folder_without_config_is_refused(build_model, tmp_path):
    build_model("qwen2").save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"config\.json"):
        load_model(tmp_path)


def test_prompts_are_plain_data():
    prompt = Prompt(torch.arange(5), 4, torch.tensor([[1], [2]]))
    assert prompt.answer is None
