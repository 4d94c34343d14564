"""Nodes of quadratures over one to three coordinates."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hylift.inference.expectation.joint import FloatArray
from hylift.numerics.quadrature import legendre_rule

SPACING = {1: 0.25, 2: 0.55, 3: 0.8}
"""Distance of nodes, in standard deviations, by number of coordinates."""
REACH = 7.0
"""Of nodes, in standard deviations."""
LEGENDRE = {1: 64, 2: 32, 3: 16}
"""Nodes between bounds, by number of coordinates."""


class Rule(NamedTuple):
    """Nodes of a quadrature over some coordinates."""

    nodes: FloatArray  # (node, coordinate)
    log_weights: FloatArray  # (node,)
    spacing: float = 0.0
    """Of a lattice."""

    @property
    def monomials(self) -> FloatArray:
        """(node, monomial): coordinates, then products of two of them."""
        square = self.nodes[:, :, None] * self.nodes[:, None, :]
        return np.concatenate([self.nodes, square.reshape(len(square), -1)], axis=1)


@lru_cache
def lattice_nodes(dim: int, spacing: float | None = None) -> Rule:
    """A lattice. Sums over a lattice of smooth functions that vanish far out converge
    exponentially."""
    spacing = spacing or SPACING[dim]
    count = int(REACH / spacing)
    line = np.linspace(-count * spacing, count * spacing, 2 * count + 1)
    nodes = product_grid(line, dim)
    nodes = nodes[(nodes**2).sum(axis=1) <= REACH**2]
    return Rule(nodes, np.full(len(nodes), dim * np.log(spacing)), spacing)


@lru_cache
def legendre_nodes(dim: int, count: int | None = None) -> Rule:
    """Gauss-Legendre nodes from -1 to 1 in each coordinate."""
    nodes, weights = legendre_rule(count or LEGENDRE[dim])
    return Rule(product_grid(nodes, dim), product_grid(np.log(weights), dim).sum(axis=1))


@lru_cache
def every_other(count: int) -> FloatArray:
    """(every other node,): factors of Gauss-Legendre weights that integrate polynomials without the
    nodes between."""
    nodes, weights = legendre_rule(count)
    basis = np.polynomial.legendre.legvander(nodes[::2], len(nodes[::2]) - 1)
    exact = np.zeros(basis.shape[1])
    exact[0] = 2.0
    return np.asarray(np.linalg.solve(basis.T, exact) / weights[::2])


def product_grid(line: FloatArray, dim: int) -> FloatArray:
    """(node, coordinate): all combinations of points of a line."""
    grid = np.meshgrid(*[line] * dim, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, dim) if dim else np.zeros((1, 0))
