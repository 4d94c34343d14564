"""Quadrature nodes of every real and component, and the densities of all components at them."""

import math

from hylift.components.family import BETA
from hylift.components.kernels import allocating, inner
from hylift.numerics.kernels.gauss_beta import gauss_beta
from hylift.numerics.kernels.special import digamma, log_beta

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
TINY = 1e-300


@allocating
def tabulate(
    begin, end, row_variable, row_set, row_start, set_nodes, hermite_z, hermite_w, family, first,
    lower, upper, entries, u, omega, table, nodes,
):  # fmt: skip
    """Fill table (start, place) for the rows begin … end: the density of component j at node t of
    component k, in the order (k, j, t); and nodes: the weight of each node and its two scores, as
    (k, t, 3).

    A row is a variable with the nodes of one set; its places start at row_start * K² in table, and
    at row_start * 3 K in nodes, where row_start counts nodes. u, omega: (node,), scratch.
    """
    num_starts, num_components = entries.shape[0], entries.shape[2]
    for start in range(num_starts):
        for row in range(begin, end):
            variable, nodes_of = row_variable[row], row_set[row]
            num_nodes = set_nodes[nodes_of]
            at = first[variable]
            for k in range(num_components):
                place = row_start[row] * num_components + k * num_nodes
                one, other = entries[start, at, k], entries[start, at + 1, k]
                if family[variable] == BETA:
                    width = upper[variable] - lower[variable]
                    _beta_nodes(start, at, k, place, num_nodes, width, entries, u, omega, table,
                                nodes)  # fmt: skip
                    continue
                sd = math.sqrt(other)
                for t in range(num_nodes):
                    z = hermite_z[nodes_of, t]
                    nodes[start, 3 * (place + t)] = hermite_w[nodes_of, t]
                    nodes[start, 3 * (place + t) + 1] = z / sd
                    nodes[start, 3 * (place + t) + 2] = (z * z - 1.0) / (2.0 * other)
                for j in range(num_components):
                    offset = one - entries[start, at, j]
                    precision = 1.0 / math.sqrt(entries[start, at + 1, j])
                    height = precision / ROOT_TWO_PI
                    to = place * num_components + j * num_nodes
                    for t in range(num_nodes):
                        z = (offset + sd * hermite_z[nodes_of, t]) * precision
                        table[start, to + t] = height * math.exp(-0.5 * z * z)


@inner
def _beta_nodes(start, at, k, place, num_nodes, width, entries, u, omega, table, nodes):
    num_components = entries.shape[2]
    alpha, beta = entries[start, at, k], entries[start, at + 1, k]
    gauss_beta(alpha, beta, u[:num_nodes], omega[:num_nodes])
    both = digamma(alpha + beta)
    mean_log, mean_log_rest = digamma(alpha) - both, digamma(beta) - both
    for j in range(num_components):
        a, b = entries[start, at, j], entries[start, at + 1, j]
        log_scale = log_beta(a, b)
        for t in range(num_nodes):
            log_u, log_rest = math.log(max(u[t], TINY)), math.log(max(1.0 - u[t], TINY))
            if j == k:
                nodes[start, 3 * (place + t)] = omega[t]
                nodes[start, 3 * (place + t) + 1] = log_u - mean_log
                nodes[start, 3 * (place + t) + 2] = log_rest - mean_log_rest
            log_density = (a - 1.0) * log_u + (b - 1.0) * log_rest - log_scale
            to = place * num_components + j * num_nodes + t
            table[start, to] = math.exp(log_density) / width
