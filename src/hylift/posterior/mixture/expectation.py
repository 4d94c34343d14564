"""Expectations of functions of a few variables under a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.posterior.distributions.base import FloatArray

NODES = 16
FEWER_NODES = 11
MAX_POINTS = 1_000_000
DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class Expectation:
    """The mean of a function, and how far to trust it."""

    value: float
    error: float
    """0 for sums over states; the change against a coarser Gauss rule, or a standard error."""
    method: str
    """'sum', 'quadrature' or 'sampling'."""

    def __float__(self) -> float:
        return self.value


Rule = tuple[FloatArray, FloatArray]
"""Nodes and weights of one variable, (component, node)."""


def num_points(sizes: list[int]) -> float:
    """Points of a grid, as a float since it may be huge."""
    return float(np.prod(np.array(sizes, dtype=np.float64)))


def by_grid(
    function: Callable[..., Any],
    weights: FloatArray,
    rules: list[Rule],
    is_discrete: NDArray[np.bool_],
) -> float:
    """Σ_k w_k times the sum over the product grid of each component's nodes."""
    total = 0.0
    for component in np.flatnonzero(weights > 0).tolist():
        axes = [nodes[component] for nodes, _ in rules]
        grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
        shares = np.ones(1)
        for _, share in rules:
            shares = np.multiply.outer(shares, share[component]).ravel()
        # A state that a component rules out is not asked about: the function may be infinite.
        used = shares > 0
        values = evaluate(function, [axis[used] for axis in grid], is_discrete, int(used.sum()))
        total += float(weights[component] * (shares[used] @ values))
    return total


def by_draws(
    function: Callable[..., Any], draws: FloatArray, is_discrete: NDArray[np.bool_]
) -> Expectation:
    """The mean over draws (draw, variable)."""
    values = evaluate(function, list(draws.T), is_discrete, len(draws))
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Expectation(float(values.mean()), error, "sampling")


def evaluate(
    function: Callable[..., Any],
    columns: list[FloatArray],
    is_discrete: NDArray[np.bool_],
    size: int,
) -> FloatArray:
    """The function at points given as one array per variable; states as integers."""
    arguments = [
        column.astype(np.int64) if discrete else column
        for column, discrete in zip(columns, is_discrete.tolist(), strict=True)
    ]
    values = np.asarray(function(*arguments), dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise UnsupportedError(
            f"the function must return one number per point, an array of shape ({size},), "
            f"not of shape {values.shape}: it is given whole arrays, one per atom"
        )
    return np.broadcast_to(values, (size,))
