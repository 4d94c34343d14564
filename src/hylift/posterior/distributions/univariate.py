"""Roots, maxima and integrals of many functions of one variable at once."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hylift.components.family import FloatArray, IntArray

MAX_STEPS = 200
MAX_LEVELS = 60  # how often an interval is halved at most
TOLERANCE = 1e-10  # of the estimated error, in each interval
EPS = float(np.finfo(np.float64).eps)
SLACK = 0.3
"""Largest log ratio of the best sampled maximum to another that is refined as well."""

NODES, WEIGHTS = legendre.leggauss(15)
# Σ w_i P_14(x_i) f_i is 0 for polynomials up to degree 13. The factor gives it the size of the
# difference between the rules of 7 and 15 nodes in QUADPACK, from which that estimates its error.
ERROR_WEIGHTS = 6.6 * WEIGHTS * legendre.legval(NODES, [0.0] * 14 + [1.0])

Evaluate = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""(x, which) -> (residual, Newton step): of function which[i] at x[i]. The residual is negative
left of the root, and exactly 0 where x is the root up to rounding."""


def find_roots(
    evaluate: Evaluate, low: FloatArray, high: FloatArray, start: FloatArray
) -> FloatArray:
    """The root of each function in [low, high] by Newton steps, by bisection where they fail.

    A Newton step fails if it leaves the bracket, or is not below half of the last step. With no
    root inside, the result is the end nearest to it.
    """
    roots = np.clip(start, low, high)
    which = np.arange(len(roots))
    x = roots.copy()
    last_step = high - low
    for _ in range(MAX_STEPS):
        if not which.size:
            break
        residual, newton = evaluate(x, which)
        low = np.where(residual < 0, x, low)
        high = np.where(residual > 0, x, high)
        target = x + newton
        fails = ~((target >= low) & (target <= high) & (np.abs(newton) <= 0.5 * last_step))
        following = np.where(fails, low + 0.5 * (high - low), target)
        following = np.where(residual == 0, x, following)
        roots[which] = following

        tolerance = 4.0 * EPS * np.maximum(np.abs(low), np.abs(high))
        unfinished = (residual != 0) & (high - low > tolerance)
        unfinished &= fails | (np.abs(newton) > 4.0 * EPS * np.abs(x))
        which = which[unfinished]
        last_step = np.abs(following - x)[unfinished]
        x, low, high = following[unfinished], low[unfinished], high[unfinished]
    return roots


def find_modes(
    grid: FloatArray,
    log_heights: FloatArray,
    derivatives: Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray, FloatArray]],
) -> FloatArray:
    """(row,): the maximiser of each density, from its logs at a sorted grid (row, point).

    Newton's method refines every local maximum of the grid that is near the best one.
    derivatives: (x, row) -> log density, its slope and its second derivative.
    """
    rows = np.arange(len(grid))
    top = log_heights.max(axis=1)
    padded = np.pad(log_heights, ((0, 0), (1, 1)), constant_values=-np.inf)
    is_local = (log_heights >= padded[:, :-2]) & (log_heights >= padded[:, 2:])
    row, place = np.nonzero(is_local & (log_heights >= top[:, None] - SLACK))
    start = grid[row, place]
    low = grid[row, np.maximum(place - 1, 0)]
    high = grid[row, np.minimum(place + 1, grid.shape[1] - 1)]

    def evaluate(x: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        _, slope, bend = derivatives(x, row[which])
        concave = np.where(bend < 0, bend, np.nan)
        step = -slope / concave
        precise = np.abs(step) <= 1e-13 / np.sqrt(-concave)
        return np.where(precise, 0.0, -slope), step

    with np.errstate(all="ignore"):
        refined = find_roots(evaluate, low, high, start)
        heights = derivatives(refined, row)[0]
    # The top is flat: rounding alone may put a refined point below its start.
    is_better = heights >= log_heights[row, place] - 1e-14
    x = np.where(is_better, refined, start)
    heights = np.where(is_better, heights, log_heights[row, place])
    order = np.lexsort((heights, row))
    return x[order[np.searchsorted(row[order], rows, side="right") - 1]]


class Intervals(NamedTuple):
    """Intervals of the real line, each belonging to one of many functions (a row)."""

    row: IntArray
    low: FloatArray
    high: FloatArray

    @property
    def nodes(self) -> FloatArray:
        """(interval, node): the nodes of `integrate`."""
        middle = 0.5 * self.low + 0.5 * self.high
        return middle[:, None] + 0.5 * (self.high - self.low)[:, None] * NODES

    @classmethod
    def between(cls, knots: FloatArray) -> "Intervals":
        """The gaps between neighbouring knots (row, knot), sorted along the last axis."""
        row, left = np.nonzero(knots[:, 1:] > knots[:, :-1])
        return cls(row, knots[row, left], knots[row, left + 1])

    def take(self, selected: NDArray[np.bool_] | slice) -> "Intervals":
        return Intervals(self.row[selected], self.low[selected], self.high[selected])

    def halves(self) -> "Intervals":
        middle = 0.5 * self.low + 0.5 * self.high
        low = np.stack([self.low, middle], axis=1).ravel()
        high = np.stack([middle, self.high], axis=1).ravel()
        return Intervals(np.repeat(self.row, 2), low, high)


def integrate(values: Callable[[Intervals], FloatArray], knots: FloatArray) -> FloatArray:
    """The integral of each row's function over the range of its sorted knots (row, knot).

    values: of the functions at the nodes of intervals, (interval, node). Intervals are halved until
    the estimated error is small.
    """
    total = np.zeros(len(knots))
    spans = Intervals.between(knots)
    for level in range(MAX_LEVELS):
        if not len(spans.row):
            break
        terms = values(spans) * (0.5 * (spans.high - spans.low))[:, None]
        size = np.abs(terms) @ WEIGHTS + np.finfo(float).tiny
        error = size * np.minimum(1.0, (200.0 * np.abs(terms @ ERROR_WEIGHTS) / size) ** 1.5)
        done = (error <= TOLERANCE) | (level == MAX_LEVELS - 1)
        total += np.bincount(spans.row[done], (terms @ WEIGHTS)[done], minlength=len(total))
        spans = spans.take(~done).halves()
    return total
