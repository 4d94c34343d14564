"""Draws of one real between bounds, and mixtures with few components."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import integrate, stats

from hylift.inference.sampling.kernels.records import gather
from hylift.inference.sampling.state import GaussianSums
from hylift.numerics.kernels.random import draw_between


@njit
def draws_between(random, curve, slope, low, high, count):  # type: ignore[no-untyped-def]
    values = np.empty(count)
    for i in range(count):
        values[i] = draw_between(random, curve, slope, low, high)
    return values


@pytest.mark.parametrize(
    ("curve", "slope", "low", "high"),
    [
        (-0.5, 0.0, -1.0, 2.0),
        (-0.5, 0.0, -0.3, 0.4),
        (-0.5, 0.0, 3.0, 8.0),
        (-0.5, 0.0, -8.0, -3.0),
        (-0.5, 0.0, 3.0, 3.1),
        (-2.0, 400.0, 0.0, 1.0),
        (-1e-14, 1.0, 0.0, 2.0),
        (-0.5, 1.0, 0.0, np.inf),
        (-0.5, 1.0, -np.inf, -2.0),
        (-0.5, 1.0, -np.inf, np.inf),
        (0.0, 0.0, -1.0, 3.0),
        (0.0, 2.0, -1.0, 3.0),
        (0.0, -300.0, 0.0, 1.0),
        (0.0, -2.0, 1.0, np.inf),
        (0.0, 2.0, -np.inf, 1.0),
        (1.5, 0.0, -2.0, 1.0),
        (1.5, 0.5, -1.0, 1.5),
        (4.0, -50.0, 0.0, 3.0),
        (0.3, 2.0, 0.0, 3.0),
    ],
)
def test_draws_have_the_density_that_is_asked_for(
    curve: float, slope: float, low: float, high: float
) -> None:
    values = draws_between(np.full(1, 3, dtype=np.uint64), curve, slope, low, high, 4000)

    assert low <= values.min()
    assert values.max() <= high
    # By the probability integral transform; the seed is one of 100 with less than p = 0.01.
    start, end = max(low, values.min() - 12), min(high, values.max() + 12)
    grid = np.linspace(start, end, 200_001)
    logs = curve * grid**2 + slope * grid
    cdf = integrate.cumulative_simpson(np.exp(logs - logs.max()), x=grid, initial=0.0)
    assert stats.kstest(np.interp(values, grid, cdf / cdf[-1]), "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("curve", "slope", "low", "high"),
    [
        (0.0, 0.0, -np.inf, np.inf),
        (0.0, 1.0, 0.0, np.inf),
        (0.0, -1.0, -np.inf, 0.0),
        (1.0, -5.0, 0.0, np.inf),
    ],
)
def test_what_has_no_integral_is_not_a_number(
    curve: float, slope: float, low: float, high: float
) -> None:
    values = draws_between(np.zeros(1, dtype=np.uint64), curve, slope, low, high, 3)

    assert np.isnan(values).all()


def test_draws_far_from_the_mean_keep_their_digits() -> None:
    values = draws_between(np.zeros(1, dtype=np.uint64), -0.5, 0.0, 1e6, np.inf, 4000)

    beyond = (values - 1e6) * 1e6  # exponential
    assert beyond.mean() == pytest.approx(1.0, abs=0.05)  # 4,000 draws


def test_merged_mixtures_keep_their_mean_and_variance() -> None:
    rng = np.random.default_rng(5)
    mixtures, others = GaussianSums.empty(3, 8), GaussianSums.empty(3, 8)
    for some in (mixtures, others):
        some.num_components[:] = 8
        some.weight[:] = rng.random((3, 8)) + 0.1
        some.mean[:] = 3 * rng.normal(size=(3, 8))
        some.var[:] = rng.random((3, 8)) + 0.1
    weight = np.concatenate([mixtures.weight, others.weight], axis=1)
    mean = np.concatenate([mixtures.mean, others.mean], axis=1)
    var = np.concatenate([mixtures.var, others.var], axis=1)
    share = weight / weight.sum(axis=1, keepdims=True)
    first = (share * mean).sum(axis=1)
    second = (share * (var + mean**2)).sum(axis=1)

    gather(mixtures, others, 3)

    assert mixtures.num_components.tolist() == [3, 3, 3]
    share = mixtures.weight[:, :3] / weight.sum(axis=1, keepdims=True)
    left, spread = mixtures.mean[:, :3], mixtures.var[:, :3]
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose((share * left).sum(axis=1), first, rtol=1e-12)
    np.testing.assert_allclose((share * (spread + left**2)).sum(axis=1), second, rtol=1e-12)


def test_components_that_are_alike_are_merged_first() -> None:
    mixtures = GaussianSums.empty(1, 4)
    mixtures.num_components[:] = 4
    mixtures.weight[:] = 1.0
    mixtures.mean[:] = [5.0, 0.0, 5.01, 0.02]
    mixtures.var[:] = 0.1

    gather(mixtures, GaussianSums.empty(1, 0), 2)

    np.testing.assert_allclose(mixtures.mean[0, :2], [0.01, 5.005])
    np.testing.assert_allclose(mixtures.weight[0, :2], [2.0, 2.0])
