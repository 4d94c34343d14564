"""Roots and integrals of many functions of one variable at once."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.components.family import FloatArray, IntArray

MAX_STEPS = 200
EPS = float(np.finfo(np.float64).eps)

# (x, which) -> (residual, Newton step): for function which[i] at x[i]. The residual is negative
# left of the root, and exactly 0 where the function cannot tell x from the root.
Evaluate = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]

MAX_LEVELS = 60  # how often an interval is halved at most
TOLERANCE = 1e-10  # of the estimated error, in each interval

# Gauss-Kronrod rule of 15 nodes on [-1, 1] and the Gauss rule of 7 at its odd nodes (QUADPACK).
_HALF_NODES = [
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144450236103,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
    0.0,
]
_HALF_KRONROD = [
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
    0.209482141084727828012999174891714,
]
_HALF_GAUSS = [
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
]
NODES = np.array([*(-np.array(_HALF_NODES[:-1])), *_HALF_NODES[::-1]])
KRONROD = np.array([*_HALF_KRONROD, *_HALF_KRONROD[-2::-1]])
GAUSS = np.zeros(15)
GAUSS[1::2] = [*_HALF_GAUSS, *_HALF_GAUSS[-2::-1]]


def find_roots(
    evaluate: Evaluate, low: FloatArray, high: FloatArray, start: FloatArray
) -> FloatArray:
    """The root of each function in [low, high] by Newton steps, by bisection where they fail.

    A Newton step fails if it leaves the bracket, or is not below half of the last step. With no
    root inside, the answer is the end nearest to it.
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


def find_maxima(
    derivatives: Evaluate, low: FloatArray, high: FloatArray, start: FloatArray
) -> FloatArray:
    """Where the slope of each function changes from rise to fall in [low, high].

    derivatives: (x, which) -> (slope, second derivative).
    """

    def evaluate(x: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        slope, bend = derivatives(x, which)
        return -slope, -slope / np.where(bend < 0, bend, np.nan)

    return find_roots(evaluate, low, high, start)


def mixture_quantiles(
    evaluate: Evaluate,
    weights: FloatArray,
    p: FloatArray,
    ppf: Callable[[FloatArray], FloatArray],
    slack: float = 0.0,
) -> FloatArray:
    """The quantile p (row,) of each mixture, from the quantile functions of its components.

    evaluate: cdf - p and the Newton step; slack: relative, by which the bracket is widened.
    """
    with np.errstate(all="ignore"):
        own, is_used = ppf(p[:, None]), weights > 0
        # Every component has less than p below `low` and more than p below `high`; and where
        # one component alone has p, the mixture has no less.
        low = np.where(is_used, own, np.inf).min(axis=1)
        high = np.where(is_used, own, -np.inf).max(axis=1)
        alone = ppf(np.minimum(p[:, None] / weights, 1.0))
        high = np.minimum(high, np.where(is_used, alone, np.inf).min(axis=1))
        high = np.maximum(high, low) * (1.0 + slack)
        start = np.einsum("ik,ik->i", weights, own)
        return find_roots(evaluate, low * (1.0 - slack), high, start)


class Intervals(NamedTuple):
    """Intervals of the real line, each belonging to one of many functions (a row).

    A search or a quadrature handles the whole list in a few array operations, and goes on with
    halves of those that need more care.
    """

    row: IntArray
    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        return 0.5 * self.low + 0.5 * self.high

    @property
    def nodes(self) -> FloatArray:
        """(interval, node): the nodes of `integrate`."""
        return self.middle[:, None] + 0.5 * (self.high - self.low)[:, None] * NODES

    @classmethod
    def between(cls, knots: FloatArray) -> "Intervals":
        """The gaps between neighbouring knots (row, knot), sorted along the last axis."""
        row, left = np.nonzero(knots[:, 1:] > knots[:, :-1])
        return cls(row, knots[row, left], knots[row, left + 1])

    def where(self, selected: NDArray[np.bool_]) -> "Intervals":
        return Intervals(self.row[selected], self.low[selected], self.high[selected])

    def halves(self) -> "Intervals":
        middle = self.middle
        low = np.stack([self.low, middle], axis=1).ravel()
        high = np.stack([middle, self.high], axis=1).ravel()
        return Intervals(np.repeat(self.row, 2), low, high)


def integrate(values: Callable[[Intervals], FloatArray], knots: FloatArray) -> FloatArray:
    """The integral of each row's function over the range of its sorted knots (row, knot).

    `values`: of the functions at `NODES` of the intervals, (interval, node). Intervals are halved
    until QUADPACK's estimate of the error is small.
    """
    total = np.zeros(len(knots))
    spans = Intervals.between(knots)
    for level in range(MAX_LEVELS):
        if not len(spans.row):
            break
        terms = values(spans) * (0.5 * (spans.high - spans.low))[:, None]
        integral = terms @ KRONROD
        size = np.abs(terms) @ KRONROD + np.finfo(float).tiny
        error = size * np.minimum(1.0, (200.0 * np.abs(integral - terms @ GAUSS) / size) ** 1.5)
        done = (error <= TOLERANCE) | (level == MAX_LEVELS - 1)
        total += np.bincount(spans.row[done], integral[done], minlength=len(total))
        spans = spans.where(~done).halves()
    return total
