"""Scales along which nodes are placed."""

import numpy as np
import pytest

from hylift.inference.exact.nodes.placement import Scale, density_panels
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior import PiecewiseDensity

SCALE = Scale(
    np.array([0.0, 2.0, -1.0]),
    np.array([0.0, 0.5, 3.0]),
    np.array([0.0, 1.0, -2.0]),
    np.array([1.0, 2.0, 0.3]),
    np.array([0.0, 0.0, 0.2]),
)


def test_a_scale_and_its_inverse_undo_each_other() -> None:
    t = np.tile(np.linspace(-1, 1, 9), (3, 1))

    assert SCALE.place(SCALE.value(t)) == pytest.approx(t, abs=1e-13)


def test_the_slope_of_a_scale_is_its_derivative() -> None:
    t, step = np.tile(np.linspace(-0.9, 0.9, 7), (3, 1)), 1e-6

    difference = (SCALE.value(t + step) - SCALE.value(t - step)) / (2 * step)
    assert SCALE.slope(t) == pytest.approx(difference, rel=1e-8)


def test_densities_along_a_scale_are_densities_of_the_real() -> None:
    """Of a logarithm that is normal, on 40 nodes from -7 to 7 standard deviations."""
    scale = Scale(*(np.array([value]) for value in (0.0, 1e-9, -np.log(0.5e-9), 7.0, 0.2)))
    edges = np.array([[-1.0, 1.0]])
    t, _ = gauss_legendre_nodes(edges, 40)
    x = scale.value(t)
    log_density = -0.5 * np.log(x) ** 2 - np.log(x) + np.log(scale.slope(t))

    found = PiecewiseDensity.from_gauss_legendre(
        *density_panels(scale, edges, log_density[:, None])
    )

    assert found[0].quantile(0.5) == pytest.approx(1.0, abs=1e-8)
    assert found[0].mean == pytest.approx(np.exp(0.5), rel=1e-8)
    assert found[0].pdf(2.0) == pytest.approx(
        np.exp(-0.5 * np.log(2.0) ** 2) / (2.0 * np.sqrt(2 * np.pi)), rel=1e-8
    )
