"""The joint Gaussian: assembled from sites, factorised, and its covariances told to sites.

The entries of a symmetric matrix are its diagonal, by step of an elimination, and then the edges of
that elimination.
"""

import math

import numpy as np
from numba import njit

from hylift.numerics.kernels.sparse import factorise, forward, selected_inverse


@njit(cache=True, nogil=True)
def assemble(
    components, component_ptr, steps, ptr, base, base_linear, members, copies, real_ptr, step,
    pair_ptr, pair, dim, dim_ptr, matrix_ptr, basis_ptr, basis, precision, linear, entries, total,
):  # fmt: skip
    """Precision matrix and linear part of some components: the base and what sites add to it."""
    num_steps = len(base_linear)
    for k in components:
        for i in range(component_ptr[k], component_ptr[k + 1]):
            v = steps[i]
            entries[v] = base[v]
            total[v] = base_linear[v]
            for e in range(num_steps + ptr[v], num_steps + ptr[v + 1]):
                entries[e] = base[e]
    for c in members:
        r, n = dim[c], real_ptr[c + 1] - real_ptr[c]
        at, matrix, own = dim_ptr[c], matrix_ptr[c], basis_ptr[c]
        is_whole = basis_ptr[c + 1] == own
        for i in range(n):
            u = step[real_ptr[c] + i]
            if is_whole:
                total[u] += copies[c] * linear[at + i]
            else:
                for a in range(r):
                    total[u] += copies[c] * basis[own + i * r + a] * linear[at + a]
            for j in range(i + 1):
                value = 0.0
                if is_whole:
                    value = precision[matrix + i * r + j]
                else:
                    for a in range(r):
                        part = 0.0
                        for b in range(r):
                            part += precision[matrix + a * r + b] * basis[own + j * r + b]
                        value += basis[own + i * r + a] * part
                entries[pair[pair_ptr[c] + i * n + j]] += copies[c] * value


@njit(cache=True, nogil=True)
def solve(
    components, component_ptr, steps, ptr, later, real_ptr, entries, total, factor, pivot, column,
    head, link, place, mean, covariance, log_det, failed,
):  # fmt: skip
    """Means, covariances on the structure of the factor, and log-determinants of components."""
    num_steps = len(total)
    edges, inverse = entries[num_steps:], covariance[num_steps:]
    spread = covariance[:num_steps]
    for k in components:
        inside = steps[component_ptr[k] : component_ptr[k + 1]]
        bad = factorise(
            inside, np.int64(0), np.int64(1), ptr, later, real_ptr, ptr, entries, edges,
            factor, pivot, column, head, link, place, False,
        )  # fmt: skip
        failed[k] = bad >= 0
        if bad >= 0:
            continue
        log_det[k] = 0.0
        for v in inside:
            mean[v] = total[v]
            log_det[k] += math.log(pivot[v])
        forward(inside, ptr, later, factor, pivot, mean)
        for i in range(len(inside) - 1, -1, -1):
            v = inside[i]
            mean[v] /= pivot[v]
            for e in range(ptr[v], ptr[v + 1]):
                mean[v] -= factor[e] * mean[later[e]]
        selected_inverse(inside, ptr, later, factor, pivot, inverse, spread, column)


@njit(cache=True, nogil=True)
def project(
    begin, end, some, real_ptr, step, pair_ptr, pair, dim, dim_ptr, matrix_ptr, basis_ptr, basis,
    mean, covariance, own_mean, own_covariance,
):  # fmt: skip
    """Means and covariances of the coordinates of some sites."""
    for k in range(begin, end):
        c = some[k]
        r, n = dim[c], real_ptr[c + 1] - real_ptr[c]
        at, matrix, own = dim_ptr[c], matrix_ptr[c], basis_ptr[c]
        if basis_ptr[c + 1] == own:
            for i in range(n):
                own_mean[at + i] = mean[step[real_ptr[c] + i]]
                for j in range(n):
                    own_covariance[matrix + i * n + j] = covariance[pair[pair_ptr[c] + i * n + j]]
            continue
        for a in range(r):
            own_mean[at + a] = 0.0
            for i in range(n):
                own_mean[at + a] += basis[own + i * r + a] * mean[step[real_ptr[c] + i]]
            for b in range(a + 1):
                value = 0.0
                for i in range(n):
                    part = 0.0
                    for j in range(n):
                        known = covariance[pair[pair_ptr[c] + i * n + j]]
                        part += known * basis[own + j * r + b]
                    value += basis[own + i * r + a] * part
                own_covariance[matrix + a * r + b] = value
                own_covariance[matrix + b * r + a] = value
