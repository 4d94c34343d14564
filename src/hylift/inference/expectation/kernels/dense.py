"""Small dense matrices, in the upper left corner of larger arrays."""

import math

import numpy as np
from numba import njit

FLAT = 1e-13
"""A pivot this small against its diagonal entry counts as zero."""


@njit(cache=True, nogil=True, _nrt=False)
def cholesky(matrix, size):
    """The lower factor, in place; the logarithm of half the determinant, or NaN if not definite."""
    half = 0.0
    for j in range(size):
        own = matrix[j, j]
        left = own
        for k in range(j):
            left -= matrix[j, k] * matrix[j, k]
        if not left > FLAT * abs(own):
            return np.nan
        root = math.sqrt(left)
        half += math.log(root)
        matrix[j, j] = root
        for i in range(j + 1, size):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / root
    return half


@njit(cache=True, nogil=True, _nrt=False)
def inverse(lower, size, out, row):
    """The inverse of a matrix with this lower factor; row: room for a vector."""
    for j in range(size):
        for i in range(size):
            row[i] = 0.0
        row[j] = 1.0
        _solve(lower, size, row)
        for i in range(size):
            out[i, j] = row[i]


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _solve(lower, size, x):
    for i in range(size):
        for k in range(i):
            x[i] -= lower[i, k] * x[k]
        x[i] /= lower[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            x[i] -= lower[k, i] * x[k]
        x[i] /= lower[i, i]
