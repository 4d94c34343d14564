"""Which factors are satisfied, and the best assignment so far, kept while variables move."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels.flips import load, term_value
from hylift.inference.search.kernels.moves import better
from hylift.inference.walk.kernels.arrays import (
    BEST,
    BROKEN,
    CHANGED,
    NOW,
    SATISFIED,
    UNSATISFIED,
)


@njit(cache=True, nogil=True, _nrt=False)
def set_out(terms, search, factors, walk, start, fixed_broken, fixed_value):
    """Takes over an assignment: computes everything anew.

    The last two are what the factors are worth that the kernels do not know.
    """
    load(terms, search, start)
    walk.sizes[0] = 0
    walk.sizes[1] = 0
    for t in range(len(walk.status)):
        walk.status[t] = SATISFIED
    for t in range(len(walk.status)):
        _judge(factors, search, walk, t)
    broken, value = measure(factors.whole, search)
    walk.worth[NOW, 0] = broken + fixed_broken
    walk.worth[NOW, 1] = value + fixed_value
    for v in range(len(search.value)):  # all may differ from the best
        walk.changed[v] = v
        walk.is_changed[v] = 1
    walk.sizes[CHANGED] = len(search.value)


@njit(cache=True, nogil=True, _nrt=False)
def measure(terms, search):
    """The multiplicity of terms at -inf, and the sum of the others."""
    broken, total = 0.0, 0.0
    x = search.value["x"]
    for t in range(len(terms.term)):
        value = term_value(terms, x, t)
        if value == -np.inf:
            broken += terms.term[t].multiplicity
        else:
            total += terms.term[t].multiplicity * value
    return broken, total


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _judge(factors, search, walk, t):
    """Puts a factor into the list where it belongs now; one that nobody can move into none."""
    value = term_value(factors.whole, search.value["x"], t)
    new = UNSATISFIED if value < factors.enough[t] else SATISFIED
    if value == -np.inf:
        new = BROKEN
    old = walk.status[t]
    if new == old:
        return
    walk.status[t] = new
    if factors.first[t] == factors.first[t + 1]:
        return
    if old != SATISFIED:
        row = old - 1
        walk.sizes[row] -= 1
        last = walk.lists[row, walk.sizes[row]]
        walk.lists[row, walk.place[t]] = last
        walk.place[last] = walk.place[t]
    if new != SATISFIED:
        row = new - 1
        walk.lists[row, walk.sizes[row]] = t
        walk.place[t] = walk.sizes[row]
        walk.sizes[row] += 1


@njit(cache=True, nogil=True, _nrt=False)
def note_moved(factors, search, walk, v):
    """Judges the factors of a variable that moved."""
    variable = factors.whole.variable
    for k in range(variable[v].first, variable[v].last):
        _judge(factors, search, walk, np.int64(factors.whole.incidence[k].term))
    if not walk.is_changed[v]:
        walk.is_changed[v] = 1
        walk.changed[walk.sizes[CHANGED]] = v
        walk.sizes[CHANGED] += 1


@njit(cache=True, nogil=True, _nrt=False)
def keep_best(search, walk, least):
    """Keeps the assignment if it is the best so far, by at least so much; whether it is."""
    worth = walk.worth
    if not better(worth[NOW, 0], worth[NOW, 1], worth[BEST, 0], worth[BEST, 1] + least):
        return False
    for i in range(walk.sizes[CHANGED]):
        v = walk.changed[i]
        walk.best[v] = search.value[v].x
        walk.is_changed[v] = 0
    walk.sizes[CHANGED] = 0
    worth[BEST, 0], worth[BEST, 1] = worth[NOW, 0], worth[NOW, 1]
    return True
