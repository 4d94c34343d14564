"""Roots of many increasing functions at once."""

from collections.abc import Callable

import numpy as np

from hylift.posterior.distributions.base import FloatArray, IntArray

MAX_STEPS = 200
EPS = float(np.finfo(np.float64).eps)

# (x, which) -> (residual, Newton step): for function which[i] at x[i]. The residual is negative
# left of the root, and exactly 0 where the function cannot tell x from the root.
Evaluate = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]


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
