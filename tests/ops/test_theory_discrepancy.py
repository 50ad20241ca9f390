"""Discrepancy by reasoning over offsets and letters, against every input of small alphabets; the bounds."""

import itertools
import math

import numpy as np
import pytest
import torch

from ops.tasks.letter import LetterTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.theory import constructions as build
from ops.theory import discrepancy as d

LENGTHS = range(2, 1_001)
ANGLES = (0.8, 1.0, 0.5, 2.4, 0.1, 0.0027, 2 * math.pi / 7)


@pytest.mark.parametrize("theta", ANGLES)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 21])
def test_index_against_the_logits_of_every_pointer(n, theta):
    task = NumberTaskSpec(target_window=1, pre_target_window=max(n - 1, 1), hops=(1,), n_letters=2)
    head = build.construct(task, theta, 1.0)
    ids = torch.full((n, n + 1), task.sequence_length)
    ids[:, -1] = torch.arange(1, n + 1)
    logits, own = head.placed_logits(ids)
    row = torch.cat((logits.diagonal(dim1=1, dim2=2), own[:, None]), 1)
    target = n - torch.arange(1, n + 1)
    others = row.scatter(1, target[:, None], -torch.inf)
    gaps = (row.gather(1, target[:, None])[:, 0] - others.amax(1)).numpy()
    found = d.index_discrepancy([n], theta)
    assert [found.maximum[0], found.mean[0], found.minimum[0]] == pytest.approx(
        [gaps.max(), gaps.mean(), gaps.min()], abs=1e-12
    )


@pytest.mark.parametrize("theta", [0.0027, 0.05, 0.3])
@pytest.mark.parametrize(("n", "n_letters"), [(1, 3), (2, 4), (3, 3), (3, 5), (5, 3)])
def test_retrieval_against_the_logits_of_every_input(n, n_letters, theta):
    """Pairs (left, asked letter 0) at each place: exactly one earlier left is the one asked for."""
    task = LetterTaskSpec(target_window=1, pre_target_window=max(n - 1, 1), hops=(1,), n_letters=n_letters, n_digits=1)
    head = build.construct(task, theta, 1.0)
    rows, targets = [], []
    for target in range(n):
        for lefts in itertools.product(range(1, n_letters), repeat=n):
            left = list(lefts)
            left.insert(target, 0)  # n + 1 lefts, the query's last
            rows.append([1 + n_letters + n_letters * letter for letter in left])
            targets.append(target)
    logits, own = head.placed_logits(torch.tensor(rows))
    row = torch.cat((logits.diagonal(dim1=1, dim2=2), own[:, None]), 1)
    place = torch.tensor(targets)[:, None]
    gaps = (row.gather(1, place)[:, 0] - row.scatter(1, place, -torch.inf).amax(1)).numpy()
    found = d.retrieval_discrepancy([n], theta, n_letters)
    assert [found.maximum[0], found.mean[0], found.minimum[0]] == pytest.approx(
        [gaps.max(), gaps.mean(), gaps.min()], abs=1e-12
    )


def test_the_mean_of_long_inputs_against_sampling():
    n, theta, n_letters, n_samples = 200, 0.0027, 8, 20_000
    rng = np.random.default_rng(0)
    target = rng.integers(1, n + 1, n_samples)
    letters = rng.integers(1, n_letters, (n_samples, n + 1))
    logits = np.cos(letters * 2 * math.pi / n_letters + np.arange(n + 1) * theta)
    logits[np.arange(n_samples), target] = -np.inf
    gaps = np.cos(target * theta) - logits.max(1)
    mean = d.retrieval_discrepancy([n], theta, n_letters).mean[0]
    assert abs(gaps.mean() - mean) < 5 * gaps.std() / math.sqrt(n_samples)


def test_the_printed_index_bound_fails_and_the_corrected_one_holds():
    found, printed = d.index_discrepancy([9], 0.8).maximum[0], d.index_printed_bound([9], 0.8)[0]
    assert (round(found, 3), round(printed, 3)) == (0.303, 0.244)
    for theta in (*ANGLES, *np.random.default_rng(1).uniform(0, math.pi, 40)):
        largest = d.index_discrepancy(LENGTHS, theta).maximum
        assert (largest <= d.index_corrected_bound(LENGTHS, theta) + 1e-12).all()
        assert (largest <= d.index_sharp_bound(LENGTHS, theta) + 1e-12).all()
        assert (d.index_sharp_bound(LENGTHS, theta) <= d.index_corrected_bound(LENGTHS, theta) + 1e-12).all()


@pytest.mark.parametrize("n", [2, 3, 7, 16, 101])
def test_some_angle_attains_the_sharp_bound(n):
    theta = 2 * math.pi / ((n + 1) // 2 + 1)
    assert d.index_discrepancy([n], theta).maximum[0] == pytest.approx(1 - math.cos(theta), abs=1e-12)
    assert d.index_sharp_bound([n], theta)[0] == pytest.approx(1 - math.cos(theta), abs=1e-12)


@pytest.mark.parametrize("theta", [0.0027, 0.0056, 0.001, 0.0004, 0.01, 0.1])
def test_the_printed_retrieval_bound_is_one_on_the_worst_input_only(theta):
    inside = d.in_range(LENGTHS, theta, 8)
    found, printed = d.retrieval_discrepancy(LENGTHS, theta, 8), d.retrieval_printed_bound(LENGTHS, theta, 8)
    assert inside.any()
    assert (found.minimum[inside] > 0).all()
    assert (found.minimum[inside] <= printed[inside]).all()
    assert (found.maximum[inside] > printed[inside]).all()


def test_with_n_counting_the_query_too_the_worst_input_exceeds_the_printed_bound_by_a_little():
    """n tokens have n - 1 keys before the query; the printed bound then needs n - 1 in place of n."""
    tokens = np.arange(3, 146)
    worst = d.retrieval_discrepancy((tokens - 1).tolist(), 0.0027, 8).minimum
    excess = worst - d.retrieval_printed_bound(tokens.tolist(), 0.0027, 8)
    assert 0 < excess.max() < 0.002
    assert (worst <= d.retrieval_printed_bound((tokens - 1).tolist(), 0.0027, 8)).all()


def test_wrong_arguments_are_refused():
    for wrong in ([], [0], [2, -1]):
        with pytest.raises(ValueError, match="lengths must be"):
            d.index_discrepancy(wrong, 0.8)
    with pytest.raises(ValueError, match="second letter"):
        d.retrieval_discrepancy([2], 0.1, 1)
