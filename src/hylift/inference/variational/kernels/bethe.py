"""Entropies of scopes under a mixture, on grids of nodes and states, and their gradients."""

from hylift.components.kernels import allocating, part
from hylift.numerics.kernels.special import take_logs

TINY = 1e-300


@allocating
def bethe_block(
    begin, end, slot_ptr, slots, num_reals, coefficient, scope_set, set_nodes, first, entries,
    weights, table_row, row_start, table, nodes, target, shift, size, local, logs, room,
    gradient, value,
):  # fmt: skip
    """Add coefficient * E[log q] of the scopes begin … end, given each component, to value (start,
    component, 0), and its gradients, times the component's weight, to gradient (start, entry,
    component).

    The gradient is the quadrature of log q times the score, not the derivative of the quadrature.
    scope_set: (scope,), which set of nodes its reals have; table_row: (set, variable), the row of
    `tabulate`, which has filled table and nodes; target, shift as for `energy_block`. Scratch: size
    (slot,), local (component + 2, slot, point), logs and room (point,).
    """
    # Behind the densities of all components, the weights of points, and sums over other slots.
    num_components = omega = weights.shape[1]
    marginal = omega + 1
    for start in range(weights.shape[0]):
        for scope in range(begin, end):
            # Reals stand behind the discrete slots, and have the most points: the last come first.
            final = slot_ptr[scope + 1] - 1
            arity = final + 1 - slot_ptr[scope]
            reals = num_reals[scope]
            num_nodes = set_nodes[scope_set[scope]]
            for place in range(reals):
                size[place] = num_nodes
            for place in range(reals, arity):
                at = first[slots[final - place]]
                size[place] = first[slots[final - place] + 1] - at
                for t in range(size[place]):
                    for j in range(num_components):
                        local[j, place, t] = entries[start, at + t, j]
            for k in range(num_components):
                for place in range(reals):
                    row = row_start[table_row[scope_set[scope], slots[final - place]]]
                    at = row * num_components + k * num_nodes
                    for t in range(num_nodes):
                        local[omega, place, t] = nodes[start, 3 * (at + t)]
                    for j in range(num_components):
                        source = at * num_components + j * num_nodes
                        for t in range(num_nodes):
                            local[j, place, t] = table[start, source + t]
                for place in range(reals, arity):
                    for t in range(size[place]):
                        local[omega, place, t] = local[k, place, t]
                if k == 0 or reals > 0:  # else the points are those of the component before
                    num_points = size[0]
                    for place in range(1, arity):
                        num_points *= size[place]
                    for point in range(num_points):
                        logs[point] = TINY
                    for j in range(num_components):
                        _spread(arity, size, weights[start, j], local, j, room)
                        for point in range(num_points):
                            logs[point] += room[point]
                    take_logs(logs, num_points)
                total = _integral(arity, size, logs, local, omega, marginal, room)
                value[start, k, 0] += coefficient[scope] * total
                scale = coefficient[scope] * weights[start, k]
                for place in range(reals):
                    row = row_start[table_row[scope_set[scope], slots[final - place]]]
                    at = 3 * (row * num_components + k * num_nodes)
                    one, other = 0.0, 0.0
                    for t in range(num_nodes):
                        one += local[marginal, place, t] * nodes[start, at + 3 * t + 1]
                        other += local[marginal, place, t] * nodes[start, at + 3 * t + 2]
                    to = target[final - place] - shift
                    gradient[start, to, k] += scale * one
                    gradient[start, to + 1, k] += scale * other
                for place in range(reals, arity):
                    to = target[final - place] - shift
                    for t in range(size[place]):
                        if local[omega, place, t] > 0.0:
                            gradient[start, to + t, k] += (
                                scale * local[marginal, place, t] / local[omega, place, t]
                            )


@part
def _integral(arity, size, logs, local, omega, marginal, room):
    """The sum of weight * log q over the grid of a scope, for the weights in local[omega] (slot,
    point); fill local[marginal] with the sums over all other slots.

    Here and below, inner loops go over many points without branches, for processors that take
    several at once.
    """
    num_points = _spread(arity, size, 1.0, local, omega, room)
    for point in range(num_points):
        room[point] *= logs[point]
    for place in range(arity - 1, 0, -1):  # summed out one after the other
        num_points //= size[place]
        for t in range(size[place]):
            row = room[t * num_points : (t + 1) * num_points]
            total = 0.0
            for point in range(num_points):
                total += row[point]
            local[marginal, place, t] = total
        for t in range(1, size[place]):
            row = room[t * num_points : (t + 1) * num_points]
            for point in range(num_points):
                room[point] += row[point]
    total = 0.0
    for point in range(num_points):
        local[marginal, 0, point] = room[point]
        total += room[point]
    return total


@part
def _spread(arity, size, scale, factors, j, grid):
    """Fill grid (point,) with scale times the products of factors (component, slot, point of the
    slot) of component j, the points of the first slot next to each other; return their number."""
    num_points = size[0]
    for point in range(num_points):
        grid[point] = scale * factors[j, 0, point]
    for place in range(1, arity):
        for t in range(1, size[place]):
            factor = factors[j, place, t]
            row = grid[t * num_points : (t + 1) * num_points]
            for point in range(num_points):
                row[point] = grid[point] * factor
        factor = factors[j, place, 0]
        for point in range(num_points):
            grid[point] *= factor
        num_points *= size[place]
    return num_points
