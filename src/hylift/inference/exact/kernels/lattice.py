"""Conditional quadratics of promoted reals: bounds on their curvature, and tables on lattices.

Terms are laid out as in `inference.terms.Terms`: A of all joint states, then b, then c.
"""

import math

import numpy as np
from numba import njit

from hylift.inference.exact.kernels.quadratics import SAME, add_quadratic, shared_part

MAX_SWEEPS = 12
"""Sweeps of Jacobi's method; it converges quadratically."""


@njit(cache=True)
def curvature(slot_ptr, slots, num_discrete, num_joint, base, multiplicity, theta, row, found):
    """Adds to found (real,) the largest precision that each term gives its reals in any state."""
    for t in range(len(base)):
        middle = slot_ptr[t] + num_discrete[t]
        size = slot_ptr[t + 1] - middle
        at_c = base[t] + num_joint[t] * size * (size + 1)
        for i in range(size):
            most = -np.inf
            for s in range(num_joint[t]):
                if theta[at_c + s] > -np.inf:
                    most = max(most, -2.0 * theta[base[t] + (s * size + i) * size + i])
            if most > -np.inf:
                found[row[slots[middle + i]]] += multiplicity[t] * most


@njit(cache=True)
def _largest(matrix, size):
    """An upper bound on the largest eigenvalue: Jacobi's rotations, then Gershgorin's circles."""
    a = matrix.copy()
    for _ in range(MAX_SWEEPS if size > 1 else 0):
        off = 0.0
        for p in range(size):
            for q in range(p + 1, size):
                off = max(off, abs(a[p, q]))
                if a[p, q] == 0.0:
                    continue
                angle = 0.5 * math.atan2(2.0 * a[p, q], a[q, q] - a[p, p])
                c, s = math.cos(angle), math.sin(angle)
                for k in range(size):
                    first, second = a[k, p], a[k, q]
                    a[k, p], a[k, q] = c * first - s * second, s * first + c * second
                for k in range(size):
                    first, second = a[p, k], a[q, k]
                    a[p, k], a[q, k] = c * first - s * second, s * first + c * second
        if off <= 1e-14 * abs(np.trace(a)):
            break
    most = -np.inf
    for i in range(size):
        total = a[i, i]
        for j in range(size):
            if j != i:
                total += abs(a[i, j])
        most = max(most, total)
    return most


@njit(cache=True)
def _precision(theta, at, size, unit, here, into):
    """The precision of a term in one state, its reals in their units."""
    for i in range(size):
        for j in range(size):
            into[i, j] = -2.0 * theta[at + i * size + j] * unit[here[i]] * unit[here[j]]


@njit(cache=True)
def eigenvalues(
    slot_ptr, slots, num_discrete, num_joint, base, multiplicity, theta, row, unit, found
):  # fmt: skip
    """Adds to found (real,) an upper bound on the largest eigenvalue of each term's precision in
    any state, in units (real,) of its reals."""
    for t in range(len(base)):
        middle = slot_ptr[t] + num_discrete[t]
        size = slot_ptr[t + 1] - middle
        at_c = base[t] + num_joint[t] * size * (size + 1)
        here, matrix = row[slots[middle : slot_ptr[t + 1]]], np.empty((size, size))
        most = -np.inf
        for s in range(num_joint[t]):
            if size and theta[at_c + s] > -np.inf:
                _precision(theta, base[t] + s * size * size, size, unit, here, matrix)
                most = max(most, _largest(matrix, size))
        if most > -np.inf:
            for i in range(size):
                found[here[i]] += multiplicity[t] * most


@njit(cache=True)
def floors(
    slot_ptr, slots, num_discrete, num_joint, base, multiplicity, theta, row, unit, center,
    start, forms, slope,
):  # fmt: skip
    """Writes a quadratic of each term, flatter than it is in any state, to forms from `start` on,
    and adds to slope (real,) the largest slope at the center (real,) in any state."""
    for t in range(len(base)):
        middle = slot_ptr[t] + num_discrete[t]
        size = slot_ptr[t + 1] - middle
        at_b = base[t] + num_joint[t] * size * size
        at_c = at_b + num_joint[t] * size
        here = row[slots[middle : slot_ptr[t + 1]]]
        flat, other, steep = np.zeros((size, size)), np.empty((size, size)), np.zeros(size)
        least, flattest = np.inf, -1
        for s in range(num_joint[t]):
            if not theta[at_c + s] > -np.inf:
                continue
            _precision(theta, base[t] + s * size * size, size, unit, here, other)
            trace = 0.0
            for i in range(size):
                trace += other[i, i]
                pull = theta[at_b + s * size + i]
                for j in range(size):
                    pull += 2.0 * theta[base[t] + (s * size + i) * size + j] * center[here[j]]
                steep[i] = max(steep[i], abs(pull))
            if trace < least:
                least, flattest = trace, s
                flat[:] = other
        excess, below_zero = 0.0, 0.0
        for s in range(num_joint[t]):
            if theta[at_c + s] > -np.inf:
                _precision(theta, base[t] + s * size * size, size, unit, here, other)
                below_zero = max(below_zero, _largest(-other, size))
                if s != flattest:
                    excess = max(excess, _largest(flat - other, size))
        if excess > SAME * max(least, 0.0):  # no state is flattest in all directions
            flat[:] = 0.0
            excess = below_zero
        for i in range(size):
            slope[here[i]] += multiplicity[t] * steep[i]
            flat[i, i] -= excess
            for j in range(size):
                scale = -0.5 * multiplicity[t] / (unit[here[i]] * unit[here[j]])
                forms[start[t] + i * size + j] = scale * flat[i, j]


@njit(cache=True)
def shared_parts(slot_ptr, slots, num_discrete, num_joint, base, multiplicity, theta, row, found):
    """Adds to found (real, 3) the parts that all states of terms of one real share: a, and b on
    the left and on the right."""
    for t in range(len(base)):
        middle = slot_ptr[t] + num_discrete[t]
        if slot_ptr[t + 1] - middle == 1:
            a, low, high = shared_part(theta, base[t], num_joint[t])
            found[row[slots[middle]], 0] += multiplicity[t] * a
            found[row[slots[middle]], 1] += multiplicity[t] * low
            found[row[slots[middle]], 2] += multiplicity[t] * high


@njit(cache=True)
def least_curvature(slot_ptr, num_discrete, num_joint, base, multiplicity, theta, found):
    """Writes to found (slot,) the least precision that a term of several reals gives its real in
    any state; 0 for all other slots."""
    for t in range(len(base)):
        middle = slot_ptr[t] + num_discrete[t]
        size = slot_ptr[t + 1] - middle
        at_c = base[t] + num_joint[t] * size * (size + 1)
        for i in range(size if size > 1 else 0):
            least = np.inf
            for s in range(num_joint[t]):
                if theta[at_c + s] > -np.inf:
                    least = min(least, -2.0 * theta[base[t] + (s * size + i) * size + i])
            found[middle + i] = multiplicity[t] * least if least < np.inf else 0.0


@njit(cache=True)
def _root(parent, real):
    """The root of the tree that a real is in."""
    while parent[real] != real:
        parent[real] = parent[parent[real]]
        real = parent[real]
    return real


@njit(cache=True)
def match(order, term, real, curvature, reals_ptr, reals, found):
    """Gives reals a term each that holds them most: found (real,) is its curvature.

    The terms form a forest: on a cycle, reals could move together. order: of pairs of a term and a
    real, the largest curvature first; reals: of each term
    """
    parent = np.arange(len(found))
    is_taken = np.zeros(len(reals_ptr) - 1, dtype=np.bool_)
    for pair in order:
        t = term[pair]
        if is_taken[t] or curvature[pair] <= found[real[pair]]:
            continue
        apart = True
        for i in range(reals_ptr[t], reals_ptr[t + 1]):
            for j in range(reals_ptr[t], i):
                apart = apart and _root(parent, reals[i]) != _root(parent, reals[j])
        if not apart:
            continue
        is_taken[t] = True
        found[real[pair]] = curvature[pair]
        for i in range(reals_ptr[t] + 1, reals_ptr[t + 1]):
            parent[_root(parent, reals[i])] = _root(parent, reals[reals_ptr[t]])


@njit(cache=True)
def tabulate(
    slot_ptr, slots, num_discrete, num_joint, base, multiplicity, theta, num_states, points,
    num_nodes, low, high, start, table,
):  # fmt: skip
    """Writes each term, times its multiplicity, as a table over its states and those of its reals.

    num_states, points, num_nodes: (variable,), of reals their first point and nodes
    """
    most = np.max(np.diff(slot_ptr)) if len(base) else 0
    room = np.empty((6, most), dtype=np.int64)
    for t in range(len(base)):
        own = slots[slot_ptr[t] : slot_ptr[t + 1]]
        for axis in range(len(own)):
            v = own[axis]
            room[0, axis], room[1, axis] = v, num_states[v]
            room[4, axis], room[5, axis] = points[v], num_nodes[v]
        values = table[start[t] : start[t + 1]]
        if len(own) == num_discrete[t]:
            values[:] = multiplicity[t] * theta[base[t] : base[t] + len(values)]
            continue
        values[:] = 0.0
        add_quadratic(
            theta, base[t], num_joint[t], multiplicity[t], own, num_discrete[t], np.bool_(True),
            room, 0, len(own), low, high, values,
        )  # fmt: skip


@njit(cache=True)
def expand(
    of_step, count, promoted_ptr, promoted, num_free, state_ptr, state_low, real_ptr, response_ptr,
    mean, var, response, new_ptr, new_mean, new_var,
):  # fmt: skip
    """Writes means and variances of free reals at every joint state of promoted ones."""
    most = 0
    for c in range(len(count)):
        most = max(most, promoted_ptr[c + 1] - promoted_ptr[c])
    digit = np.zeros(most, dtype=np.int64)
    for v in range(num_free):
        c = of_step[v]
        beside = promoted[promoted_ptr[c] : promoted_ptr[c + 1]]
        total = 1
        for p in beside:
            total *= state_ptr[p - num_free + 1] - state_ptr[p - num_free]
        for s in range(count[c]):
            digit[:] = 0
            for k in range(total):
                value = mean[real_ptr[v] + s]
                for i in range(len(beside)):
                    x = state_low[state_ptr[beside[i] - num_free] + digit[i]]
                    value += response[response_ptr[v] + i * count[c] + s] * x
                new_mean[new_ptr[v] + s * total + k] = value
                new_var[new_ptr[v] + s * total + k] = var[real_ptr[v] + s]
                i = len(beside) - 1
                while i >= 0:
                    digit[i] += 1
                    r = beside[i] - num_free
                    if digit[i] < state_ptr[r + 1] - state_ptr[r]:
                        break
                    digit[i] = 0
                    i -= 1
