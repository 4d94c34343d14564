"""Exact inference over reals with a bound on one side only."""

import numpy as np
import pytest
from scipy import integrate, stats

from hylift.errors import IntractableError, UnsupportedError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.potentials import ConditionalQuadratic

DECAY = ConditionalQuadratic.shared([[0.0]], [-1.0])
POSITIVE, NEGATIVE = interval(0, np.inf), interval(-np.inf, 0)


@pytest.mark.parametrize("mean", [0.0, 3.0, -4.0, -30.0, -1000.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_half_bounded_gaussian_has_its_closed_form(mean: float, side: float) -> None:
    bell = ConditionalQuadratic.gaussian([side * mean], [[4.0]])
    domain = POSITIVE if side > 0 else NEGATIVE

    posterior = infer(FactorGraph.build({"x": domain}, [(bell, ["x"])]), Exact())

    # φ(z) / Φ(z) at z standard deviations above the bound: the mean is μ + σ times it.
    z = mean / 2
    hazard = np.exp(stats.norm.logpdf(z) - stats.norm.logcdf(z))
    assert posterior.log_partition.kind == "exact"
    assert posterior.log_partition.error <= 1e-8
    assert posterior.log_partition.value == pytest.approx(stats.norm.logcdf(z), rel=1e-12, abs=1e-9)
    assert posterior.marginal("x").mean == pytest.approx(side * (mean + 2 * hazard), abs=1e-7)


def test_half_bounded_reals_beside_free_ones_and_states_agree_with_scipy() -> None:
    graph = FactorGraph.build(
        {"on": boolean, "x": NEGATIVE, "y": interval(2, np.inf), "z": real},
        [
            (ConditionalQuadratic.gaussian([1, 0], [[1.0, 0.5], [0.5, 2.0]]), ["x", "y"]),
            (ConditionalQuadratic.linear_gaussian([1.0], 0.5).times([0.4, 1.0]), ["on", "z", "y"]),
        ],
    )

    posterior = infer(graph, Exact())

    pair = stats.multivariate_normal([1, 0], [[1.0, 0.5], [0.5, 2.0]])
    inside, _ = integrate.dblquad(
        lambda y, x: pair.pdf([x, y]), -12, 0, 2, 14, epsabs=1e-13, epsrel=1e-11
    )
    mean, _ = integrate.dblquad(
        lambda y, x: y * pair.pdf([x, y]), -12, 0, 2, 14, epsabs=1e-13, epsrel=1e-11
    )
    # ∫ N(z; y, ½)^0.4 dz does not depend on y.
    power = np.log(2 * np.pi * 0.5) * 0.3 - 0.5 * np.log(0.4)
    expected = np.log(inside) + np.logaddexp(power, 0.0)
    assert posterior.log_partition.kind == "exact"
    assert posterior.log_partition.value == pytest.approx(expected, abs=1e-9)
    assert posterior.marginal("y").mean == pytest.approx(mean / inside, abs=1e-8)
    assert posterior.marginal("z").mean == pytest.approx(mean / inside, abs=1e-8)


def test_a_density_that_decays_on_a_half_line_is_integrated_as_far_as_it_reaches() -> None:
    posterior = infer(FactorGraph.build({"x": POSITIVE}, [(DECAY, ["x"])]), Exact())

    found = posterior.marginal("x")
    assert posterior.log_partition.kind == "estimate"
    assert posterior.log_partition.value == pytest.approx(0.0, abs=1e-9)
    assert [found.mean, found.var] == pytest.approx([1.0, 1.0], abs=1e-8)
    assert found.quantile(0.5) == pytest.approx(np.log(2), abs=1e-8)


def test_a_density_that_rises_without_end_is_refused_by_name() -> None:
    rise = ConditionalQuadratic.shared([[0.0]], [1.0])
    graph = FactorGraph.build({"x": POSITIVE}, [(rise, ["x"])])

    with pytest.raises(UnsupportedError, match="'x': its density does not fall off where it has"):
        infer(graph, Exact())


def square(precision: float, mean: float, constant: float) -> tuple[float, float, float]:
    return -0.5 * precision, precision * mean, constant - 0.5 * precision * mean**2


def switched(*states: tuple[float, float, float]) -> ConditionalQuadratic:
    a, b, c = np.array(states).T
    return ConditionalQuadratic(a[None, :, None, None], b[None, :, None], c[None])


@pytest.mark.parametrize(
    ("log_weight", "mean"), [(-300.0, -20.0), (-2000.0, -20.0), (-2000.0, -3.0)]
)
def test_a_state_that_only_the_bound_makes_possible_is_not_missed(
    log_weight: float, mean: float
) -> None:
    """Without its bound x is at 100, with e^-300 or less elsewhere: all that the bound leaves."""
    factor = switched(square(100.0, 100.0, 0.0), square(1.0, mean, log_weight))
    graph = FactorGraph.build({"d": boolean, "x": interval(-np.inf, 0.0)}, [(factor, ["d", "x"])])

    found = infer(graph, Exact())

    expected = log_weight + 0.5 * np.log(2 * np.pi) + stats.norm.logcdf(-mean)
    assert found.log_partition.value == pytest.approx(expected, abs=1e-9)
    assert abs(found.log_partition.value - expected) <= found.log_partition.error
    assert found.marginal("d").probs[1] == pytest.approx(1.0, abs=1e-12)
    beyond = np.exp(-0.5 * mean**2) / np.sqrt(2 * np.pi) / np.exp(stats.norm.logcdf(-mean))
    assert found.marginal("x").mean == pytest.approx(mean - beyond, abs=1e-7)


def test_a_level_far_from_its_bound_is_refused_where_it_cannot_be_resolved() -> None:
    """Thirty precise sensors read -1 of a level that is positive: they are all broken, and the
    level is where three others see it, which has e^-440 without the bound."""
    variables = {"x": interval(0.0, np.inf)}
    factors = [(ConditionalQuadratic.shared([[-0.005]], [0.2], -2.0), ["x"])]
    readings = [(-1.0, 0.01)] * 30 + [(30.0, 1.0), (30.5, 1.0), (29.0, 1.0)]
    for number, (reading, std) in enumerate(readings):
        variables[f"d{number}"] = boolean
        good = square(std**-2, reading, -np.log(std))
        broken = square(1e-4, reading, -np.log(100.0) - 6.9)
        factors.append((switched(good, broken), [f"d{number}", "x"]))
    graph = FactorGraph.build(variables, factors)

    with pytest.raises(IntractableError, match="would need too many nodes"):
        infer(graph, Exact())
