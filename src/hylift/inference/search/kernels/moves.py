"""Coordinate ascent over single discrete variables."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels.flips import (
    SIZE,
    flip,
    pop,
    push,
    shift_real,
)
from hylift.inference.search.kernels.near_reals import best_shift, gather_flip

UNBROKEN = 1e-9
"""Multiplicities that differ by less than this break as much."""


@njit(cache=True, nogil=True, _nrt=False)
def better(broken, gain, best_broken, best_gain):
    """Whether a move is better than another: first by what it breaks, then by its gain."""
    if broken < best_broken - UNBROKEN:
        return True
    return broken <= best_broken + UNBROKEN and gain > best_gain


@njit(cache=True, nogil=True, _nrt=False)
def weigh(terms, search, v, state, n):
    """What a flip breaks more, what it gains if reals stay and what more if they do not.

    The first `n` reals are near already; returns their number with those of the flip as well.
    """
    old = np.int64(search.value[v].x)
    first = terms.variable[v].scores
    broken = search.score[first + state].broken - search.score[first + old].broken
    gain = search.score[first + state].value - search.score[first + old].value
    if terms.variable[v].split < terms.variable[v].last:
        n, change = gather_flip(terms, search, v, state - old, n)
        gain += change
    return broken, gain, best_shift(terms, search, n), n


@njit(cache=True, nogil=True, _nrt=False)
def best_flip(terms, search, v):
    """The best other state of a variable, with what it breaks more and gains."""
    best, best_broken, best_gain = np.int64(-1), np.inf, -np.inf
    for state in range(terms.variable[v].num_states):
        if state == search.value[v].x:
            continue
        broken, gain, shifted, _ = weigh(terms, search, v, state, np.int64(0))
        if better(broken, gain + shifted, best_broken, best_gain):
            best, best_broken, best_gain = state, broken, gain + shifted
    return best, best_broken, best_gain


@njit(cache=True, nogil=True, _nrt=False)
def take(terms, search, v, state, n):
    """Flips a variable, and moves the reals near it, and `n` others, to their optimum."""
    n = weigh(terms, search, v, state, n)[3]
    flip(terms, search, v, state, np.int64(1))
    push(search, v, np.uint8(1))
    for i in range(n):
        if search.near[i].shift != 0.0:
            shift_real(terms, search, search.near[i].real, search.near[i].shift)


@njit(cache=True, nogil=True, _nrt=False)
def ascend_singles(terms, search, most):
    """Takes flips that gain until nobody is queued, or so many variables were looked at.

    Returns the numbers of variables and of flips.
    """
    looked, taken = 0, 0
    while search.counts[SIZE] > 0 and looked < most:
        looked += 1
        v = pop(search)
        best, broken, gain = best_flip(terms, search, v)
        if best >= 0 and better(broken, gain, 0.0, terms.least):
            take(terms, search, v, best, np.int64(0))
            taken += 1
    return looked, taken
