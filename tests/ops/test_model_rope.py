"""Rotary tables: the formula, relative positions, freezing and removing."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.model.rope import RotaryTable, frequencies, rotate
from ops.spec.model import ModelSpec

SPEC = ModelSpec(n_layers=2, n_heads=2, width=16)


def test_frequencies_are_the_papers() -> None:
    theta = frequencies(64, 10_000.0)
    assert theta.dtype == torch.float64
    assert theta[0] == 1.0
    assert theta[1].item() == pytest.approx(10_000 ** (-2 / 128), rel=1e-15)
    assert round(theta[41].item(), 4) == 0.0027
    assert frequencies(0).shape == (0,)


def test_rotate_equals_two_by_two_rotation_matrices() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 2, 5, 8, dtype=torch.float64)  # (B, H, T, D)
    theta = torch.rand(2, 3, dtype=torch.float64)  # 3 of 4 planes: dimensions 6 and 7 stay
    positions = torch.tensor([0, 1, 4, 9, 100])
    expected = x.clone()
    for head in range(2):
        for row, position in enumerate(positions.tolist()):
            for plane in range(3):
                angle = position * theta[head, plane].item()
                a, b = x[:, head, row, 2 * plane], x[:, head, row, 2 * plane + 1]
                expected[:, head, row, 2 * plane] = a * math.cos(angle) - b * math.sin(angle)
                expected[:, head, row, 2 * plane + 1] = a * math.sin(angle) + b * math.cos(angle)
    torch.testing.assert_close(rotate(x, positions, theta), expected, rtol=0, atol=1e-13)
    half = rotate(x.bfloat16(), positions, theta)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), expected, rtol=0.02, atol=0.02)


def test_rotate_refuses_more_planes_than_dimensions() -> None:
    with pytest.raises(ValueError, match="3 planes"):
        rotate(torch.zeros(1, 4), torch.arange(1), torch.zeros(3))


@settings(max_examples=25, deadline=None)
@given(shift=st.integers(0, 100_000), seed=st.integers(0, 2**31))
def test_logits_depend_on_distances_alone(shift: int, seed: int) -> None:
    torch.manual_seed(seed)
    query, key = torch.randn(2, 6, 8, dtype=torch.float64)
    theta, positions = frequencies(4), torch.arange(6)
    here = rotate(query, positions, theta) @ rotate(key, positions, theta).T
    there = rotate(query, positions + shift, theta) @ rotate(key, positions + shift, theta).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-9)


def test_table_follows_the_spec() -> None:
    spec = ModelSpec(
        n_layers=3,
        n_heads=2,
        width=32,
        rotary_dims=8,
        rope_base=100.0,
        frequencies_present=(1, 2, 3),
        frequencies_rotating=(1, 3),
        nope_from_layer=2,
    )
    table = RotaryTable.from_spec(spec)
    assert table.shape == (3, 2, 4)
    theta = frequencies(4, 100.0)
    assert table.theta[0, 1].tolist() == [theta[0].item(), 0.0, theta[2].item(), 0.0]
    assert not table.theta[2].any()
    assert table.present[1, 0].tolist() == [True, True, True, False]
    assert (table.logit_scale == 16**-0.5).all()


def test_frozen_and_removed_return_new_tables() -> None:
    table = RotaryTable.from_spec(SPEC)
    before = table.theta
    frozen = table.frozen([1, 4], layers=[1], heads=[0])
    removed = table.removed(range(1, 5))
    assert torch.equal(table.theta, before)
    assert table.present.all()
    assert frozen.theta[1, 0, 0] == 0
    assert frozen.theta[1, 0, 3] == 0
    changed = frozen.theta != before
    assert changed.sum() == 2
    assert not removed.present.any()
    table.theta.zero_()  # a copy
    assert torch.equal(table.theta, before)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"ids": [0]}, "frequency ID 0"),
        ({"ids": [5]}, "frequency ID 5"),
        ({"ids": [1], "layers": [2]}, "layer 2"),
        ({"ids": [1], "heads": [-1]}, "head -1"),
    ],
)
def test_unknown_selection_is_refused(selection: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RotaryTable.from_spec(SPEC).frozen(**selection)


def test_a_table_of_wrong_shapes_is_refused() -> None:
    with pytest.raises((ValueError, TypeError), match=r"layer x head x plane|logit_scale"):  # TypeError: checked shapes
        RotaryTable(torch.zeros(2, 1, 4), torch.ones(2, 1, 4, dtype=torch.bool), torch.ones(2, 2))


def test_finished_logit_is_the_sum_over_the_present_planes() -> None:
    torch.manual_seed(1)
    spec = ModelSpec(n_layers=1, n_heads=2, width=20, rotary_dims=8)  # 4 planes and 2 plain dimensions a head
    table = RotaryTable.from_spec(spec).removed([2], heads=[1])
    (rotation,) = table.rotations(0, 6, torch.float64, "cpu")
    query, key = torch.randn(2, 1, 2, 6, 10, dtype=torch.float64)
    logits = rotation.apply_query(query) @ rotation.apply_key(key).mT
    turned = [rotate(x, torch.arange(6), table.theta[0]) for x in (query, key)]
    by_dimension = torch.einsum("bhqd,bhkd->bhqkd", *turned) / math.sqrt(10)
    by_dimension[:, 1, :, :, 2:4] = 0
    torch.testing.assert_close(logits, by_dimension.sum(-1), rtol=0, atol=1e-13)


def test_rotations_start_anywhere() -> None:
    table = RotaryTable.from_spec(SPEC)
    whole = table.rotations(0, 12, torch.float64, "cpu")[0]
    tail = table.rotations(7, 12, torch.float64, "cpu")[0]
    assert torch.equal(whole.key[:, 7:], tail.key)
    assert torch.equal(whole.last().query, whole.query[:, -1:])
