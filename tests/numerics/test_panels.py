"""Panels: edges stay in order and keep their ends."""

import numpy as np
import pytest

from hylift.numerics.quadrature import (
    at_distinct_floats,
    gauss_legendre_nodes,
    halved,
    legendre_coefficients,
    spaced_by_mass,
    towards_ends,
)


def test_panels_towards_the_ends_halve_there() -> None:
    edges = towards_ends(4, 2)

    assert edges.tolist() == [0.0, 0.0625, 0.125, 0.25, 0.5, 0.75, 0.875, 0.9375, 1.0]


def test_halved_panels_integrate_the_same() -> None:
    edges = np.array([[0.0, 1.0, 3.0], [-2.0, -1.0, 5.0]])

    totals = []
    for panels in (edges, halved(edges)):
        nodes, weights = gauss_legendre_nodes(panels, 8)
        totals.append((weights * nodes**5).sum(axis=1))

    assert halved(edges)[0].tolist() == [0.0, 0.5, 1.0, 2.0, 3.0]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_edges_follow_the_mass_between_fixed_ends() -> None:
    edges = np.linspace(0.0, 1.0, 11)[None]
    mass = np.zeros((1, 10))
    mass[0, 3] = 1.0

    found = spaced_by_mass(edges, mass, np.array([[0.0]]), np.array([[1.0]]))

    assert found[0, [0, -1]].tolist() == [0.0, 1.0]
    assert (np.diff(found) > 0).all()
    assert np.count_nonzero((found >= 0.3 - 1e-9) & (found <= 0.4 + 1e-9)) >= 5


def test_edges_that_coincide_move_to_the_next_floats() -> None:
    edges = np.array([[1.0, 1.0, 1.0 + 1e-9], [0.0, 0.0, 5e-324]])

    moved, is_full = at_distinct_floats(edges)

    assert is_full.tolist() == [False, True]
    assert moved[0, 1] == np.nextafter(1.0, 2.0)
    assert (np.diff(moved[0]) > 0).all()


def test_coefficients_are_those_of_the_polynomial_through_the_nodes() -> None:
    series = np.array([0.5, -1.0, 0.25, 2.0])
    nodes = np.polynomial.legendre.leggauss(4)[0]

    found = legendre_coefficients(np.polynomial.legendre.legval(nodes, series)[None])

    np.testing.assert_allclose(found[0], series, atol=1e-12)
