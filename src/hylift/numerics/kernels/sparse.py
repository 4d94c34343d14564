"""Sparse symmetric matrices: conjugate gradients, and LDLᵀ with entries of the inverse."""

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


@njit(cache=True)
def num_products(indptr, indices, order, step, most):
    """Products of a Cholesky factorisation in an order, at least; where there are more than `most`,
    not all are counted.

    Row by row: its entries are the steps on the paths from those of the matrix up the tree.
    """
    num = len(order)
    parent, mark, count = np.empty(num, np.int32), np.empty(num, np.int32), np.zeros(num, np.int64)
    total = 0
    for row in range(num):
        parent[row], mark[row] = -1, row
        v = order[row]
        for at in range(indptr[v], indptr[v + 1]):
            column = step[indices[at]]
            while column < row and mark[column] != row:
                mark[column] = row
                if parent[column] == -1:
                    parent[column] = row
                count[column] += 1
                total += 2 * count[column]
                column = parent[column]
        if total > most:
            return total
    return total


SINGULAR = 1e-14
"""A pivot this small against its diagonal entry counts as zero: the form is not definite."""


@njit(cache=True)
def factorise(
    inside, state, count, ptr, later, real_ptr, edge_ptr, diagonal, edges,
    factor, pivot, column, head, link, place, maximise,
):  # fmt: skip
    """LDLᵀ of one component in one state, column by column; the step that fails, or -1.

    When maximising, a direction that is flat gets an infinite pivot: nothing moves along it.
    `head` and `link` list, for each step, the earlier columns whose next row it is.
    """
    for v in inside:
        head[v] = -1
    for v in inside:
        start, stop = ptr[v], ptr[v + 1]
        own = diagonal[real_ptr[v] + state]
        for e in range(start, stop):
            column[later[e]] = edges[edge_ptr[v] + (e - start) * count + state]
        left = own
        k = head[v]
        while k != -1:
            following = link[k]
            e = place[k]
            scale = factor[e] * pivot[k]
            left -= factor[e] * scale
            for below in range(e + 1, ptr[k + 1]):
                column[later[below]] -= factor[below] * scale
            if e + 1 < ptr[k + 1]:
                place[k] = e + 1
                link[k] = head[later[e + 1]]
                head[later[e + 1]] = k
            k = following
        if not left > SINGULAR * abs(own):
            if not maximise or left < -SINGULAR * abs(own):
                return v
            for e in range(start, stop):
                if abs(column[later[e]]) > SINGULAR * abs(own):
                    return v
            left = np.inf
        pivot[v] = left
        for e in range(start, stop):
            factor[e] = column[later[e]] / left
        if stop > start and left < np.inf:
            place[v] = start
            link[v] = head[later[start]]
            head[later[start]] = v
    return -1


@njit(cache=True)
def forward(inside, ptr, later, factor, pivot, x):
    """Solves L y = x in place; a step that is pushed along a flat direction, or -1."""
    for v in inside:
        if pivot[v] == np.inf and x[v] != 0.0:
            return v
        for e in range(ptr[v], ptr[v + 1]):
            x[later[e]] -= factor[e] * x[v]
    return -1


@njit(cache=True)
def selected_inverse(inside, ptr, later, factor, pivot, inverse, spread, column):
    """Entries of the inverse on the factor's own structure, last column first (Takahashi)."""
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        start, stop = ptr[v], ptr[v + 1]
        for e in range(start, stop):
            inverse[e] = 0.0
        for e in range(start, stop):
            u = later[e]
            for below in range(ptr[u], ptr[u + 1]):
                column[later[below]] = inverse[below]
            inverse[e] -= factor[e] * spread[u]
            for other in range(e + 1, stop):
                shared = column[later[other]]
                inverse[other] -= factor[e] * shared
                inverse[e] -= factor[other] * shared
        own = 1.0 / pivot[v]
        for e in range(start, stop):
            own -= factor[e] * inverse[e]
        spread[v] = own
