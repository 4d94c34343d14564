"""Sparse symmetric systems by conjugate gradients, with sums in a fixed order; signs in trees."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def conjugate_gradients(indptr, indices, data, diagonal, right, tolerance, most_steps):
    """The solution x of A x = right with the diagonal as preconditioner, and how it ended: -1 where
    it did not converge, -2 where A is not positive definite, else the number of steps."""
    size = len(right)
    x = np.zeros(size)
    residual = right.copy()
    z = residual / diagonal
    direction = z.copy()
    image = np.empty(size)
    along, start = _dot(residual, z), _dot(right, right)
    if start == 0.0:
        return x, 0
    for step in range(most_steps):
        for row in range(size):
            total = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                total += data[at] * direction[indices[at]]
            image[row] = total
        curvature = _dot(direction, image)
        if not curvature > 0.0:
            return x, -2
        length = along / curvature
        for row in range(size):
            x[row] += length * direction[row]
            residual[row] -= length * image[row]
            z[row] = residual[row] / diagonal[row]
        if math.sqrt(_dot(residual, residual)) <= tolerance * math.sqrt(start):
            return x, step + 1
        new = _dot(residual, z)
        for row in range(size):
            direction[row] = z[row] + new / along * direction[row]
        along = new
    return x, -1


@njit(cache=True, nogil=True)
def _dot(a, b):
    total = 0.0
    for at in range(len(a)):
        total += a[at] * b[at]
    return total


@njit(cache=True, nogil=True)
def multiply_down(signs, order, parent, flips):
    """Gives each vertex of a tree the sign of its parent times its flip; parents come first."""
    for place in range(len(order)):
        signs[order[place]] = signs[parent[order[place]]] * flips[place]
