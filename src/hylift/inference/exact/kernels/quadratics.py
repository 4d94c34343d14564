"""Conditional quadratics at the nodes and cells of lattices."""

import numpy as np
from numba import njit

from hylift.inference.exact.kernels.boxes import as_square, highest, highest_of_many, highest_of_two

SAME = 1e-9
"""Relative difference of curvatures that count as equal."""


@njit(cache=True)
def shared_part(theta, base, num_joint):
    """The part a x² + b x of a term of one real that is taken out of all its states: the flattest
    a, with the least of its b (for cells on the left) and the largest (on the right), so that it
    bounds the state that matters there. Summed over terms it bounds tails better than each alone.
    """
    at_b, at_c = base + num_joint, base + 2 * num_joint
    a, low, high, found = 0.0, 0.0, 0.0, False
    for s in range(num_joint):
        if theta[at_c + s] > -np.inf:
            own, b = theta[base + s], theta[at_b + s]
            if not found or own > a + SAME * abs(a):
                a, low, high, found = own, b, b, True
            elif own >= a - SAME * abs(a):
                low, high = min(low, b), max(high, b)
    return a, low, high


@njit(cache=True)
def _add_along(theta, at_A, at_b, constant, times, size, i, shared, x, low, high, line, onto):
    """Adds a quadratic along its real i, the others being at nodes x.

    line: the first point of the real, the first of its states and the last, its nodes, its cells on
    the left, and the place of the first state in the table and the distance of two
    """
    point, first, last, num_nodes, num_left, at, step = line
    a, b, c = theta[at_A + i * size + i] - shared[0], theta[at_b + i], constant
    for j in range(size):
        if j == i:
            continue
        b += 2.0 * theta[at_A + i * size + j] * x[j]
        slope = theta[at_b + j]
        for k in range(size):
            if k != i:
                slope += theta[at_A + j * size + k] * x[k]
        c += slope * x[j]
    a, c = times * a, times * c
    left, right = times * (b - shared[1]), times * (b - shared[2])
    nodes = min(last, num_nodes)
    for k in range(first, nodes):
        y = low[point + k]
        onto[at + (k - first) * step] += c + (a * y + right) * y
    for k in range(max(first, num_nodes), last):
        slope = left if k < num_nodes + num_left else right
        above = highest(a, slope, low[point + k], high[point + k])
        onto[at + (k - first) * step] += c + above


@njit(cache=True)
def _add_beside_cell(theta, at_A, at_b, constant, times, i, begin, end, low, high, line, onto):
    """The same for a quadratic of two reals, the other one in a cell from begin to end."""
    point, first, last, num_nodes, _, at, step = line
    a, q, r = theta[at_A + 3 * i], theta[at_A + 1], theta[at_A + 3 - 3 * i]
    b, slope, other = theta[at_b + i], theta[at_b + 1 - i], 1 - i
    for k in range(first, min(last, num_nodes)):
        y = low[point + k]
        above = highest(r, slope + 2.0 * q * y, begin[other], end[other])
        onto[at + (k - first) * step] += times * (constant + (a * y + b) * y + above)
    for k in range(max(first, num_nodes), last):
        begin[i], end[i] = low[point + k], high[point + k]
        above = highest_of_two(theta, theta, at_A, at_b, begin, end)
        onto[at + (k - first) * step] += times * (constant + above)


@njit(cache=True)
def _slots_on_axes(slots, num_discrete, room, width):
    """(slot,): its axis, and its stride among the joint states of discrete slots."""
    axis_of, stride = np.empty(len(slots), dtype=np.int64), np.zeros(len(slots), dtype=np.int64)
    step = 1
    for i in range(len(slots) - 1, -1, -1):
        for axis in range(width):
            if room[0, axis] == slots[i]:
                axis_of[i] = axis
        if i < num_discrete:
            stride[i] = step
            step *= room[1, axis_of[i]]
    return axis_of, stride


@njit(cache=True)
def add_quadratic(
    theta, base, num_joint, times, slots, num_discrete, whole, room, start, width, low, high, onto
):  # fmt: skip
    """Adds a conditional quadratic to a table at all joint states of the axes from `start` on.

    At a node it has its value, at a cell an upper bound on it. Unless `whole`, terms of one real
    leave out their `shared_part`. theta: A of all joint states, then b, then c, from `base` on
    room: (6, axis), the variables, their numbers of states, strides (unused), digits (those before
    `start` are given), the first of their points, and how many of these are nodes
    """
    if times == 0.0:
        return
    axis_of, stride = _slots_on_axes(slots, num_discrete, room, width)
    num_reals = len(slots) - num_discrete
    along = np.argmax(axis_of[num_discrete:])
    line_axis = axis_of[num_discrete + along]
    shared = (0.0, 0.0, 0.0)
    if num_reals == 1 and not whole:
        shared = shared_part(theta, base, num_joint)
    at_b = base + num_joint * num_reals * num_reals
    at_c = at_b + num_joint * num_reals
    begin, end, spare = np.zeros(num_reals), np.zeros(num_reals), np.empty(10)
    squares = np.zeros((num_joint, num_reals + 3))
    for s in range(num_joint if num_reals > 2 else 0):
        own_A, own_b = base + s * num_reals * num_reals, at_b + s * num_reals
        as_square(theta, own_A, own_b, num_reals, squares[s])
    point, num_nodes, step, outer = room[4, line_axis], room[5, line_axis], 1, 1
    first, last, num_left = 0, room[1, line_axis], (room[1, line_axis] - num_nodes) // 2
    for axis in range(start, width):
        room[3, axis] = 0
        outer *= room[1, axis] if axis != line_axis else 1
        step *= room[1, axis] if axis > line_axis else 1
    if line_axis < start:
        first, last = room[3, line_axis], room[3, line_axis] + 1
    at = 0
    for _ in range(outer):
        local, num_cells = 0, 0
        for i in range(num_discrete):
            local += stride[i] * room[3, axis_of[i]]
        for i in range(num_reals):
            axis = axis_of[num_discrete + i]
            here = room[4, axis] + room[3, axis]
            begin[i], end[i] = low[here], high[here]
            num_cells += i != along and room[3, axis] >= room[5, axis]
        own_A, own_b = base + local * num_reals * num_reals, at_b + local * num_reals
        line = (point, first, last, num_nodes, num_left, at, step)
        if num_cells == 0:
            _add_along(
                theta, own_A, own_b, theta[at_c + local], times, num_reals, along, shared, begin,
                low, high, line, onto,
            )  # fmt: skip
        elif num_reals == 2:
            _add_beside_cell(
                theta, own_A, own_b, theta[at_c + local], times, along, begin, end, low, high,
                line, onto,
            )  # fmt: skip
        else:
            for k in range(first, last):
                begin[along], end[along] = low[point + k], high[point + k]
                above = highest_of_many(
                    theta, own_A, own_b, num_reals, squares[local], begin, end, spare
                )
                onto[at + (k - first) * step] += times * (theta[at_c + local] + above)
        size = 1
        for axis in range(width - 1, start - 1, -1):
            if axis != line_axis:
                room[3, axis] += 1
                at += size
                if room[3, axis] < room[1, axis]:
                    break
                at -= size * room[1, axis]
                room[3, axis] = 0
            size *= room[1, axis]
