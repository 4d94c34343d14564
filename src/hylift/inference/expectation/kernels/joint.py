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
    components, component_ptr, steps, ptr, base, base_linear, members, sites, copies, precision,
    linear, entries, total,
):  # fmt: skip
    """Precision matrix and linear part of some components: the base and what sites add to it."""
    num_steps, basis = len(base_linear), sites.basis
    for k in components:
        for i in range(component_ptr[k], component_ptr[k + 1]):
            v = steps[i]
            entries[v] = base[v]
            total[v] = base_linear[v]
            for e in range(num_steps + ptr[v], num_steps + ptr[v + 1]):
                entries[e] = base[e]
    for c in members:
        site = sites.site[c]
        r, at, matrix, own = site.dim, site.at, site.matrix, site.basis
        for i in range(site.num_reals):
            u = sites.step[site.reals + i]
            if site.is_whole:
                total[u] += copies[c] * linear[at + i]
            else:
                for a in range(r):
                    total[u] += copies[c] * basis[own + i * r + a] * linear[at + a]
            for j in range(i + 1):
                value = 0.0
                if site.is_whole:
                    value = precision[matrix + i * r + j]
                else:
                    for a in range(r):
                        part = 0.0
                        for b in range(r):
                            part += precision[matrix + a * r + b] * basis[own + j * r + b]
                        value += basis[own + i * r + a] * part
                entries[sites.pair[site.pairs + i * site.num_reals + j]] += copies[c] * value


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
def project(begin, end, some, sites, mean, covariance, own_mean, own_covariance):
    """Means and covariances of the coordinates of some sites."""
    basis = sites.basis
    for k in range(begin, end):
        site = sites.site[some[k]]
        r, n, at, matrix, own = site.dim, site.num_reals, site.at, site.matrix, site.basis
        if site.is_whole:
            for i in range(n):
                own_mean[at + i] = mean[sites.step[site.reals + i]]
                for j in range(n):
                    known = covariance[sites.pair[site.pairs + i * n + j]]
                    own_covariance[matrix + i * n + j] = known
            continue
        for a in range(r):
            own_mean[at + a] = 0.0
            for i in range(n):
                own_mean[at + a] += basis[own + i * r + a] * mean[sites.step[site.reals + i]]
            for b in range(a + 1):
                value = 0.0
                for i in range(n):
                    part = 0.0
                    for j in range(n):
                        known = covariance[sites.pair[site.pairs + i * n + j]]
                        part += known * basis[own + j * r + b]
                    value += basis[own + i * r + a] * part
                own_covariance[matrix + a * r + b] = value
                own_covariance[matrix + b * r + a] = value
