"""Sparse symmetric systems by conjugate gradients, with sums in a fixed order."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def conjugate_gradients(indptr, indices, data, diagonal, right, flat, tolerance, most_steps):
    """Solve A x = right with the diagonal as preconditioner.

    flat: (row,), along a direction d a curvature of at most Σ flat d² is none. Returns x, the last
    direction, and how it ended: -1 if it did not converge, -2 if A is not positive definite along
    that direction, else the number of steps.
    """
    size = len(right)
    x = np.zeros(size)
    residual = right.copy()
    z = residual / diagonal
    direction = z.copy()
    image = np.empty(size)
    along, start = _dot(residual, z), _dot(right, right)
    if start == 0.0:
        return x, direction, 0
    for step in range(most_steps):
        times(indptr, indices, data, direction, image)
        curvature, least = _dot(direction, image), 0.0
        for row in range(size):
            least += flat[row] * direction[row] * direction[row]
        if not curvature > least:
            return x, direction, -2
        length = along / curvature
        for row in range(size):
            x[row] += length * direction[row]
            residual[row] -= length * image[row]
            z[row] = residual[row] / diagonal[row]
        if math.sqrt(_dot(residual, residual)) <= tolerance * math.sqrt(start):
            return x, direction, step + 1
        new = _dot(residual, z)
        for row in range(size):
            direction[row] = z[row] + new / along * direction[row]
        along = new
    return x, direction, -1


@njit(cache=True, nogil=True)
def times(indptr, indices, data, vector, out):
    """A sparse matrix times a vector."""
    for row in range(len(out)):
        total = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            total += data[at] * vector[indices[at]]
        out[row] = total


@njit(cache=True, nogil=True)
def _dot(a, b):
    total = 0.0
    for at in range(len(a)):
        total += a[at] * b[at]
    return total
