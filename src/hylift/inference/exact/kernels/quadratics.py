"""Conditional quadratics at the nodes and cells of lattices."""

import numpy as np
from numba import njit

from hylift.inference.exact.kernels.boxes import highest, highest_of_many, highest_of_two

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
def _value(theta, at_A, at_b, size, low, high):
    """A quadratic at a node, or an upper bound on it in a cell."""
    is_node = True
    for i in range(size):
        is_node = is_node and low[i] == high[i]
    if not is_node:
        if size == 1:
            return highest(theta[at_A], theta[at_b], low[0], high[0])
        if size == 2:
            return highest_of_two(theta, theta, at_A, at_b, low, high)
        return highest_of_many(theta, at_A, at_b, size, low, high)
    value = 0.0
    for i in range(size):
        slope = theta[at_b + i]
        for j in range(size):
            slope += theta[at_A + i * size + j] * low[j]
        value += slope * low[i]
    return value


@njit(cache=True)
def _add_along(theta, at_A, at_b, constant, times, size, i, low, high, begin, num_nodes, ends, row):
    """Adds a quadratic to a row along its real i, whose points are `ends` from `begin` on; the
    others are at nodes."""
    a, b, c = theta[at_A + i * size + i], theta[at_b + i], constant
    for j in range(size):
        if j == i:
            continue
        b += 2.0 * theta[at_A + i * size + j] * low[j]
        slope = theta[at_b + j]
        for k in range(size):
            if k != i:
                slope += theta[at_A + j * size + k] * low[k]
        c += slope * low[j]
    a, b, c = times * a, times * b, times * c
    nodes = ends[0][begin : begin + num_nodes]
    for k in range(num_nodes):
        row[k] += c + (a * nodes[k] + b) * nodes[k]
    for k in range(num_nodes, len(row)):
        row[k] += c + highest(a, b, ends[0][begin + k], ends[1][begin + k])


@njit(cache=True)
def _add_beside_cell(theta, at_A, at_b, constant, times, i, low, high, begin, num_nodes, ends, row):
    """The same for a quadratic of two reals, the other in a cell."""
    a, q, r = theta[at_A + 3 * i], theta[at_A + 1], theta[at_A + 3 - 3 * i]
    b, slope, other = theta[at_b + i], theta[at_b + 1 - i], 1 - i
    for k in range(num_nodes):
        y = ends[0][begin + k]
        above = highest(r, slope + 2.0 * q * y, low[other], high[other])
        row[k] += times * (constant + (a * y + b) * y + above)
    for k in range(num_nodes, len(row)):
        low[i], high[i] = ends[0][begin + k], ends[1][begin + k]
        row[k] += times * (constant + highest_of_two(theta, theta, at_A, at_b, low, high))


@njit(cache=True)
def add_quadratic(
    theta, base, num_joint, times, slots, num_discrete, whole, room, start, width, low, high,
    onto, size,
):  # fmt: skip
    """Adds a conditional quadratic to a table at all joint states of the axes from `start` on.

    At a node it has its value, at a cell an upper bound on it. Unless `whole`, terms of one real
    leave out their `shared_part`. theta: A of all joint states, then b, then c, from `base` on
    room: (6, axis), the variables, their numbers of states, strides (unused), digits (those before
    `start` are given), the first of their points, and how many of these are nodes
    """
    if times == 0.0:
        return
    num_reals, inner = len(slots) - num_discrete, width - 1
    axis_of, stride = np.empty(len(slots), dtype=np.int64), np.zeros(len(slots), dtype=np.int64)
    step, along = 1, -1
    for i in range(len(slots) - 1, -1, -1):
        for axis in range(width):
            if room[0, axis] == slots[i]:
                axis_of[i] = axis
        if i < num_discrete:
            stride[i] = step
            step *= room[1, axis_of[i]]
        elif axis_of[i] == inner:
            along = i - num_discrete
    own_stride = 0
    for i in range(num_discrete):
        if axis_of[i] == inner:
            own_stride = stride[i]
    a, left, right = 0.0, 0.0, 0.0
    if num_reals == 1 and not whole:
        a, left, right = shared_part(theta, base, num_joint)
    block, ends = room[1, inner], (low, high)
    at_b = base + num_joint * num_reals * num_reals
    at_c = at_b + num_joint * num_reals
    begin, end, form = np.zeros(num_reals), np.zeros(num_reals), np.zeros(2)
    for axis in range(start, width):
        room[3, axis] = 0
    for at in range(0, size, block):
        row = onto[at : at + block]
        local, num_cells = 0, 0
        for i in range(num_discrete):
            local += stride[i] * room[3, axis_of[i]]
        for i in range(num_reals):
            axis = axis_of[num_discrete + i]
            point = room[4, axis] + room[3, axis]
            begin[i], end[i] = low[point], high[point]
            num_cells += i != along and room[3, axis] >= room[5, axis]
        own_A, own_b = base + local * num_reals * num_reals, at_b + local * num_reals
        constant = theta[at_c + local]
        if num_reals == 1:
            for k in range(block):
                s, digit, axis = local + k * own_stride, room[3, axis_of[-1]], axis_of[-1]
                if along == 0:
                    digit = k
                    begin[0], end[0] = low[room[4, axis] + k], high[room[4, axis] + k]
                is_left = room[5, axis] <= digit < (room[1, axis] + room[5, axis]) // 2
                form[0] = theta[base + s] - a
                form[1] = theta[at_b + s] - (left if is_left else right)
                above = highest(form[0], form[1], begin[0], end[0])
                row[k] += times * (theta[at_c + s] + above)
        elif along >= 0 and num_cells == 0:
            _add_along(
                theta, own_A, own_b, constant, times, num_reals, along, begin, end,
                room[4, inner], room[5, inner], ends, row,
            )  # fmt: skip
        elif along >= 0 and num_reals == 2:
            _add_beside_cell(
                theta, own_A, own_b, constant, times, along, begin, end, room[4, inner],
                room[5, inner], ends, row,
            )  # fmt: skip
        else:
            value = 0.0
            for k in range(block):
                s = local + k * own_stride
                if along >= 0:
                    begin[along], end[along] = low[room[4, inner] + k], high[room[4, inner] + k]
                if k == 0 or along >= 0 or own_stride:
                    own_A, own_b = base + s * num_reals * num_reals, at_b + s * num_reals
                    value = _value(theta, own_A, own_b, num_reals, begin, end) + theta[at_c + s]
                row[k] += times * value
        for axis in range(inner - 1, start - 1, -1):
            room[3, axis] += 1
            if room[3, axis] < room[1, axis]:
                break
            room[3, axis] = 0
