"""Quadrature nodes of every real and component, and the densities of all components at them."""

import math

import numpy as np
from numba import njit

from hylift.components.family import BETA
from hylift.numerics.kernels.gauss_beta import gauss_beta
from hylift.numerics.kernels.special import digamma, log_beta

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
TINY = 1e-300


@njit(cache=True, nogil=True)
def tabulate(
    begin, end, row_variable, row_set, row_start, set_nodes, hermite_z, family, first, lower, upper,
    entries, table, extra,
):  # fmt: skip
    """Fills table (start, place) for the rows begin … end: the density of component j at node t of
    component k, in the order (k, j, t); for Betas also extra: the weight of each node and its two
    scores, as (k, t, 3).

    A row is a variable with the nodes of one set; its places start at row_start * K² in table, and
    at row_start * 3 K in extra, where row_start counts nodes.
    """
    num_starts, num_components = entries.shape[0], entries.shape[2]
    u = np.empty(hermite_z.shape[1])
    omega = np.empty(hermite_z.shape[1])
    for start in range(num_starts):
        for row in range(begin, end):
            variable = row_variable[row]
            num_nodes = set_nodes[row_set[row]]
            z_nodes = hermite_z[row_set[row]]
            at = first[variable]
            place = row_start[row] * num_components * num_components
            if family[variable] == BETA:
                _beta_row(
                    start, at, place, 3 * num_components * row_start[row], num_nodes,
                    upper[variable] - lower[variable], entries, u, omega, table, extra,
                )  # fmt: skip
                continue
            for k in range(num_components):
                mean = entries[start, at, k]
                sd = math.sqrt(entries[start, at + 1, k])
                for j in range(num_components):
                    offset = mean - entries[start, at, j]
                    precision = 1.0 / math.sqrt(entries[start, at + 1, j])
                    height = precision / ROOT_TWO_PI
                    to = place + (k * num_components + j) * num_nodes
                    for t in range(num_nodes):
                        z = (offset + sd * z_nodes[t]) * precision
                        table[start, to + t] = height * math.exp(-0.5 * z * z)


@njit(cache=True, nogil=True)
def _beta_row(start, at, place, extra_place, num_nodes, width, entries, u, omega, table, extra):
    num_components = entries.shape[2]
    for k in range(num_components):
        alpha, beta = entries[start, at, k], entries[start, at + 1, k]
        gauss_beta(alpha, beta, u[:num_nodes], omega[:num_nodes])
        both = digamma(alpha + beta)
        mean_log, mean_log_rest = digamma(alpha) - both, digamma(beta) - both
        for t in range(num_nodes):
            log_u, log_rest = math.log(max(u[t], TINY)), math.log(max(1.0 - u[t], TINY))
            to = extra_place + 3 * (k * num_nodes + t)
            extra[start, to] = omega[t]
            extra[start, to + 1] = log_u - mean_log
            extra[start, to + 2] = log_rest - mean_log_rest
            for j in range(num_components):
                a, b = entries[start, at, j], entries[start, at + 1, j]
                log_density = (a - 1.0) * log_u + (b - 1.0) * log_rest - log_beta(a, b)
                to = place + (k * num_components + j) * num_nodes + t
                table[start, to] = math.exp(log_density) / width


@njit(cache=True, nogil=True)
def moments_of(family, first, lower, upper, entries, moments):
    """Fills moments (start, entry, component): mean and variance of Betas, else the entries."""
    for start in range(entries.shape[0]):
        for variable in range(len(family)):
            at = first[variable]
            if family[variable] != BETA:
                for entry in range(at, first[variable + 1]):
                    for k in range(entries.shape[2]):
                        moments[start, entry, k] = entries[start, entry, k]
                continue
            width = upper[variable] - lower[variable]
            for k in range(entries.shape[2]):
                a, b = entries[start, at, k], entries[start, at + 1, k]
                total = a + b
                moments[start, at, k] = lower[variable] + width * a / total
                moments[start, at + 1, k] = width * width * a * b / (total * total * (total + 1.0))


@njit(cache=True, nogil=True)
def chain_moments(betas, first, lower, upper, entries, gradient):
    """Turns gradients with respect to mean and variance of these Betas into such of alpha, beta."""
    for start in range(entries.shape[0]):
        for variable in betas:
            at = first[variable]
            width = upper[variable] - lower[variable]
            for k in range(entries.shape[2]):
                a, b = entries[start, at, k], entries[start, at + 1, k]
                n = a + b
                of_mean, of_var = gradient[start, at, k] * width, gradient[start, at + 1, k]
                of_var *= width * width
                var = a * b / (n * n * (n + 1.0))
                # d log var = da/a + db/b - (da + db) (2/n + 1/(n + 1))
                fall = 2.0 / n + 1.0 / (n + 1.0)
                gradient[start, at, k] = of_mean * b / (n * n) + of_var * var * (1.0 / a - fall)
                gradient[start, at + 1, k] = -of_mean * a / (n * n) + of_var * var * (
                    1.0 / b - fall
                )
