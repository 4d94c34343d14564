"""Gauss rules for Beta densities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def beta_rule(num_nodes: int, alpha: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes in [0, 1] and weights (…, node) of the Gauss rule for each Beta(alpha, beta).

    Exact for polynomials up to degree 2 num_nodes - 1. By Golub and Welsch: nodes are eigenvalues
    of the matrix of the recurrence of the Jacobi polynomials, weights the squares of the first
    entries of its eigenvectors, so that nothing overflows.
    """
    a, b = (beta - 1.0)[..., None], (alpha - 1.0)[..., None]
    n = np.arange(1, num_nodes)
    total = a + b
    matrix = np.zeros((*alpha.shape, num_nodes, num_nodes))
    place = np.arange(num_nodes)
    matrix[..., 0, 0] = ((b - a) / (total + 2.0))[..., 0]
    later = (b - a) * total / ((2.0 * n + total) * (2.0 * n + total + 2.0))
    matrix[..., place[1:], place[1:]] = later
    # n + a + b and 2n + a + b - 1 are the same for n = 1, where both may be near 0.
    ratio = np.where(n == 1, 1.0, (n + total) / np.where(n == 1, 1.0, 2.0 * n + total - 1.0))
    beside = 4.0 * n * (n + a) * (n + b) * ratio
    beside = np.sqrt(beside / ((2.0 * n + total) ** 2 * (2.0 * n + total + 1.0)))
    matrix[..., place[1:], place[:-1]] = beside  # eigh reads the lower triangle
    nodes, vectors = np.linalg.eigh(matrix)
    return np.clip(0.5 + 0.5 * nodes, 0.0, 1.0), vectors[..., 0, :] ** 2
