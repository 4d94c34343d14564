"""Entropies of scopes under a mixture, on grids of nodes and states, and their gradients."""

import math

import numpy as np
from numba import njit

from hylift.posterior.mixture.layout import BETA, CATEGORICAL
from hylift.potentials.kernels.special import digamma, log_beta, trigamma

TINY = 1e-300


@njit(cache=True, nogil=True)
def bethe_block(
    begin, end, slot_ptr, slots, coefficient, scope_set, set_nodes, hermite_z, hermite_w,
    family, first, entries, weights, table_row, row_start, table, extra, grad_ptr, buffer, value,
):  # fmt: skip
    """Adds coefficient * E[log q] of the scopes begin … end, given each component, to value (start,
    component), and writes its gradients, times the component's weight, to buffer (start, entry of
    a slot, component).

    The gradient is the quadrature of log q times the score, not the derivative of the quadrature.
    scope_set: (scope,), which set of nodes its reals have; table_row: (set, variable), the row of
    `tabulate`; grad_ptr as in `energy_block`.
    """
    most, longest = 1, hermite_z.shape[1]
    for scope in range(begin, end):
        most = max(most, slot_ptr[scope + 1] - slot_ptr[scope])
        for slot in range(slot_ptr[scope], slot_ptr[scope + 1]):
            longest = max(longest, first[slots[slot] + 1] - first[slots[slot]])
    num_components = weights.shape[1]
    size = np.empty(most, dtype=np.int64)
    local = np.empty((most, longest, num_components))
    omega = np.empty((most, longest))
    marginal = np.empty((most, longest))
    index = np.empty(most, dtype=np.int64)
    product = np.empty((most + 1, num_components))
    mass = np.empty(most + 1)
    shift = grad_ptr[slot_ptr[begin]]
    for start in range(weights.shape[0]):
        for scope in range(begin, end):
            low, high = slot_ptr[scope], slot_ptr[scope + 1]
            arity = high - low
            nodes_of = scope_set[scope]
            num_nodes = set_nodes[nodes_of]
            for place in range(arity):
                variable = slots[low + place]
                discrete = family[variable] == CATEGORICAL
                size[place] = first[variable + 1] - first[variable] if discrete else num_nodes
                if discrete:
                    for t in range(size[place]):
                        for j in range(num_components):
                            local[place, t, j] = entries[start, first[variable] + t, j]
            for k in range(num_components):
                for place in range(arity):
                    variable = slots[low + place]
                    if family[variable] == CATEGORICAL:
                        for t in range(size[place]):
                            omega[place, t] = local[place, t, k]
                        continue
                    nodes = row_start[table_row[nodes_of, variable]]
                    source = (nodes * num_components + k * num_nodes) * num_components
                    for t in range(num_nodes):
                        for j in range(num_components):
                            local[place, t, j] = table[start, source + t * num_components + j]
                    if family[variable] == BETA:
                        source = 3 * (nodes * num_components + k * num_nodes)
                        for t in range(num_nodes):
                            omega[place, t] = extra[start, source + 3 * t]
                    else:
                        for t in range(num_nodes):
                            omega[place, t] = hermite_w[nodes_of, t]
                for j in range(num_components):
                    product[0, j] = weights[start, j]
                total = _walk(arity, size, local, omega, marginal, index, product, mass)
                value[start, k] += coefficient[scope] * total
                scale = coefficient[scope] * weights[start, k]
                for place in range(arity):
                    variable = slots[low + place]
                    to = grad_ptr[low + place] - shift
                    if family[variable] == CATEGORICAL:
                        for t in range(size[place]):
                            buffer[start, to + t, k] = (
                                scale * marginal[place, t] / omega[place, t]
                                if omega[place, t] > 0.0
                                else 0.0
                            )
                        continue
                    one, other = 0.0, 0.0
                    if family[variable] == BETA:
                        nodes = row_start[table_row[nodes_of, variable]]
                        source = 3 * (nodes * num_components + k * num_nodes)
                        for t in range(num_nodes):
                            one += marginal[place, t] * extra[start, source + 3 * t + 1]
                            other += marginal[place, t] * extra[start, source + 3 * t + 2]
                    else:
                        var = entries[start, first[variable] + 1, k]
                        for t in range(num_nodes):
                            z = hermite_z[nodes_of, t]
                            one += marginal[place, t] * z
                            other += marginal[place, t] * (z * z - 1.0)
                        one /= math.sqrt(var)
                        other /= 2.0 * var
                    buffer[start, to, k] = scale * one
                    buffer[start, to + 1, k] = scale * other


@njit(cache=True, nogil=True, inline="always")
def _walk(arity, size, local, omega, marginal, index, product, mass):
    """The sum of weight * log q over the grid; fills marginal (slot, point) with the sums over all
    other slots."""
    num_components = product.shape[1]
    last = arity - 1
    for place in range(arity):
        index[place] = 0
        for t in range(size[place]):
            marginal[place, t] = 0.0
    mass[0] = 1.0
    total = 0.0
    level = 0
    while True:
        for place in range(level, last):
            t = index[place]
            mass[place + 1] = mass[place] * omega[place, t]
            for j in range(num_components):
                product[place + 1, j] = product[place, j] * local[place, t, j]
        outer = mass[last]
        if outer > 0.0:
            here = 0.0
            for t in range(size[last]):
                weight = outer * omega[last, t]
                if weight > 0.0:
                    density = 0.0
                    for j in range(num_components):
                        density += product[last, j] * local[last, t, j]
                    term = weight * math.log(max(density, TINY))
                    marginal[last, t] += term
                    here += term
            for place in range(last):
                marginal[place, index[place]] += here
            total += here
        level = last - 1
        while level >= 0:
            index[level] += 1
            if index[level] < size[level]:
                break
            index[level] = 0
            level -= 1
        if level < 0:
            return total


@njit(cache=True, nogil=True)
def product_entropy(family, first, lower, upper, multiplicity, entries, gradient, value):
    """Adds Σ_i n_i E[log q_i] of a single product to value (start, 1), and its gradient."""
    for start in range(entries.shape[0]):
        total = 0.0
        for variable in range(len(family)):
            at, n = first[variable], multiplicity[variable]
            if family[variable] == CATEGORICAL:
                for entry in range(at, first[variable + 1]):
                    p = entries[start, entry, 0]
                    if p > 0.0:
                        total += n * p * math.log(p)
                        gradient[start, entry, 0] += n * math.log(p)
            elif family[variable] == BETA:
                a, b = entries[start, at, 0], entries[start, at + 1, 0]
                both = digamma(a + b)
                log_density = (a - 1.0) * (digamma(a) - both) + (b - 1.0) * (digamma(b) - both)
                log_density -= log_beta(a, b) + math.log(upper[variable] - lower[variable])
                total += n * log_density
                shared = (a + b - 2.0) * trigamma(a + b)
                gradient[start, at, 0] += n * ((a - 1.0) * trigamma(a) - shared)
                gradient[start, at + 1, 0] += n * ((b - 1.0) * trigamma(b) - shared)
            else:
                var = entries[start, at + 1, 0]
                total -= 0.5 * n * math.log(2.0 * math.pi * math.e * var)
                gradient[start, at + 1, 0] -= 0.5 * n / var
        value[start, 0] += total
