"""Entropies of scopes under a mixture, on grids of nodes and states, and their gradients."""

import math

import numpy as np
from numba import njit

from hylift.components.family import BETA, CATEGORICAL
from hylift.numerics.kernels.special import take_logs

TINY = 1e-300


@njit(cache=True, nogil=True, error_model="numpy")
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
    most, longest, most_points = 1, hermite_z.shape[1], 1
    for scope in range(begin, end):
        most = max(most, slot_ptr[scope + 1] - slot_ptr[scope])
        points = 1
        for slot in range(slot_ptr[scope], slot_ptr[scope + 1]):
            variable = slots[slot]
            num_states = first[variable + 1] - first[variable]
            longest = max(longest, num_states)
            discrete = family[variable] == CATEGORICAL
            points *= num_states if discrete else set_nodes[scope_set[scope]]
        most_points = max(most_points, points)
    num_components = weights.shape[1]
    size = np.empty(most, dtype=np.int64)
    local = np.empty((num_components, most, longest))
    omega = np.empty((most, longest))
    marginal = np.empty((most, longest))
    logs = np.empty(most_points)
    room = np.empty(most_points)
    shift = grad_ptr[slot_ptr[begin]]
    for start in range(weights.shape[0]):
        for scope in range(begin, end):
            # Reals stand behind the discrete slots, and have the most points: the last come first.
            final = slot_ptr[scope + 1] - 1
            arity = final + 1 - slot_ptr[scope]
            nodes_of = scope_set[scope]
            num_nodes = set_nodes[nodes_of]
            has_reals = False
            for place in range(arity):
                variable = slots[final - place]
                discrete = family[variable] == CATEGORICAL
                has_reals |= not discrete
                size[place] = first[variable + 1] - first[variable] if discrete else num_nodes
                if discrete:
                    for t in range(size[place]):
                        for j in range(num_components):
                            local[j, place, t] = entries[start, first[variable] + t, j]
            for k in range(num_components):
                for place in range(arity):
                    variable = slots[final - place]
                    if family[variable] == CATEGORICAL:
                        for t in range(size[place]):
                            omega[place, t] = local[k, place, t]
                        continue
                    nodes = row_start[table_row[nodes_of, variable]]
                    source = (nodes * num_components + k * num_nodes) * num_components
                    for j in range(num_components):
                        for t in range(num_nodes):
                            local[j, place, t] = table[start, source + j * num_nodes + t]
                    if family[variable] == BETA:
                        source = 3 * (nodes * num_components + k * num_nodes)
                        for t in range(num_nodes):
                            omega[place, t] = extra[start, source + 3 * t]
                    else:
                        for t in range(num_nodes):
                            omega[place, t] = hermite_w[nodes_of, t]
                if k == 0 or has_reals:  # else the points are those of the component before
                    _fill_logs(arity, size, weights[start], local, logs, room)
                total = _integral(arity, size, logs, omega, marginal, room)
                value[start, k] += coefficient[scope] * total
                scale = coefficient[scope] * weights[start, k]
                for place in range(arity):
                    variable = slots[final - place]
                    to = grad_ptr[final - place] - shift
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


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _fill_logs(arity, size, weights, local, logs, room):
    """Fills logs (point,) with log q over the grid of a scope, from local (component, slot, point):
    densities of its slots.

    Here and below, inner loops go over many points without branches, for processors that take
    several at once. room: (point,), scratch.
    """
    num_points = _spread(arity, size, weights[0], local[0], logs)
    for j in range(1, len(weights)):
        _spread(arity, size, weights[j], local[j], room)
        for point in range(num_points):
            logs[point] += room[point]
    for point in range(num_points):
        logs[point] += TINY
    take_logs(logs, num_points)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _integral(arity, size, logs, omega, marginal, room):
    """The sum of weight * log q over the grid of a scope, for weights omega (slot, point); fills
    marginal (slot, point) with the sums over all other slots."""
    num_points = _spread(arity, size, 1.0, omega, room)
    for point in range(num_points):
        room[point] *= logs[point]
    for place in range(arity - 1, 0, -1):  # summed out one after the other
        num_points //= size[place]
        for t in range(size[place]):
            row = room[t * num_points : (t + 1) * num_points]
            total = 0.0
            for point in range(num_points):
                total += row[point]
            marginal[place, t] = total
        for t in range(1, size[place]):
            row = room[t * num_points : (t + 1) * num_points]
            for point in range(num_points):
                room[point] += row[point]
    total = 0.0
    for point in range(num_points):
        marginal[0, point] = room[point]
        total += room[point]
    return total


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _spread(arity, size, scale, factors, grid):
    """Fills grid (point,) with scale times the products of factors (slot, point of the slot), the
    points of the first slot next to each other; returns how many points there are."""
    num_points = size[0]
    for point in range(num_points):
        grid[point] = scale * factors[0, point]
    for place in range(1, arity):
        for t in range(1, size[place]):
            factor = factors[place, t]
            row = grid[t * num_points : (t + 1) * num_points]
            for point in range(num_points):
                row[point] = grid[point] * factor
        factor = factors[place, 0]
        for point in range(num_points):
            grid[point] *= factor
        num_points *= size[place]
    return num_points
