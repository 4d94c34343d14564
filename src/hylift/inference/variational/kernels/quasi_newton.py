"""The direction of a quasi-Newton step."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def quasi_newton(steps, changes, count, newest, slope, inverse, direction):
    """Fills direction (place,) with minus the L-BFGS estimate of the inverse Hessian times the
    slope (place,); steps and changes of the slope: (memory, place), of which `count` are filled,
    `newest` the latest; inverse: the diagonal that the estimate starts from, in the size that the
    latest step tells."""
    memory = len(steps)
    alpha = np.zeros(memory)
    for place in range(len(slope)):
        direction[place] = -slope[place]
    for back in range(count):
        at = (newest - back) % memory
        curvature, along = 0.0, 0.0
        for place in range(len(slope)):
            curvature += steps[at, place] * changes[at, place]
            along += steps[at, place] * direction[place]
        alpha[at] = along / curvature
        for place in range(len(slope)):
            direction[place] -= alpha[at] * changes[at, place]
    scale = 1.0
    if count > 0:
        along, size = 0.0, 0.0
        for place in range(len(slope)):
            along += steps[newest, place] * changes[newest, place]
            size += changes[newest, place] * inverse[place] * changes[newest, place]
        scale = along / size
    for place in range(len(slope)):
        direction[place] *= scale * inverse[place]
    for back in range(count - 1, -1, -1):
        at = (newest - back) % memory
        curvature, along = 0.0, 0.0
        for place in range(len(slope)):
            curvature += steps[at, place] * changes[at, place]
            along += changes[at, place] * direction[place]
        beta = along / curvature
        for place in range(len(slope)):
            direction[place] += (alpha[at] - beta) * steps[at, place]
