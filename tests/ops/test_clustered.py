"""The interval covers what it says, also where answers behind one prefix are alike; its quantiles are Student's."""

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from ops.statistics.clustered import clustered_interval, student_quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 15, 16, 63, 200])
def test_quantiles_are_students(degrees):
    for probability in (0.51, 0.9, 0.975, 0.9995):
        assert student_quantile(probability, degrees) == pytest.approx(student.ppf(probability, degrees), rel=1e-9)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("alike", [0.0, 0.02, 0.05, 0.2])
def test_coverage_is_about_95_percent(share, alike):
    """Beta-binomial clusters with intraclass correlation `alike`: 16 clusters of 64 answers, 400 times."""
    rng = np.random.default_rng(7)
    trials, clusters, size = 400, 16, 64
    if alike:
        strength = 1 / alike - 1
        rates = rng.beta(share * strength, (1 - share) * strength, (trials, clusters))
    else:
        rates = np.full((trials, clusters), share)
    right = torch.from_numpy(rng.binomial(size, rates))
    n = torch.full((clusters,), size)
    found = [clustered_interval(row, n) for row in right]
    covered = np.mean([low <= share <= high for _, low, high in found])
    assert covered >= (0.8 if alike == 0.2 and share in (0.03, 0.98) else 0.92)  # the docstring states the exception
    naive = np.mean([abs(p - share) <= 1.96 * np.sqrt(max(p * (1 - p), 1e-9) / (clusters * size)) for p, _, _ in found])
    if alike == 0.2:
        assert naive < 0.6  # what ignoring the clusters would give


def test_no_interval_has_width_0():
    for right in (0, 20):
        share, low, high = clustered_interval(torch.full((4,), right), torch.full((4,), 20))
        assert share == right / 20
        assert high - low > 0.02
        assert 0 <= low <= share <= high <= 1


def test_one_cluster_bounds_nothing():
    assert clustered_interval(torch.tensor([3]), torch.tensor([4])) == (0.75, 0.0, 1.0)


def test_clusters_that_differ_widen_the_interval():
    n = torch.full((4,), 100)
    _, low, high = clustered_interval(torch.tensor([50, 50, 50, 50]), n)
    _, wide_low, wide_high = clustered_interval(torch.tensor([20, 80, 35, 65]), n)
    assert wide_low < low < high < wide_high


@pytest.mark.parametrize(("right", "n"), [([], []), ([3, 6], [5, 5]), ([0, 0], [0, 5]), ([1, 2, 3], [5, 5])])
def test_counts_that_do_not_fit_are_refused(right, n):
    with pytest.raises(ValueError, match=r"one count a cluster|between 0 and n"):
        clustered_interval(torch.tensor(right), torch.tensor(n))
