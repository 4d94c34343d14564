"""Quadrature: Gauss-Hermite rules, and Gauss-Legendre rules on the panels of an interval."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

from hylift.errors import ArgumentError

FloatArray = NDArray[np.float64]

Accuracy = Literal["search", "final", "check"]
"""For a search, for its last steps and result, and for a look at how far that is to be trusted."""

NODES: dict[Accuracy, tuple[int, ...]] = {
    "search": (1, 12, 5, 4, 3),
    "final": (1, 12, 12, 8, 5),
    "check": (1, 24, 24, 16, 9),
}
"""Nodes by number of real slots; the last entry is for that many and more."""


def nodes_per_slot(num_reals: int, accuracy: Accuracy = "search") -> int:
    """The number of Gauss nodes for each real slot of a scope with so many of them.

    The grid grows with the power of their number, so a search uses fewer nodes where there are
    several.
    """
    nodes = NODES[accuracy]
    return nodes[min(num_reals, len(nodes) - 1)]


@lru_cache
def hermite_rule(num_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (node,) of the Gauss rule for the standard normal; read-only."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    weights = weights / weights.sum()
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache
def legendre_rule(num_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (node,) of the Gauss rule from -1 to 1; read-only."""
    nodes, weights = legendre.leggauss(num_nodes)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def gauss_legendre_nodes(edges: ArrayLike, degree: int) -> tuple[FloatArray, FloatArray]:
    """Quadrature nodes and weights on panels with these edges (*batch, panel + 1).

    Both have shape ``(*batch, panel * degree)``, `degree` for each panel.
    """
    edges = checked_edges(edges)
    if degree < 1:
        raise ArgumentError(f"degree must be at least 1, but is {degree}")
    nodes, weights = legendre_rule(degree)
    half = 0.5 * np.diff(edges)[..., None]
    middle = 0.5 * (edges[..., 1:] + edges[..., :-1])[..., None]
    shape = (*edges.shape[:-1], (edges.shape[-1] - 1) * degree)
    return (middle + half * nodes).reshape(shape), (half * weights).reshape(shape)


def checked_edges(edges: ArrayLike) -> FloatArray:
    """Edges of panels (*batch, panel + 1) as an array; raises unless they increase."""
    edges = np.asarray(edges, dtype=np.float64)
    if edges.ndim == 0 or edges.shape[-1] < 2:
        raise ArgumentError(
            f"edges must have shape (*batch, panel + 1), but have shape {edges.shape}"
        )
    if not (np.diff(edges) > 0).all():
        raise ArgumentError("edges must increase along the last axis")
    return edges


def legendre_coefficients(values: FloatArray) -> FloatArray:
    """(..., degree): Legendre series of the polynomials with these values (..., node) at nodes."""
    return np.asarray(values @ _to_series(values.shape[-1]))


@lru_cache
def _to_series(degree: int) -> FloatArray:
    """(node, degree): the Legendre series of polynomials that are 1 at one node, 0 at the others.

    c_d = (d + 1/2) ∫ P_d f, and the rule is exact for the polynomial through the nodes.
    """
    nodes, weights = legendre_rule(degree)
    basis = legendre.legvander(nodes, degree - 1) * (np.arange(degree) + 0.5)
    return np.asarray(weights[:, None] * basis)


def halved(edges: FloatArray) -> FloatArray:
    """(row, 2 panel + 1): every panel cut in two."""
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    finer = np.empty((len(edges), edges.shape[1] + middle.shape[1]))
    finer[:, ::2], finer[:, 1::2] = edges, middle
    return finer


def towards_ends(num_panels: int, levels: int) -> FloatArray:
    """Edges from 0 to 1: equal panels, the first and last of them halved towards the ends."""
    inner = np.linspace(0.0, 1.0, num_panels + 1)
    towards = inner[1] * 0.5 ** np.arange(levels, 0, -1)
    return np.concatenate([[0.0], towards, inner[1:-1], 1.0 - towards[::-1], [1.0]])


def spaced_by_mass(
    edges: FloatArray, mass: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Edges from low to high (row, 1), spaced half by length and half by mass (row, panel)."""
    knots = np.concatenate([low, np.clip(edges, low, high), high], axis=1)
    found = np.cumsum(mass, axis=1)
    none = np.zeros_like(low)
    along = (knots - low) / (high - low)
    height = 0.5 * along + 0.5 * np.concatenate([none, none, found, none + 1.0], axis=1)
    height[:, -1] = 1.0
    share = np.linspace(0.0, 1.0, edges.shape[1])
    piece = (height[:, None, 1:-1] <= share[:, None]).sum(axis=2)
    row = np.arange(len(edges))[:, None]
    begin, rise = height[row, piece], height[row, piece + 1] - height[row, piece]
    part = (share - begin) / np.where(rise > 0, rise, 1.0)
    return np.asarray(knots[row, piece] + part * (knots[row, piece + 1] - knots[row, piece]))


def at_distinct_floats(edges: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Edges (row, panel + 1) with those that coincide moved to the next floats, and the rows
    whose intervals have too few floats for that."""
    place, nth = _places(edges), np.arange(edges.shape[1])
    moved = np.maximum.accumulate(place - nth, axis=1) + nth
    moved = np.minimum(moved, place[:, -1:] - nth[::-1])
    return _at_places(moved), place[:, -1] - place[:, 0] < nth[-1]


def _places(numbers: FloatArray) -> NDArray[np.int64]:
    """Signed number of floats between 0 and each number."""
    size = np.abs(numbers).view(np.int64)  # the bits of positive floats are in their order
    return np.where(numbers < 0, -size, size)


def _at_places(places: NDArray[np.int64]) -> FloatArray:
    return np.copysign(np.abs(places).view(np.float64), places)
