"""Quadrature nodes of every real and component, and the densities of all components at them.

A row is a variable with the nodes of one set. Its table has the density of component j at node t of
component k, in the order (k, j, t), from row_start * K² on; its nodes have the weight of each node
and its two scores, as (k, t, 3), from row_start * 3 K on, where row_start counts nodes.
"""

import math

from hylift.components.kernels import allocating, kernel
from hylift.numerics.kernels.gauss_beta import gauss_beta
from hylift.numerics.kernels.special import digamma, log_beta

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
TINY = 1e-300


@kernel
def tabulate_gaussians(
    begin, end, rows, row_variable, row_set, row_start, set_nodes, hermite_z, hermite_w, first,
    entries, table, nodes,
):  # fmt: skip
    """Fill table and nodes (start, place) for the rows begin … end of some rows."""
    num_starts, num_components = entries.shape[0], entries.shape[2]
    for start in range(num_starts):
        for number in range(begin, end):
            row = rows[number]
            nodes_of = row_set[row]
            at, num_nodes = first[row_variable[row]], set_nodes[nodes_of]
            for k in range(num_components):
                place = row_start[row] * num_components + k * num_nodes
                mean, var = entries[start, at, k], entries[start, at + 1, k]
                sd = math.sqrt(var)
                scale, half_scale = 1.0 / sd, 0.5 / var
                for t in range(num_nodes):
                    z = hermite_z[nodes_of, t]
                    nodes[start, 3 * (place + t)] = hermite_w[nodes_of, t]
                    nodes[start, 3 * (place + t) + 1] = scale * z
                    nodes[start, 3 * (place + t) + 2] = half_scale * (z * z - 1.0)
                for j in range(num_components):
                    offset = mean - entries[start, at, j]
                    precision = 1.0 / math.sqrt(entries[start, at + 1, j])
                    height = precision / ROOT_TWO_PI
                    to = place * num_components + j * num_nodes
                    for t in range(num_nodes):
                        z = (offset + sd * hermite_z[nodes_of, t]) * precision
                        table[start, to + t] = height * math.exp(-0.5 * z * z)


@allocating
def tabulate_betas(
    begin, end, rows, row_variable, row_set, row_start, set_nodes, first, lower, upper, entries, u,
    omega, table, nodes,
):  # fmt: skip
    """The same for Betas. u, omega: (node,), scratch."""
    num_starts, num_components = entries.shape[0], entries.shape[2]
    for start in range(num_starts):
        for number in range(begin, end):
            row = rows[number]
            variable, num_nodes = row_variable[row], set_nodes[row_set[row]]
            at, width = first[variable], upper[variable] - lower[variable]
            for k in range(num_components):
                place = row_start[row] * num_components + k * num_nodes
                alpha, beta = entries[start, at, k], entries[start, at + 1, k]
                gauss_beta(alpha, beta, u[:num_nodes], omega[:num_nodes])
                both = digamma(alpha + beta)
                mean_log, mean_log_rest = digamma(alpha) - both, digamma(beta) - both
                for t in range(num_nodes):
                    nodes[start, 3 * (place + t)] = omega[t]
                    # From here on, u and omega are log u and log(1 - u).
                    omega[t] = math.log(max(1.0 - u[t], TINY))
                    u[t] = math.log(max(u[t], TINY))
                    nodes[start, 3 * (place + t) + 1] = u[t] - mean_log
                    nodes[start, 3 * (place + t) + 2] = omega[t] - mean_log_rest
                for j in range(num_components):
                    a, b = entries[start, at, j], entries[start, at + 1, j]
                    log_scale = log_beta(a, b)
                    to = place * num_components + j * num_nodes
                    for t in range(num_nodes):
                        log_density = (a - 1.0) * u[t] + (b - 1.0) * omega[t] - log_scale
                        table[start, to + t] = math.exp(log_density) / width
