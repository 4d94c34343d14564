"""Quadratics expanded at points, and the digits that this loses.

A quadratic has A (row, joint state, real, real), b (row, joint state, real), c (row, joint state);
points are x (factor, joint state, real), or (factor, 1, real) where all states have the same.
All reals move by the first, then each by its difference: sums of coefficients are often 0.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def expand(A, b, c, row, x, new_b, new_c):
    """Writes slopes and values at points x to new_b and new_c."""
    size = x.shape[2]
    for f in range(len(row)):
        r = row[f]
        for s in range(c.shape[1]):
            at = x[f, min(s, x.shape[1] - 1)]
            ref, value, slope = at[0], c[r, s], 0.0
            for i in range(size):
                slope += b[r, s, i]
                along, apart = 0.0, 0.0
                for j in range(size):
                    along += A[r, s, i, j]
                    apart += A[r, s, i, j] * (at[j] - ref)
                new_b[f, s, i] = b[r, s, i] + 2.0 * (along * ref + apart)
                off = at[i] - ref
                value += b[r, s, i] * off + along * ref * (ref + 2.0 * off) + apart * off
            new_c[f, s] = value + slope * ref


@njit(cache=True)
def _sizes(A, b, c, r, s, x, size, f):
    """Sizes of the terms of a factor in one state: those of its value at x, and of the others at
    a distance (real,) from x."""
    at = x[f, min(s, x.shape[1] - 1)]
    ref, value, moving, slope = at[0] if len(at) else 0.0, abs(c[r, s]), 0.0, 0.0
    for i in range(len(at)):
        slope += b[r, s, i]
        along, apart, bend = 0.0, 0.0, 0.0
        for j in range(len(at)):
            along += A[r, s, i, j]
            apart += abs(A[r, s, i, j] * (at[j] - ref))
            bend += abs(A[r, s, i, j]) * size[f, j]
        off = abs(at[i] - ref)
        value += abs(b[r, s, i]) * off + abs(along * ref) * (abs(ref) + 2.0 * off) + apart * off
        moving += size[f, i] * (abs(b[r, s, i]) + 2.0 * (abs(along * ref) + apart) + bend)
    return value + abs(slope * ref), moving


@njit(cache=True)
def lost(A, b, c, row, x, size, multiplicity, first, num_states, probs, own, by_part):
    """The sum over factors of the sizes of their terms, weighted by the probability of states;
    adds to by_part what can change the odds of states.

    size: (factor, real), distances from x; first: (factor, discrete slot), where the states of
    its variable begin in probs; own: (factor,), its part. Without probs the largest size counts.
    A state is at most as probable as its least probable variable. Terms without reals change no
    odds where one state is certain.
    """
    total = 0.0
    count = c.shape[1]
    values, weights = np.empty(count), np.empty(count)
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
            values[s], moving = _sizes(A, b, c, r, s, x, size, f)
            if len(probs):
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
