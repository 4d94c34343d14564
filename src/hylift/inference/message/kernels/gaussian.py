"""Messages between quadratics and reals, in information form.

Entry 0 of a message is a precision J, entry 1 a linear part h: exp(-½ J x² + h x). Of what is known
of a variable in total, entry 2 is the mean, and entry 3 the standard deviation. The
diagonals and linear parts of all factors are the variables' own, so factors have nothing but
couplings.
"""

import math

import numpy as np
from numba import njit

IMPROPER = -1.0
"""The change of a step after which some density has no integral."""

ROUNDING = 16 * 2.0**-52
"""Relative change of a message that is taken for rounding."""


@njit(cache=True, nogil=True)
def gather(begin, end, variable_ptr, order, count, own, message, total):
    """Adds up all messages to variables and their own part; returns whether all are proper."""
    proper = True
    for v in range(begin, end):
        precision, linear = own[v, 0], own[v, 1]
        for k in range(variable_ptr[v], variable_ptr[v + 1]):
            link = order[k]
            precision += count[link] * message[link, 0]
            linear += count[link] * message[link, 1]
        total[v, 0], total[v, 1] = precision, linear
        if 0.0 < precision < np.inf and abs(linear) < np.inf:
            total[v, 2], total[v, 3] = linear / precision, 1.0 / math.sqrt(precision)
        else:
            proper = False
    return proper


@njit(cache=True, nogil=True, inline="always")
def couple(start, arity, at, variable, theta, message, total, joint, linear):
    """Writes the lower half of a factor's precision with the messages of its variables, and the
    linear part of that."""
    for i in range(arity):
        v = variable[start + i]
        for j in range(i):
            joint[i, j] = -2.0 * theta[at + i * arity + j]
        joint[i, i] = total[v, 0] - message[start + i, 0]
        linear[i] = total[v, 1] - message[start + i, 1]


@njit(cache=True, nogil=True)
def invert(matrix, size):
    """Overwrites a symmetric matrix, given by its lower half, by its inverse; returns half the
    logarithm of its determinant, or NaN where it is not positive definite.

    By sweeps: each solves for one variable in terms of the others.
    """
    half = 0.0
    for k in range(size):
        pivot = matrix[k, k]
        if not 0.0 < pivot < np.inf:
            return np.nan
        half += 0.5 * math.log(pivot)
        for i in range(size):
            if i != k:
                own = (matrix[i, k] if i > k else matrix[k, i]) / pivot
                for j in range(i + 1):
                    if j != k:
                        matrix[i, j] -= own * (matrix[j, k] if j > k else matrix[k, j])
        for i in range(k):
            matrix[k, i] /= pivot
        for i in range(k + 1, size):
            matrix[i, k] /= pivot
        matrix[k, k] = -1.0 / pivot
    for i in range(size):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = -matrix[i, j]
    return half


@njit(cache=True, nogil=True)
def integrate(start, arity, at, variable, theta, message, total, joint, linear, new):
    """New messages of a factor of any arity; returns whether they are proper.

    With Σ the inverse of the joint precision and m its mean, the integral over all slots but s
    leaves J = Σ_t w_st Σ_ts / Σ_ss and h = J m_s - Σ_t w_st m_t, t ≠ s: one inverse serves all
    slots, and the variable's own message need not be subtracted.
    """
    couple(start, arity, at, variable, theta, message, total, joint, linear)
    if math.isnan(invert(joint, arity)):
        return False
    for s in range(arity):
        precision, pull, mean = 0.0, 0.0, 0.0
        for t in range(arity):
            mean += joint[s, t] * linear[t]
            if t != s:
                weight = -2.0 * theta[at + s * arity + t]
                precision += weight * joint[s, t]
                for u in range(arity):
                    pull += weight * joint[t, u] * linear[u]
        precision /= joint[s, s]
        new[start + s, 0] = precision
        new[start + s, 1] = precision * mean - pull
    return True


@njit(cache=True, nogil=True)
def send(
    begin, end, room, factor_ptr, variable, base, theta, message, total, damping, new
):  # fmt: skip
    """Writes new messages of some factors; returns the largest change before damping, in parts of
    a belief's precision or of its standard deviation, or IMPROPER.

    room: the largest arity, at least 2.
    """
    joint, linear, unsure = np.empty((room, room)), np.empty(room), np.empty(room)
    largest = 0.0
    for c in range(begin, end):
        start, at = factor_ptr[c], base[c]
        arity = factor_ptr[c + 1] - start
        if arity == 2:
            weight = -2.0 * theta[at + 1]
            for s in range(2):
                v, link = variable[start + s], start + s
                told = total[v, 0] - message[link, 0]
                if not told > 0.0:
                    return IMPROPER
                other = start + 1 - s
                # What is left of a difference has fewer digits than what it was made of.
                unsure[1 - s] = ROUNDING * (1.0 + total[v, 0] / told)
                new[other, 0] = -weight * weight / told
                new[other, 1] = -weight * (total[v, 1] - message[link, 1]) / told
        else:
            if not integrate(start, arity, at, variable, theta, message, total, joint, linear, new):
                return IMPROPER
            for s in range(arity):
                unsure[s] = ROUNDING
        for link in range(start, start + arity):
            v = variable[link]
            mean, sd, digits = total[v, 2], total[v, 3], unsure[link - start]
            here, there = new[link, 0], new[link, 1]
            wider = abs(here - message[link, 0]) - digits * abs(here)
            moved = abs(there - message[link, 1] - mean * (here - message[link, 0]))
            moved -= digits * (abs(there) + abs(mean * here))
            change = sd * max(sd * wider, moved)
            if not change < np.inf:
                return IMPROPER
            largest = max(largest, change)
            new[link, 0] = here + damping * (message[link, 0] - here)
            new[link, 1] = there + damping * (message[link, 1] - there)
    return largest
