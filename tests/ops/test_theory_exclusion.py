"""The exclusion bound in closed form against all permutations, and the theorem."""

import pytest
import torch

from ops.theory.exclusion import bound_by_enumeration, exclusion, random_orders, sampled_bound


def logits(*shape: int, seed: int = 0) -> torch.Tensor:
    return 3 * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("m", range(2, 8))
def test_the_closed_form_equals_the_sum_over_all_permutations(m):
    drawn = logits(20, 2, m, m, seed=m)
    found = exclusion(drawn)
    assert torch.allclose(found.bound, bound_by_enumeration(drawn), rtol=1e-12, atol=0)
    assert torch.allclose(found.variance, drawn.diagonal(dim1=-2, dim2=-1).var(-1, correction=0))
    assert bool((found.variance <= found.bound).all())


def test_equality_at_the_midpoint_and_zero_for_a_flat_head():
    own = logits(10, 6)
    middle = (own[:, :, None] + own[:, None, :]) / 2
    found = exclusion(middle)
    assert torch.allclose(found.variance, found.bound)
    assert exclusion(torch.ones(4, 4)).bound == 0


def test_sampling_agrees_within_its_error():
    drawn = logits(30, 2, 16, 16)
    orders = random_orders(16, 2_000, torch.Generator().manual_seed(1))
    assert torch.equal(orders.sort(-1).values, torch.arange(16).expand_as(orders))
    sampled = sampled_bound(drawn, orders)
    assert bool(((sampled.bound - exclusion(drawn).bound.mean(0)).abs() < 5 * sampled.error).all())


def test_wrong_shapes_are_refused():
    for shape in ((3, 4), (1, 1)):
        with pytest.raises(ValueError, match="place × content"):
            exclusion(torch.zeros(shape))
    with pytest.raises(ValueError, match="two permutations"):
        sampled_bound(torch.zeros(1, 3, 3), torch.arange(3)[None])
