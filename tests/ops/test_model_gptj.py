"""The Transformer against golden vectors, Hugging Face, and the properties it must have."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F
from transformers import GPTJConfig, GPTJForCausalLM

from ops.model.gptj import GPTJ, attend, attention_weights
from ops.model.rope import RotaryTable
from ops.spec.model import ModelSpec

GOLDEN = Path(__file__).parents[1] / "golden"
SMALL = ModelSpec(n_layers=3, n_heads=2, width=32, initial_std=0.2)


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    return {**np.load(GOLDEN / "inputs.npz"), **np.load(GOLDEN / "scores.npz")}


def golden_model(dtype: torch.dtype) -> GPTJ:
    config = json.loads((GOLDEN / "gptj_small.json").read_text())
    spec = ModelSpec(n_layers=3, n_heads=2, width=32, rotary_dims=config["rotary_dim"])
    model = GPTJ(spec, config["vocab_size"])
    model.load_state_dict(load_file(GOLDEN / "gptj_small.safetensors"))
    return model.to(dtype).eval()


def small_model(spec: ModelSpec = SMALL, seed: int = 0, vocabulary_size: int = 40) -> GPTJ:
    """Random weights with random biases and gains, float64, eval mode."""
    torch.manual_seed(seed)
    model = GPTJ(spec, vocabulary_size).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def some_ids(batch: int = 5, length: int = 17, seed: int = 0) -> Tensor:
    return torch.randint(0, 40, (batch, length), generator=torch.Generator().manual_seed(seed))


def all_attention(model: GPTJ, ids: Tensor, rotary: RotaryTable | None = None) -> Tensor:
    rotations = model.rotations(0, ids.shape[1], rotary)
    rows = [
        attention_weights(rotations[s.layer].apply_query(s.query), rotations[s.layer].apply_key(s.key))
        for s in model.layers(ids, rotary)
    ]
    return torch.stack(rows, 1)


@pytest.mark.parametrize("task", ["number", "letter"])
@pytest.mark.parametrize(
    ("precision", "dtype", "tolerance"), [("f64", torch.float64, 1e-10), ("f32", torch.float32, 1e-5)]
)
def test_golden_logits_and_attention(
    golden: dict, task: str, precision: str, dtype: torch.dtype, tolerance: float
) -> None:
    model, ids = golden_model(dtype), torch.as_tensor(golden[f"{task}_ids"]).long()
    with torch.no_grad():
        logits, last, attention = model(ids)[:, -1], model.last_logits(ids), all_attention(model, ids)
    expected = torch.as_tensor(golden[f"{task}_logits_last_{precision}"])
    torch.testing.assert_close(logits, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(last, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(attention, torch.as_tensor(golden[f"{task}_attn_{precision}"]), rtol=0, atol=tolerance)


def hugging_face(model: GPTJ) -> GPTJForCausalLM:
    spec = model.spec
    config = GPTJConfig(
        vocab_size=model.vocabulary_size,
        n_positions=64,
        n_embd=spec.width,
        n_layer=spec.n_layers,
        n_head=spec.n_heads,
        rotary_dim=2 * spec.n_frequencies,
        activation_function="gelu",
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    theirs = GPTJForCausalLM(config)
    theirs.load_state_dict(model.float().state_dict(), strict=False)
    return theirs.eval()


@pytest.mark.parametrize("rotary_dims", [16, 8])
def test_logits_and_gradients_equal_hugging_face(rotary_dims: int) -> None:
    ours = small_model(ModelSpec(**_fields(rotary_dims)))
    theirs, ids = hugging_face(ours), some_ids()
    labels = ids[:, 0]
    logits, expected = ours(ids), theirs(ids).logits
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    F.cross_entropy(ours.last_logits(ids), labels).backward()
    F.cross_entropy(expected[:, -1], labels).backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(
            parameter.grad, wanted[name].grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
        )


def _fields(rotary_dims: int) -> dict:
    return {"n_layers": 3, "n_heads": 2, "width": 32, "initial_std": 0.2, "rotary_dims": rotary_dims}


@pytest.mark.parametrize("length", [1, 2, 17, 40])
def test_last_logits_are_forwards_last(length: int) -> None:
    model, ids = small_model(), some_ids(length=length)
    torch.testing.assert_close(model.last_logits(ids), model(ids)[:, -1], rtol=0, atol=1e-12)


def test_causal() -> None:
    model, ids = small_model(), some_ids()
    changed = ids.clone()
    changed[:, 9:] = (changed[:, 9:] + 1) % 40
    before, after = model(ids), model(changed)
    torch.testing.assert_close(before[:, :9], after[:, :9], rtol=0, atol=1e-13)
    assert (before[:, 9:] - after[:, 9:]).abs().max() > 1e-3


def test_shifted_positions_change_nothing() -> None:
    model, ids = small_model(), some_ids()
    hidden = model.embed(ids)
    for layer, rotation in zip(model.blocks, model.rotations(1_000, 1_017), strict=True):
        normed, query, key, value = layer.project(hidden)
        attended = attend(rotation.apply_query(query), rotation.apply_key(key), value)
        hidden = layer.finish(hidden, normed, attended)
    torch.testing.assert_close(model.read_out(hidden), model(ids), rtol=0, atol=1e-10)


def test_keys_of_a_prefix_serve_the_rest() -> None:
    model, ids = small_model(), some_ids(length=30)
    rest = model.embed(ids[:, 20:])
    for state, rotation in zip(model.layers(ids[:, :20]), model.rotations(0, 30), strict=True):
        layer = model.blocks[state.layer]
        normed, query, key, value = layer.project(rest)
        key, value = torch.cat((state.key, key), 2), torch.cat((state.value, value), 2)
        query = rotation._replace(query=rotation.query[:, 20:]).apply_query(query)
        rest = layer.finish(rest, normed, attend(query, rotation.apply_key(key), value))
    torch.testing.assert_close(model.read_out(rest), model(ids)[:, 20:], rtol=0, atol=1e-12)


def test_an_empty_intervention_is_bit_identical() -> None:
    model, ids = small_model().float(), some_ids()
    for table in (model.rotary.frozen([]), model.rotary.removed([]), model.rotary.replaced()):
        assert torch.equal(model(ids, rotary=table), model(ids))
        assert torch.equal(model.last_logits(ids, rotary=table), model.last_logits(ids))


def test_all_planes_frozen_is_nope() -> None:
    nope = small_model(ModelSpec(**_fields(16), nope_from_layer=0))
    model, ids = small_model(), some_ids()
    model.load_state_dict(nope.state_dict())
    frozen = model(ids, rotary=model.rotary.frozen(range(1, 9)))
    assert torch.equal(frozen, nope(ids))
    plain = small_model(ModelSpec(**_fields(0)))
    plain.load_state_dict(nope.state_dict())
    torch.testing.assert_close(plain(ids), frozen, rtol=0, atol=1e-12)
    assert (frozen - model(ids)).abs().max() > 1e-3


def test_all_planes_removed_is_uniform_attention() -> None:
    model, ids = small_model(), some_ids()
    attention = all_attention(model, ids, model.rotary.removed(range(1, 9)))
    uniform = torch.ones(17, 17, dtype=torch.float64).tril()
    torch.testing.assert_close(attention, (uniform / uniform.sum(1, keepdim=True)).expand_as(attention))


def test_layers_is_lazy_and_carries_the_layers_input() -> None:
    model, ids = small_model(), some_ids()
    calls: list[int] = []
    for index, layer in enumerate(model.blocks):
        layer.mlp.register_forward_hook(lambda *_, i=index: calls.append(i))
    states = model.layers(ids)
    first, second = next(states), next(states)
    assert calls == [0]
    assert (first.layer, second.layer) == (0, 1)
    assert torch.equal(first.hidden, model.embed(ids))
    assert first.query.shape == (5, 2, 17, 16)
    rotation = model.rotations(0, 17)[0]
    attended = attend(rotation.apply_query(first.query), rotation.apply_key(first.key), first.value)
    torch.testing.assert_close(model.blocks[0].finish(first.hidden, first.normed, attended), second.hidden)


def test_attend_equals_its_weights_and_a_mask_multiplies_them() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 2, 9, 8, dtype=torch.float64)
    for n_query in (1, 4, 9):
        weights = attention_weights(query[:, :, -n_query:], key)
        mask = torch.rand_like(weights)
        torch.testing.assert_close(attend(query[:, :, -n_query:], key, value), weights @ value)
        torch.testing.assert_close(attend(query[:, :, -n_query:], key, value, mask), (weights * mask) @ value)


def test_bf16_autocast_stays_close() -> None:
    model, ids = small_model(ModelSpec(n_layers=2, width=32, initial_std=0.1)).float().train(), some_ids()
    exact = model.eval()(ids)
    with torch.autocast("cpu", torch.bfloat16):
        assert (model(ids).float() - exact).abs().max() < 0.1
        model.train().seed_dropout(0)
        F.cross_entropy(model.last_logits(ids), ids[:, 0]).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_tables_made_in_inference_mode_serve_training() -> None:
    model, ids = small_model(), some_ids()
    with torch.inference_mode():
        model.train()(ids)
        model.eval()(ids)
    model(ids).sum().backward()


def test_a_table_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="rotary table"):
        small_model()(some_ids(), rotary=RotaryTable.from_spec(ModelSpec(n_layers=1, width=32)))


def test_initial_weights_follow_the_spec() -> None:
    torch.manual_seed(0)
    model = GPTJ(ModelSpec(), 137)
    assert sum(p.numel() for p in model.parameters()) == 2_405_513
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif ".ln_" in name:
            assert (parameter == 1).all()
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.05)
