"""Expected energies of tables and quadratics, entropies of scopes on grids, and their gradients."""

import numpy as np

from hylift.components.kernels import allocating, kernel, part
from hylift.components.kernels.steps import to_optimum
from hylift.numerics.kernels.special import take_logs

ZERO = np.int64(0)
"""Not a literal, for which kernels would be compiled once more."""


@kernel
def energy_block(
    begin, end, slot_ptr, slots, num_discrete, base, multiplicity, theta, hard, part,
    first, moments, weights, target, shift, first_part, state, prefix, gradient, value,
):  # fmt: skip
    """Add the expected energies of the terms begin … end to value (start, part, component), from
    first_part on, and their gradients, times the component's weight, to gradient (start, entry,
    component).

    part: (term,). moments: (start, entry, component): mean and variance
    of reals, probabilities of states. hard: the energy of what is impossible. target - shift:
    (slot,), the first entry of its gradient. state, prefix: scratch for the slots of a term.
    """
    prefix[0] = 1.0
    for start in range(weights.shape[0]):
        for k in range(weights.shape[2]):
            for term in range(begin, end):
                value[start, part[term] - first_part, k] += _term_energy(
                    slot_ptr[term], slot_ptr[term + 1], num_discrete[term], base[term],
                    multiplicity[term], slots, theta, hard, first, moments, start, k,
                    weights[start, part[term], k], target, shift, gradient, state, prefix,
                )  # fmt: skip


@part
def _term_energy(
    low, high, num_discrete, base, multiplicity, slots, theta, hard, first, moments,
    start, k, weight, target, shift, gradient, state, prefix,
):  # fmt: skip
    middle = low + num_discrete
    num_reals = high - middle
    num_joint = 1
    for slot in range(low, middle):
        num_joint *= first[slots[slot] + 1] - first[slots[slot]]
        state[slot - low] = 0
    at_b = base + num_joint * num_reals * num_reals
    at_c = at_b + num_joint * num_reals
    scale = -multiplicity * weight
    total = 0.0
    for joint in range(num_joint):
        # Probability of the joint state, and of all slots but one.
        for place in range(num_discrete):
            p = moments[start, first[slots[low + place]] + state[place], k]
            prefix[place + 1] = prefix[place] * p
        probability = prefix[num_discrete]
        expected = theta[at_c + joint]
        if expected == -np.inf:
            expected = -hard
        else:
            for i in range(num_reals):
                at_i = first[slots[middle + i]]
                mean = moments[start, at_i, k]
                row = base + (joint * num_reals + i) * num_reals
                linear = theta[at_b + joint * num_reals + i]
                square = theta[row + i]
                slope = linear
                for j in range(num_reals):
                    slope += 2.0 * theta[row + j] * moments[start, first[slots[middle + j]], k]
                expected += 0.5 * mean * (linear + slope) + square * moments[start, at_i + 1, k]
                at = target[middle + i] - shift
                gradient[start, at, k] += scale * probability * slope
                gradient[start, at + 1, k] += scale * probability * square
        if probability > 0.0:
            total += probability * expected
        behind = 1.0
        for place in range(num_discrete - 1, -1, -1):
            others = prefix[place] * behind
            if others > 0.0:
                at = target[low + place] - shift + state[place]
                gradient[start, at, k] += scale * others * expected
            behind *= moments[start, first[slots[low + place]] + state[place], k]
        for place in range(num_discrete - 1, -1, -1):  # the next joint state
            variable = slots[low + place]
            state[place] += 1
            if state[place] < first[variable + 1] - first[variable]:
                break
            state[place] = 0
    return -multiplicity * total


@kernel
def scatter(begin, end, slot_ptr, slots, first, source, buffer, gradient):
    """Add the gradients of a block's slots, which lie one after the other in its buffer, to the
    gradient (start, entry, component); source: (slot + 1,)."""
    low, high = slot_ptr[begin], slot_ptr[end]
    for start in range(gradient.shape[0]):
        for slot in range(low, high):
            at = first[slots[slot]] - source[slot]
            for entry in range(source[slot], source[slot + 1]):
                for k in range(gradient.shape[2]):
                    gradient[start, at + entry, k] += buffer[start, entry - source[low], k]


@kernel
def sweep(
    order, edge_ptr, edge, term_of, slot_ptr, slots, num_discrete, base, term_multiplicity, theta,
    hard, family, first, lower, upper, least_var, most_var, multiplicity, source, damping, state,
    prefix, gradient, slope, entries, change,
):  # fmt: skip
    """Move each variable of single products, entries (start, entry, 1), to its optimum given the
    others; fill change (start,) with the largest change: of a mean in standard deviations, or of
    a probability.

    order: the variables to move. damping: (start,), the share of the way to go, in natural
    parameters; starts of share 0 stay. source: (slot + 1,), as for `scatter`. Scratch: gradient
    (start, entry of a term, 1), slope (entry of a variable,), state and prefix.
    """
    prefix[0] = 1.0
    for start in range(entries.shape[0]):
        largest = change[start] = 0.0
        if damping[start] == 0.0:
            continue
        for number in range(len(order)):
            variable = order[number]
            at, end = first[variable], first[variable + 1]
            for entry in range(end - at):
                slope[entry] = 0.0
            for place in range(edge_ptr[variable], edge_ptr[variable + 1]):
                slot = edge[place]
                term = term_of[slot]
                low, high = slot_ptr[term], slot_ptr[term + 1]
                for entry in range(source[high] - source[low]):
                    gradient[start, entry, 0] = 0.0
                _term_energy(
                    low, high, num_discrete[term], base[term], term_multiplicity[term], slots,
                    theta, hard, first, entries, start, ZERO, 1.0, source, source[low], gradient,
                    state, prefix,
                )  # fmt: skip
                for entry in range(end - at):
                    slope[entry] += gradient[start, source[slot] - source[low] + entry, 0]
            moved = to_optimum(
                family[variable], start, at, end, slope, multiplicity[variable], damping[start],
                lower[variable], upper[variable], least_var[variable], most_var[variable], entries,
            )  # fmt: skip
            largest = max(largest, moved)
        change[start] = largest


TINY = 1e-300


@allocating
def bethe_block(
    begin, end, slot_ptr, slots, num_reals, coefficient, part, scope_set, set_nodes, first, entries,
    weights, table_row, row_start, table, nodes, target, shift, first_part, size, local, logs, room,
    gradient, value,
):  # fmt: skip
    """Add coefficient * E[log q] of the scopes begin … end, given each component, to value (start,
    part, component), from first_part on, and its gradients, times the component's weight, to
    gradient (start, entry, component).

    The gradient is the quadrature of log q times the score, not the derivative of the quadrature.
    scope_set: (scope,), which set of nodes its reals have; table_row: (set, variable), the row of
    `tabulate`, which has filled table and nodes; target, shift as for `energy_block`. Scratch: size
    (slot,), local (component + 2, slot, point), logs and room (point,).
    """
    # Behind the densities of all components, the weights of points, and sums over other slots.
    num_components = omega = weights.shape[2]
    marginal = omega + 1
    for start in range(weights.shape[0]):
        for scope in range(begin, end):
            # Reals stand behind the discrete slots, and have the most points: the last come first.
            final = slot_ptr[scope + 1] - 1
            arity = final + 1 - slot_ptr[scope]
            reals, of = num_reals[scope], part[scope]
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
                        _spread(arity, size, weights[start, of, j], local, j, room)
                        for point in range(num_points):
                            logs[point] += room[point]
                    take_logs(logs, num_points)
                total = _integral(arity, size, logs, local, omega, marginal, room)
                value[start, of - first_part, k] += coefficient[scope] * total
                scale = coefficient[scope] * weights[start, of, k]
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
