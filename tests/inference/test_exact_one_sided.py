"""Exact inference over reals with a bound on one side only."""

import numpy as np
import pytest
from scipy import integrate, stats

from hylift.errors import UnsupportedError
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
