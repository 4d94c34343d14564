"""The highest likelihood of parameters, by Fisher scoring."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from experiments.groundwater.filters.predictions import density_of
from experiments.groundwater.model import FloatArray, IntArray

Predict = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From (set, parameter) to (measurement,) each: how far measurements are from their means, and
their variances; all given earlier ones."""

DIFFERENCE = 1e-6
"""Of finite differences."""
ROUGH, FINE = 0.1, 1e-5
"""What the last step of a search may raise the log-likelihood by."""
MOST_STEPS = 100
LONGEST = 2.0
"""Step of a parameter."""
DAMPING, MOST_DAMPING = 1e-3, 1e6
TINY = 1e-8
"""Curvature along parameters about which nothing is known."""
DAMPED_BY = 8.0


def highest(
    predict: Predict,
    owner: IntArray,
    start: FloatArray,
    box: tuple[tuple[float, float], ...],
    centre: FloatArray | None = None,
    strength: float = 0.0,
    enough: float = FINE,
) -> tuple[FloatArray, FloatArray]:
    """(set, parameter): the best of each set within a box; and (set,), how good they are.

    Sets have nothing in common: one search serves all. owner: (measurement,), the set that it
    depends on. strength: of the penalty ½ strength ‖parameters - centre‖². enough: a search ends
    when a step gains less.
    """
    lower, upper = np.array(box).T
    free = np.clip(start, lower, upper)
    middle = free if centre is None else np.broadcast_to(centre, free.shape)

    def height_of(free: FloatArray, seen: FloatArray) -> FloatArray:
        log_density = np.bincount(owner, density_of(*seen), len(free))
        return log_density - 0.5 * strength * ((free - middle) ** 2).sum(axis=1)

    seen = np.stack(predict(free))
    height = height_of(free, seen)
    damping = np.full(len(free), DAMPING)
    is_open, is_stale = np.ones(len(free), dtype=bool), True
    for _ in range(MOST_STEPS):
        if is_stale:
            slope, curvature = _slopes(predict, owner, free, seen)
            slope -= strength * (free - middle)
            curvature += strength * np.eye(len(box))
        inside = ((free > lower) | (slope > 0)) & ((free < upper) | (slope < 0))
        step = _step(slope, curvature, damping, inside)
        tried = np.where(is_open[:, None], np.clip(free + step, lower, upper), free)
        told = np.stack(predict(tried))
        reached = height_of(tried, told)
        gain = reached - height
        better = is_open & (gain > 0)
        is_open &= np.where(better, (gain > enough) | (damping > 1), damping < MOST_DAMPING)
        damping = np.where(better, damping / DAMPED_BY, damping * DAMPED_BY)
        free, height = np.where(better[:, None], tried, free), np.where(better, reached, height)
        if not is_open.any():
            break
        seen, is_stale = np.where(better[owner], told, seen), bool(better.any())
    return free, height


def _slopes(
    predict: Predict, owner: IntArray, free: FloatArray, seen: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(set, parameter) slopes of the log-likelihood, and (set, parameter, parameter) what
    measurements tell about parameters: Fisher's information."""
    error, var = seen
    count = free.shape[1]
    moved = np.stack([np.stack(predict(free + DIFFERENCE * unit)) for unit in np.eye(count)])
    by_error, by_var = np.moveaxis(moved - seen, 1, 0) / DIFFERENCE  # (parameter, measurement)
    each = 0.5 * by_var / var * (error**2 / var - 1) - by_error * error / var
    slope = np.stack([np.bincount(owner, one, len(free)) for one in each], axis=1)
    parts = np.concatenate([by_error / np.sqrt(var), np.sqrt(0.5) * by_var / var], axis=1)
    told = np.empty((len(free), count, count))
    twice = np.concatenate([owner, owner])
    for i in range(count):
        for j in range(i + 1):
            told[:, i, j] = told[:, j, i] = np.bincount(twice, parts[i] * parts[j], len(free))
    return slope, told


def _step(
    slope: FloatArray, curvature: FloatArray, damping: FloatArray, inside: NDArray[np.bool_]
) -> FloatArray:
    """(set, parameter): towards the top of a quadratic, along parameters that can move."""
    count = slope.shape[1]
    matrix = np.where(inside[:, :, None] & inside[:, None, :], curvature, 0.0)
    scale = damping[:, None] * np.diagonal(matrix, axis1=1, axis2=2) + TINY + ~inside
    matrix[:, range(count), range(count)] += scale
    step = np.linalg.solve(matrix, np.where(inside, slope, 0.0)[:, :, None])[:, :, 0]
    return np.clip(step, -LONGEST, LONGEST)
