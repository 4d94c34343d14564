"""Expectations of functions under mixtures of products, by sums over grids and over draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components.family import FloatArray
from hylift.errors import UnsupportedError


@dataclass(frozen=True, slots=True, repr=False)
class Expectation:
    """The mean of a function, and how far to trust it."""

    value: float
    error: float
    """0 for sums over states; the change against a coarser Gauss rule, or a standard error."""
    method: str
    """'sum', 'quadrature' or 'sampling'."""
    num_points: int = field(default=0, compare=False)
    """Draws, where it is by sampling."""

    def __repr__(self) -> str:
        return f"Expectation({self.value:.6g}, error {self.error:.2g}, {self.method})"

    def __float__(self) -> float:
        return self.value


Rule = tuple[FloatArray, FloatArray]
"""Nodes and weights of one variable, (component, node)."""


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
        # States of probability 0 are skipped: the function may be infinite there.
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
    return Expectation(float(values.mean()), error, "sampling", len(values))


def by_states(function: Callable[..., Any], probs: FloatArray) -> Expectation:
    """The sum over the states of one variable."""
    is_discrete = np.ones(1, dtype=bool)
    used = np.flatnonzero(probs > 0)
    values = evaluate(function, [used.astype(np.float64)], is_discrete, len(used))
    return Expectation(float(probs[used] @ values), 0.0, "sum")


def is_truth(
    function: Callable[..., Any], draws: FloatArray, is_discrete: NDArray[np.bool_]
) -> bool:
    """True if the function says what is true of draws (draw, variable), and not a number."""
    return np.asarray(_called(function, list(draws.T), is_discrete)).dtype == np.bool_


def evaluate(
    function: Callable[..., Any],
    columns: list[FloatArray],
    is_discrete: NDArray[np.bool_],
    size: int,
) -> FloatArray:
    """The function at points given as one array per variable; states as integers."""
    values = np.asarray(_called(function, columns, is_discrete), dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise UnsupportedError(
            f"the function must return one number per point, an array of shape ({size},), "
            f"not of shape {values.shape}: it is given whole arrays, one per atom"
        )
    return np.broadcast_to(values, (size,))


def _called(
    function: Callable[..., Any], columns: list[FloatArray], is_discrete: NDArray[np.bool_]
) -> Any:
    return function(
        *(
            column.astype(np.int64) if discrete else column
            for column, discrete in zip(columns, is_discrete.tolist(), strict=True)
        )
    )
