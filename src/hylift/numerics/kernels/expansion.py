"""Quadratics expanded at points, and the digits that this loses.

A quadratic has A (row, joint state, real, real), b (row, joint state, real), c (row, joint state);
points are x (factor, joint state, real), or (factor, 1, real) where all states have the same.
Sums are kept in two numbers each, so that terms may cancel: what is lost is a rounding of the
result, and of the terms no more than the square of that.
"""

import math

import numpy as np
from numba import njit

from hylift.numerics.kernels import inner

EPS = 2.0**-52
LEAST = 1e-308
"""Stands for a probability that has underflowed."""
SPLIT, LARGEST = 2.0**27 + 1.0, 2.0**960


@inner
def _added(high, low, term):
    """(high + low) + term, in two numbers (Knuth)."""
    total = high + term
    other = total - high
    return total, low + ((high - (total - other)) + (term - other))


@inner
def _product(x, y):
    """x · y in two numbers (Dekker); very large ones in one."""
    found = x * y
    if not (abs(x) < LARGEST and abs(y) < LARGEST and abs(found) < LARGEST):
        return found, 0.0
    of_x, of_y = SPLIT * x, SPLIT * y
    x_high, y_high = of_x - (of_x - x), of_y - (of_y - y)
    x_low, y_low = x - x_high, y - y_high
    return found, ((x_high * y_high - found) + x_high * y_low + x_low * y_high) + x_low * y_low


@inner
def _common(at):
    """The first of some numbers, where all others differ from it by exact numbers; else 0."""
    for i in range(1, len(at)):
        off = at[i] - at[0]
        if off + at[0] != at[i] or at[i] - off != at[0]:
            return 0.0
    return at[0] if len(at) else 0.0


@inner
def _expanded(A, b, c, at, slope):
    """The value of a quadratic in one state at a point, the size of its terms of b and c, and that
    of its squares; writes its slopes, and the sizes of their terms, to slope (3, real).

    All reals move by what they have in common, then each by the rest: sums of coefficients are
    often 0.
    """
    value, rest, size, squares, tilt = c, 0.0, abs(c), 0.0, 0.0
    if not at.any():  # as of most models: the coefficients themselves
        for i in range(len(at)):
            slope[0, i], slope[1, i], slope[2, i] = b[i], abs(b[i]), 0.0
        return value, size, squares
    common, total, total_rest = _common(at), 0.0, 0.0
    for i in range(len(at)):
        along, along_rest, high, low, most = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(len(at)):
            along, along_rest = _added(along, along_rest, A[i, j])
            term, more = _product(A[i, j], at[j] - common)
            high, low = _added(high, low, term)
            low += more
            most += abs(term)
        term, more = _product(along, common)
        high, low = _added(high, low, term)
        low += more + along_rest * common
        most += abs(term)
        # Of the value, x_i (b_i + (A x)_i); the slope has (A x)_i twice.
        own, below = _added(high, low, b[i])
        total, total_rest = _added(total, total_rest, own)
        total_rest += below
        term, more = _product(own, at[i] - common)
        value, rest = _added(value, rest, term)
        rest += more + below * (at[i] - common)
        tilt += b[i]
        size += abs(b[i] * (at[i] - common))
        squares += abs(at[i]) * most
        own, below = _added(2.0 * high, 2.0 * low, b[i])
        slope[0, i], slope[1, i], slope[2, i] = own + below, abs(b[i]), 2.0 * most
    term, more = _product(total, common)
    value, rest = _added(value, rest, term)
    value += rest + more + total_rest * common
    return value, size + abs(tilt * common), squares


@inner
def _has_one_weight(A):
    """True if all entries that are not 0 have the same size."""
    most = 0.0
    for i in range(len(A)):
        for j in range(len(A)):
            most = max(most, abs(A[i, j]))
    for i in range(len(A)):
        for j in range(len(A)):
            if A[i, j] != 0.0 and abs(A[i, j]) != most:
                return False
    return True


@njit(cache=True)
def expand(A, b, c, row, x, new_b, new_c):
    """Writes slopes and values at points x to new_b and new_c."""
    slope = np.empty((3, x.shape[2]))
    for f in range(len(row)):
        r = row[f]
        for s in range(c.shape[1]):
            at, constant = x[f, min(s, x.shape[1] - 1)], c[r, s]
            is_possible = constant > -math.inf
            value, _, _ = _expanded(A[r, s], b[r, s], constant if is_possible else 0.0, at, slope)
            new_b[f, s] = slope[0]
            new_c[f, s] = value if is_possible else constant


@inner
def _sizes(A, b, c, at, size, slope):
    """Sizes to which rounding errors of a quadratic in one state are proportional: of its value at
    a point, and of the other terms at a distance size (real,) from it."""
    value, given, squares = _expanded(A, b, c, at, slope)
    # Coefficients have been rounded each by itself, but for squares of one weight, such as those of
    # x - y - z: there all have the same error.
    share = EPS if _has_one_weight(A) else 1.0
    value, moving = abs(value) + given + share * squares, 0.0
    for i in range(len(at)):
        bend = 0.0
        for j in range(len(at)):
            bend += abs(A[i, j]) * size[j]
        moving += size[i] * (abs(slope[0, i]) + slope[1, i] + share * slope[2, i] + bend)
    return value, moving


@njit(cache=True)
def lost(A, b, c, row, x, size, multiplicity, first, num_states, probs, own, by_part):
    """The sum over factors of the sizes of their terms, weighted by the probability of states;
    adds to by_part what can change the odds of states.

    size: (factor, real), distances from x; first: (factor, discrete slot), where the states of
    its variable begin in probs; own: (factor,), its part. Without probs the largest size counts.
    A state is at most as probable as its least probable variable, but for what rounding may have
    taken from it. Terms without reals change no odds where one state is certain.
    """
    total = 0.0
    count = c.shape[1]
    values, weights, slope = np.empty(count), np.empty(count), np.empty((3, x.shape[2]))
    for f in range(len(row)):
        r, best, most, moved = row[f], 0, 0.0, 0.0
        for s in range(count):
            values[s], weights[s] = 0.0, 0.0
            if c[r, s] == -np.inf:
                continue
            weights[s], rest = 1.0, s
            if len(probs):
                for k in range(len(num_states) - 1, -1, -1):
                    weights[s] = min(weights[s], probs[first[f, k] + rest % num_states[k]])
                    rest //= num_states[k]
            at = x[f, min(s, x.shape[1] - 1)]
            values[s], moving = _sizes(A[r, s], b[r, s], c[r, s], at, size[f], slope)
            if len(probs):
                lifted = math.log(max(weights[s], LEAST)) + EPS * (values[s] + moving)
                weights[s] = max(weights[s], math.exp(min(lifted, 0.0)))
                total += multiplicity[f] * weights[s] * (values[s] + moving)
            most = max(most, values[s] + moving)
            moved += weights[s] * moving
            if weights[s] > weights[best]:
                best = s
        if not len(probs):
            total += multiplicity[f] * most
        for s in range(count):
            if s != best:
                moved += 2.0 * weights[s] * (values[s] + values[best])
        if own[f] >= 0:
            by_part[own[f]] += multiplicity[f] * moved
    return total
