"""Quadrature nodes of components and their densities there; overlaps and entropies, with gradients.

A row is a variable with the nodes of one set. Its table has the density of component j at node t of
component k, in the order (k, j, t), from row_start * K² on; its nodes have the weight of each node
and its two scores, as (k, t, 3), from row_start * 3 K on, where row_start counts nodes.
"""

import math

import numpy as np

from hylift.components.family import BETA, CATEGORICAL
from hylift.components.kernels import allocating, inner, kernel
from hylift.numerics.kernels.gauss_beta import gauss_beta
from hylift.numerics.kernels.special import digamma, log_beta, trigamma

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


@kernel
def log_overlaps(
    begin, end, order, family, first, lower, upper, multiplicity, part, entries, of_roots,
    overlaps,
):  # fmt: skip
    """Add n_i log ∫ q_i^k q_i^j of the variables order[begin] … order[end - 1] to overlaps (start,
    part, k, j), from the part of the first on; or, of their square roots, the logarithms of
    Bhattacharyya coefficients. Variables are in the order of their parts."""
    num_components = entries.shape[2]
    for start in range(entries.shape[0]):
        for k in range(num_components):
            for j in range(k if of_roots else k + 1):  # a density and itself: 1
                for number in range(begin, end):
                    variable = order[number]
                    at = first[variable]
                    if family[variable] == CATEGORICAL:
                        shared = _shared(start, k, j, at, first[variable + 1], entries, of_roots)
                        log_shared = math.log(shared) if shared > 0.0 else -np.inf
                    elif family[variable] == BETA:
                        log_shared = _beta_overlap(
                            entries[start, at, k], entries[start, at + 1, k],
                            entries[start, at, j], entries[start, at + 1, j], of_roots,
                        )  # fmt: skip
                        if not of_roots:
                            log_shared -= math.log(upper[variable] - lower[variable])
                    else:
                        offset = entries[start, at, k] - entries[start, at, j]
                        one, other = entries[start, at + 1, k], entries[start, at + 1, j]
                        var = one + other
                        distance = offset * offset / var
                        if of_roots:
                            ratio = 4.0 * one / var * (other / var)
                            log_shared = 0.25 * (math.log(ratio) - distance)
                        else:
                            log_shared = -0.5 * (math.log(2.0 * math.pi * var) + distance)
                    p = part[variable] - part[order[begin]]
                    overlaps[start, p, k, j] += multiplicity[variable] * log_shared
                    if j < k:
                        overlaps[start, p, j, k] = overlaps[start, p, k, j]


@inner
def _shared(start, k, j, at, end, entries, of_roots):
    """Σ_s p_k p_j, or Σ_s √(p_k p_j)."""
    total = 0.0
    for entry in range(at, end):
        both = entries[start, entry, k] * entries[start, entry, j]
        total += math.sqrt(both) if of_roots else both
    return total


@inner
def _beta_overlap(a, b, other_a, other_b, of_roots):
    own, other = log_beta(a, b), log_beta(other_a, other_b)
    if of_roots:
        return log_beta(0.5 * (a + other_a), 0.5 * (b + other_b)) - 0.5 * (own + other)
    return log_beta(a + other_a - 1.0, b + other_b - 1.0) - own - other


@kernel
def log_mixtures(overlaps, weights, copies, value, share):
    """Add n log Σ_j w_j exp(S_kj / n) to value (start, part, k), where a part stands for n copies,
    and fill share (start, part, k, j) with the share of each j in that sum."""
    num_components = weights.shape[2]
    for start in range(weights.shape[0]):
        for p in range(weights.shape[1]):
            for k in range(num_components):
                top = -np.inf
                for j in range(num_components):
                    log_part = math.log(weights[start, p, j]) + overlaps[start, p, k, j] / copies[p]
                    share[start, p, k, j] = log_part
                    top = max(top, log_part)
                total = 0.0
                for j in range(num_components):
                    share[start, p, k, j] = math.exp(share[start, p, k, j] - top)
                    total += share[start, p, k, j]
                for j in range(num_components):
                    share[start, p, k, j] /= total
                value[start, p, k] += copies[p] * (top + math.log(total))


@kernel
def overlap_gradient(
    begin, end, family, first, multiplicity, part, entries, weights, share, of_roots, gradient
):  # fmt: skip
    """Add the gradients of Σ_k w_k n log Σ_j w_j exp(S_kj / n) for variables begin … end, for the S
    of `log_overlaps`."""
    num_components = entries.shape[2]
    for start in range(entries.shape[0]):
        for variable in range(begin, end):
            at, n, of = first[variable], multiplicity[variable], part[variable]
            for k in range(num_components):
                for j in range(num_components):
                    # S_kj stands in the sums of k and of j.
                    pull = weights[start, of, k] * share[start, of, k, j]
                    pull += weights[start, of, j] * share[start, of, j, k]
                    if pull == 0.0 or (of_roots and j == k):
                        continue
                    pull *= n
                    if family[variable] == CATEGORICAL:
                        end_of = first[variable + 1]
                        shared = _shared(start, k, j, at, end_of, entries, of_roots)
                        if shared > 0.0:
                            for entry in range(at, end_of):
                                p, other = entries[start, entry, k], entries[start, entry, j]
                                slope = other
                                if of_roots:
                                    slope = 0.5 * math.sqrt(other / p) if p > 0.0 else 0.0
                                gradient[start, entry, k] += pull * slope / shared
                    elif family[variable] == BETA:
                        a, b = entries[start, at, k], entries[start, at + 1, k]
                        sum_a = a + entries[start, at, j]
                        sum_b = b + entries[start, at + 1, j]
                        scale = 0.5 if of_roots else 1.0
                        shift = 0.0 if of_roots else -1.0
                        sum_a, sum_b = scale * sum_a + shift, scale * sum_b + shift
                        joint = digamma(sum_a + sum_b)
                        own = digamma(a + b)
                        gradient[start, at, k] += (
                            scale * pull * (digamma(sum_a) - joint - digamma(a) + own)
                        )
                        gradient[start, at + 1, k] += (
                            scale * pull * (digamma(sum_b) - joint - digamma(b) + own)
                        )
                    else:
                        offset = entries[start, at, k] - entries[start, at, j]
                        var = entries[start, at + 1, k] + entries[start, at + 1, j]
                        distance = offset * offset / var
                        own = -1.0
                        if of_roots:
                            pull *= 0.5
                            own = var / entries[start, at + 1, k] - 2.0
                        gradient[start, at, k] -= pull * offset / var
                        gradient[start, at + 1, k] += 0.5 * pull * (distance + own) / var


@kernel
def product_entropy(
    family, first, lower, upper, multiplicity, part, weights, entries, gradient, value
):  # fmt: skip
    """Add Σ_i n_i E[log q_i^k] of each component to value (start, part, component), and its
    gradient, times the component's weight; part: (variable,)."""
    for start in range(entries.shape[0]):
        for variable in range(len(family)):
            at, n = first[variable], multiplicity[variable]
            for k in range(entries.shape[2]):
                total, scale = 0.0, n * weights[start, part[variable], k]
                if family[variable] == CATEGORICAL:
                    for entry in range(at, first[variable + 1]):
                        p = entries[start, entry, k]
                        if p > 0.0:
                            total += p * math.log(p)
                            gradient[start, entry, k] += scale * math.log(p)
                elif family[variable] == BETA:
                    a, b = entries[start, at, k], entries[start, at + 1, k]
                    both = digamma(a + b)
                    total = (a - 1.0) * (digamma(a) - both) + (b - 1.0) * (digamma(b) - both)
                    total -= log_beta(a, b) + math.log(upper[variable] - lower[variable])
                    shared = (a + b - 2.0) * trigamma(a + b)
                    gradient[start, at, k] += scale * ((a - 1.0) * trigamma(a) - shared)
                    gradient[start, at + 1, k] += scale * ((b - 1.0) * trigamma(b) - shared)
                else:
                    var = entries[start, at + 1, k]
                    total = -0.5 * math.log(2.0 * math.pi * math.e * var)
                    gradient[start, at + 1, k] -= 0.5 * scale / var
                value[start, part[variable], k] += n * total
