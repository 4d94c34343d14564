"""Logarithms, the gamma family and Gauss rules, beside SciPy, exact moments and 60 digits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from hylift.numerics.kernels.gauss_beta import gauss_beta
from hylift.numerics.kernels.special import (
    digamma,
    log_beta,
    take_exponentials,
    take_logs,
    trigamma,
)
from hylift.numerics.quadrature import hermite_rule

DIGAMMA_ROOT = 1.4616321449683623
SHAPES = [0.5, 0.75, 1.0, 1.5, 2.0, 7.25, 50.0, 1e3, 1e6]
"""Of Beta densities, each exact in binary."""


def over(function: Callable[[float], float], points: np.ndarray) -> np.ndarray:
    return np.array([function(point) for point in points])


def exact_log_beta(a: float, b: float) -> float:
    """By Stirling's series with 60 digits, from 100 on."""
    with localcontext() as context:
        context.prec = 60
        x, y = Decimal(a), Decimal(b)
        return float(_log_gamma(x) + _log_gamma(y) - _log_gamma(x + y))


def _log_gamma(x: Decimal) -> Decimal:
    """Without ½ log 2π, which stands in all three terms: once is left of it."""
    below = Decimal(1)
    while x < 100:
        below *= x
        x += 1
    series = sum(
        Decimal(number.numerator)
        / Decimal(number.denominator)
        / (2 * k * (2 * k - 1) * x ** (2 * k - 1))
        for k, number in enumerate(_bernoulli_numbers(12), start=1)
    )
    half_log_two_pi = Decimal("0.918938533204672741780329736405617639861397473637783412817152")
    return (x - Decimal("0.5")) * x.ln() - x + half_log_two_pi + series - below.ln()


def _bernoulli_numbers(count: int) -> list[Fraction]:
    """B_2, B_4, …"""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        choose, total = 1, Fraction(0)
        for k, number in enumerate(numbers):
            total += choose * number
            choose = choose * (n + 1 - k) // (k + 1)
        numbers.append(-total / (n + 1))
    return numbers[2::2]


def beta_rule(alpha: float, beta: float, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.empty(num_nodes), np.empty(num_nodes)
    gauss_beta(alpha, beta, nodes, weights)
    return nodes, weights


def test_digamma_and_trigamma_are_scipys() -> None:
    points = np.concatenate([np.geomspace(1e-3, 1e8, 3000), np.linspace(0.9, 11.0, 1000)])

    np.testing.assert_allclose(over(digamma, points), special.digamma(points), rtol=1e-13)
    np.testing.assert_allclose(over(trigamma, points), special.polygamma(1, points), rtol=1e-13)


def test_digamma_keeps_its_digits_next_to_its_zero() -> None:
    points = np.append(DIGAMMA_ROOT + np.geomspace(1e-14, 0.1, 200), np.nextafter(DIGAMMA_ROOT, 0))

    actual = over(digamma, points)

    np.testing.assert_allclose(actual, special.digamma(points), rtol=1e-13)


def test_trigamma_is_the_derivative_of_digamma() -> None:
    points = np.geomspace(0.01, 1e3, 50)
    step = 1e-5 * points

    slope = (over(digamma, points + step) - over(digamma, points - step)) / (2 * step)

    np.testing.assert_allclose(over(trigamma, points), slope, rtol=1e-8)


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 9.75, 10.0, 123.5, 1e6, 1e8])
@pytest.mark.parametrize("b", [1e-3, 0.7, 1.0, 2.5, 10.5, 5e3, 1e6, 3e8])
def test_log_beta_loses_no_digits_where_logarithms_of_gamma_cancel(a: float, b: float) -> None:
    expected = exact_log_beta(a, b)

    assert log_beta(a, b) == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert log_beta(b, a) == log_beta(a, b)


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 5, 12, 40])
def test_gauss_beta_is_exact_for_moments_up_to_twice_its_nodes(num_nodes: int) -> None:
    for alpha in SHAPES:
        for beta in SHAPES:
            nodes, weights = beta_rule(alpha, beta, num_nodes)
            degree = np.arange(1, 2 * num_nodes)
            expected = np.cumprod((alpha + degree - 1) / (alpha + beta + degree - 1))

            actual = (weights * nodes ** degree[:, None]).sum(axis=1)

            kept = expected > 1e-290
            np.testing.assert_allclose(actual[kept], expected[kept], rtol=1e-12)
            assert weights.sum() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize(("alpha", "beta"), [(1e6, 1e6), (1e6, 3.0), (2.0, 1e5), (0.5, 0.5)])
def test_gauss_beta_carries_the_variance_of_narrow_densities(alpha: float, beta: float) -> None:
    nodes, weights = beta_rule(alpha, beta, 12)
    total = alpha + beta

    variance = (weights * (nodes - alpha / total) ** 2).sum()

    assert variance == pytest.approx(alpha * beta / total**2 / (total + 1), rel=1e-9)


@pytest.mark.parametrize("num_nodes", [1, 2, 12, 40])
def test_nodes_of_a_beta_increase_inside_the_interval(num_nodes: int) -> None:
    for alpha in [1e-3, *SHAPES, 1e9]:
        for beta in [1e-3, *SHAPES, 1e9]:
            nodes, weights = beta_rule(alpha, beta, num_nodes)

            assert (np.diff(nodes) > 0).all()
            assert nodes[0] > 0
            assert nodes[-1] < 1
            assert (weights > 0).all()


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (1.0, 1.0), (0.7, 5.0), (30.0, 12.5)])
def test_gauss_beta_is_scipys_rule(alpha: float, beta: float) -> None:
    expected, expected_weights = special.roots_jacobi(12, beta - 1, alpha - 1)

    nodes, weights = beta_rule(alpha, beta, 12)

    np.testing.assert_allclose(nodes, (1 + expected) / 2, rtol=1e-11)
    np.testing.assert_allclose(weights, expected_weights / expected_weights.sum(), rtol=1e-10)


def test_hermite_rule_is_exact_for_moments_of_the_normal_and_kept() -> None:
    nodes, weights = hermite_rule(6)

    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    for degree in range(0, 12, 2):
        moment = special.factorial2(degree - 1) if degree else 1.0
        assert (weights * nodes**degree).sum() == pytest.approx(moment, rel=1e-12)
    assert hermite_rule(6)[0] is nodes
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 0.0


def test_logarithms_of_many_numbers_are_exact_to_rounding_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [
            np.exp(rng.uniform(-700.0, 700.0, 5000)),
            1.0 + rng.uniform(-1.0, 1.0, 5000) * 10.0 ** rng.uniform(-15.0, -0.5, 5000),
            [1e-307, 1.7e308, 1.0, np.sqrt(0.5), np.nextafter(np.sqrt(0.5), 0.0), np.sqrt(2.0)],
        ]
    )
    found = points.copy()

    take_logs(found, len(found))

    np.testing.assert_allclose(found, np.log(points), rtol=5e-16, atol=0.0)
    for count in range(9):  # whole vectors of the processor, and what is left beside them
        some = points[:9].copy()
        take_logs(some, count)
        np.testing.assert_array_equal(some, [*found[:count], *points[count:9]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_logarithm_of_what_is_no_finite_number_is_none(value: float) -> None:
    points = np.array([1.0, value, 2.0, value, 4.0])

    take_logs(points, len(points))

    np.testing.assert_allclose(points, [0.0, np.nan, np.log(2.0), np.nan, np.log(4.0)])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 1000])
def test_exponentials_below_a_top_are_right_to_rounding(count):
    values = np.sort(np.random.default_rng(0).uniform(-149.0, 0.0, count)) + 7.0
    expected = np.exp(values - 7.0)

    total = take_exponentials(values, 7.0)

    np.testing.assert_allclose(values, expected, rtol=4e-16)
    assert total == pytest.approx(expected.sum(), rel=1e-14)


@pytest.mark.parametrize("count", [3, 30])
def test_exponentials_of_what_is_improbable_are_zero(count):
    values = np.tile([0.0, -151.0, -np.inf], count // 3)

    total = take_exponentials(values, 0.0)

    assert values.tolist() == [1.0, 0.0, 0.0] * (count // 3)
    assert total == count // 3
