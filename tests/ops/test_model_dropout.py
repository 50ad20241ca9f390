"""Dropout masks: a function of the seed, with the right rate and scale."""

import math

import numpy as np
import pytest
import torch

from ops.model.dropout import DropoutStream
from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec

CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.013])
def test_rate_and_scale(rate: float) -> None:
    n = 4_000_000
    mask = DropoutStream(3).draw(n, rate, CPU)
    dropped = (mask == 0).sum().item() / n
    assert dropped == pytest.approx(rate, abs=1 / 131_072 + 5 * math.sqrt(rate * (1 - rate) / n))
    kept = mask[mask != 0].unique()
    assert kept.shape == (1,)
    assert kept.item() == pytest.approx(1 / (1 - rate), rel=1e-4)


def test_elements_are_uncorrelated() -> None:
    mask = (DropoutStream(5).draw(2**20, 0.1, CPU).numpy() == 0).astype(np.float64) - 0.1
    for lag in (1, 2, 3, 4, 8, 128, 17 * 128):
        correlation = (mask[:-lag] * mask[lag:]).mean() / 0.09
        assert abs(correlation) < 5 / math.sqrt(2**20)


def test_masks_are_a_function_of_the_seed_alone() -> None:
    model = GPTJ(ModelSpec(n_layers=2, width=16), 20).train()
    ids = torch.arange(12).view(2, 6)
    outputs = []
    for seed in (7, 8, 7):
        torch.rand(5)  # the default generator plays no part
        model.seed_dropout(seed)
        outputs.append((model(ids), model(ids)))
    assert torch.equal(outputs[0][0], outputs[2][0])
    assert torch.equal(outputs[0][1], outputs[2][1])
    assert not torch.equal(outputs[0][0], outputs[1][0])
    assert not torch.equal(outputs[0][0], outputs[0][1])


def test_last_logits_drops_what_forward_drops() -> None:
    model = GPTJ(ModelSpec(n_layers=2, n_heads=2, width=16), 20).train()
    ids = torch.arange(12).view(2, 6)
    model.seed_dropout(7)
    whole = model(ids)[:, -1]
    model.seed_dropout(7)
    torch.testing.assert_close(model.last_logits(ids), whole, rtol=0, atol=1e-6)


def test_without_a_seed_torchs_generator_decides() -> None:
    ids = torch.arange(12).view(2, 6)
    outputs = []
    for _ in range(2):
        torch.manual_seed(11)
        model = GPTJ(ModelSpec(n_layers=1, width=16), 20).train()
        outputs.append(model(ids))
    assert torch.equal(*outputs)


def test_eval_and_rate_zero_drop_nothing() -> None:
    ids = torch.arange(12).view(2, 6)
    model = GPTJ(ModelSpec(n_layers=2, width=16), 20)
    still = GPTJ(ModelSpec(n_layers=2, width=16, dropout=0.0), 20).train()
    still.load_state_dict(model.state_dict())
    torch.testing.assert_close(model.eval()(ids), still(ids), rtol=0, atol=1e-6)


def test_every_place_of_the_model_drops_at_the_rate_of_the_spec() -> None:
    masks = DropoutStream(1).masks(layers=2, heads=3, shape=(40, 17, 32), rate=0.1, device=CPU)
    assert masks.embedding.shape == (40, 17, 32)
    for layer in masks.layers:
        assert layer.weights.shape == (40, 3, 17, 17)
        for mask in layer:
            n = mask.numel()
            assert (mask == 0).float().mean().item() == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / n))
        assert not torch.equal(layer.attention, layer.mlp)
