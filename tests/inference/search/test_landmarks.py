"""Narrow peaks of functions of reals, which lie between the nodes of a grid."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

import hylift as hl
from hylift.inference.search.landmarks import Landmarks
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

ONE = "x: real[0,100]\nB\n12 exp(0 - 1000*(x-37.123)^2)\n0.5 B * (x/100)"
TWO = "x: real[0,100]\ny: real[0,100]\nB\n0.5 B * (x/100)\n"
TWO += "20 exp(0 - 10*(x-37.123)^2 - 10*(y-12.3)^2)"
SENSORS = "s={0,...,2}\nx: real[0,100]\ny(s): real\n1 log(0.0001 + exp(0 - 200*(x - y(k))^2))"
READINGS = {"y(0)": 37.1, "y(1)": 37.12, "y(2)": 37.15}


def _sensors() -> hl.FactorGraph:
    return hl.ground(hl.parse(SENSORS), READINGS)


def _log_density(x: FloatArray) -> FloatArray:
    """Of one real with a narrow peak, the state summed out."""
    return 12 * np.exp(-1000 * (x - 37.123) ** 2) + np.logaddexp(0.0, 0.5 * x / 100)


def _moments(log_density: Callable[[FloatArray], FloatArray]) -> tuple[float, float, float]:
    """log Z, mean and deviation by sums over points between 0 and 100, many about the peak."""
    x = np.unique(np.concatenate([np.linspace(0, 100, 20_001), np.linspace(36, 38, 40_001)]))
    density = np.exp(log_density(x))
    total = integrate.simpson(density, x=x)
    mean = integrate.simpson(x * density, x=x) / total
    var = integrate.simpson((x - mean) ** 2 * density, x=x) / total
    return float(np.log(total)), float(mean), float(np.sqrt(var))


def test_exact_resolves_a_peak_that_is_narrower_than_its_first_grid() -> None:
    found = hl.infer(hl.ground(hl.parse(ONE)), hl.Exact())

    log_z, mean, std = _moments(_log_density)
    x = found.marginal("x")
    np.testing.assert_allclose(
        [found.log_partition.value, x.mean, x.std], [log_z, mean, std], rtol=1e-7
    )


def test_exact_resolves_a_peak_in_two_reals() -> None:
    found = hl.infer(hl.ground(hl.parse(TWO)), hl.Exact())

    # The peak by its own, smooth scale in both reals, beside the flat rest of the square.
    x, y = (np.linspace(c - 3, c + 3, 1201) for c in (37.123, 12.3))
    bell = 20 * np.exp(-10 * (x[:, None] - 37.123) ** 2 - 10 * (y - 12.3) ** 2)
    weight = 1 + np.exp(0.5 * np.linspace(0, 100, 100_001) / 100)
    rest = 100 * integrate.trapezoid(weight, dx=0.001)
    peak = np.expm1(bell) * (1 + np.exp(0.5 * x / 100))[:, None]
    expected = np.log(rest + integrate.trapezoid(integrate.trapezoid(peak, y), x))
    assert found.log_partition.value == pytest.approx(expected, abs=1e-6)


def test_exact_sees_where_precise_sensors_agree() -> None:
    found = hl.infer(_sensors(), hl.Exact())

    def log_density(x: FloatArray) -> FloatArray:
        return np.sum(
            [np.log(1e-4 + np.exp(-200 * (x - y) ** 2)) for y in READINGS.values()], axis=0
        )

    log_z, mean, std = _moments(log_density)
    x = found.marginal("x")
    np.testing.assert_allclose(
        [found.log_partition.value, x.mean, x.std], [log_z, mean, std], rtol=1e-6
    )


@pytest.mark.parametrize("method", [None, hl.EP(), hl.MaxWalkSAT(flips=1000)])
def test_the_most_probable_assignment_is_at_a_narrow_peak(method: object) -> None:
    found = hl.infer(_sensors(), method, tasks="map").map()

    assert found["x"] == pytest.approx(37.1233, abs=0.01)


def test_the_most_probable_assignment_is_at_a_peak_of_two_reals() -> None:
    found = hl.infer(hl.ground(hl.parse(TWO)), tasks="map").map()

    assert (found["x"], found["y"]) == pytest.approx((37.123, 12.3), abs=1e-2)


@pytest.mark.parametrize("source", [ONE, TWO])
def test_particles_that_miss_a_narrow_peak_are_not_trusted(source: str) -> None:
    found = hl.infer(hl.ground(hl.parse(source)), exact=False)

    assert found.trust.verdict == "doubtful"
    assert found.marginal("x").mean == pytest.approx(37.123, abs=1.0)


def test_a_smooth_function_has_no_landmarks_that_change_a_grid() -> None:
    graph = hl.ground(hl.parse("x: real[-3,3]\n1 log(1 + exp(x))\n-0.2 abs(x - 1)")).condition()
    edges = np.linspace(-3.0, 3.0, 3)[None]

    found = Landmarks.of(Kinds.of(graph)).resolved(edges, np.array([0]), 8)

    np.testing.assert_array_equal(found, edges)


def test_rows_get_as_many_panels_and_keep_their_edges() -> None:
    nan = np.nan
    landmarks = Landmarks(
        np.array([[3.0, 70.0, nan], [9.0, nan, nan]]),
        np.array([[0.01, 0.1, nan], [1e-9, nan, nan]]),
        True,
        False,
    )
    edges = np.array([[0.0, 1e-12, 5.0, 10.0], [0.0, 50.0, 90.0, 100.0], [-1.0, 0.0, 0.5, 1.0]])

    found = landmarks.resolved(edges, np.arange(3), 8)

    assert (np.diff(found) > 0).all()
    for row, own in enumerate(edges):
        assert np.isin(own, found[row]).all()
    assert np.abs(found[0] - 3.04).min() < 1e-9
    assert np.abs(found[1] - 70.4).min() < 1e-9


def test_unknown_variances_have_no_landmarks() -> None:
    source = "n={0,...,3}\nx(n): real\nv: real[0.01,50]\nnormal(x(i) | 0, v)\nnormal(x(i) | 2, 1)"
    graph = hl.ground(hl.parse(source)).condition()

    assert not len(Landmarks.of(Kinds.of(graph)).value)


SWITCHED = "Right\nx: real[-8, 8]\ny: real[-8, 8]\n{} Right * {}\n-0.1 (x^2 + y^2)"


@pytest.mark.parametrize(
    ("function", "is_blind"),
    [("(x > y; slope=3)", False), ("exp(0 - 1000000000*(x*y - 37.123)^2)", True)],
)
def test_a_function_that_is_constant_in_one_state_is_seen_in_the_others(
    function: str, is_blind: bool
) -> None:
    graph = hl.ground(hl.parse(SWITCHED.format(12, function))).condition()

    assert Landmarks.of(Kinds.of(graph)).is_blind == is_blind
