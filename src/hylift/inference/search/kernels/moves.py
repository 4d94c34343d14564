"""Coordinate ascent over discrete variables: single flips, and chains of flips."""

import numpy as np

from hylift.inference.search.kernels import entry, inner
from hylift.inference.search.kernels.arrays import LONGEST
from hylift.inference.search.kernels.reals import best_shift, gather_flip, gather_touched
from hylift.inference.search.kernels.scores import (
    SIZE,
    STAMP,
    flip,
    pop,
    push,
    shift_real,
)

UNBROKEN = 1e-9
"""Multiplicities that differ by less than this break as much."""


@inner
def better(broken, gain, best_broken, best_gain):
    """Whether a move is better than another: first by what it breaks, then by its gain."""
    if broken < best_broken - UNBROKEN:
        return True
    return broken <= best_broken + UNBROKEN and gain > best_gain


@inner
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


@inner
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


@inner
def take(terms, search, v, state, n):
    """Flips a variable, and moves the reals near it, and `n` others, to their optimum."""
    n = weigh(terms, search, v, state, n)[3]
    flip(terms, search, v, state, np.int64(1))
    push(search, v, np.uint8(1))
    for i in range(n):
        if search.near[i].shift != 0.0:
            shift_real(terms, search, search.near[i].real, search.near[i].shift)


@inner
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


@entry
def ascend(terms, search, place, most):
    """Takes single flips that gain, and then chains of those variables from `place` on.

    A chain begins with any flip, and goes on with the best flip beside it while that gains. Its
    first two flips are the best pair of those that share a term. Returns where to go on after
    looking at so many variables, how many these were, and how many flips and chains were taken.
    """
    looked, taken = ascend_singles(terms, search, most)
    while place < len(search.value) and looked < most:
        v = place
        place += 1
        if not search.value[v].stale or terms.variable[v].num_states < 2:
            continue
        search.value[v].stale = 0
        if not terms.variable[v].movable or not _has_company(terms, v):
            continue
        looked += 1
        old = np.int64(search.value[v].x)
        for state in range(terms.variable[v].num_states):
            if state != old and _follow(terms, search, v, state):
                more, again = ascend_singles(terms, search, most)
                looked += more
                taken += again + 1
                break
    return place, looked, taken


@inner
def _has_company(terms, v):
    """Whether a discrete variable shares a term with another one."""
    for k in range(terms.variable[v].first, terms.variable[v].last):
        t = terms.incidence[k].term
        if terms.term[t].middle - terms.term[t].first > 1:
            return True
    return False


@inner
def _follow(terms, search, v, state):
    """Follows the chain that begins with a flip; whether it gained and was taken."""
    chain, length, size = search.chain, np.int64(0), np.int64(0)
    broken, gain, shifted, _ = weigh(terms, search, v, state, np.int64(0))
    best_length, best_broken, best_gain = np.int64(0), 0.0, terms.least
    search.counts[STAMP] += 1
    search.value[v].stamp = search.counts[STAMP]
    while True:
        chain[length, 0], chain[length, 1] = v, np.int64(search.value[v].x)
        flip(terms, search, v, state, np.int64(0))
        length += 1
        if length == LONGEST:
            break
        size = _add_beside(terms, search, v, size)
        place, state, more_broken, more, then = _best_beside(terms, search, size, length)
        if place < 0 or not better(more_broken, more + then - shifted, 0.0, terms.least):
            break
        broken, gain, shifted = broken + more_broken, gain + more, then
        if better(broken, gain + shifted, best_broken, best_gain):
            best_length, best_broken, best_gain = length + 1, broken, gain + shifted
        size -= 1
        v = np.int64(search.lists[1, place])
        search.lists[1, place] = search.lists[1, size]
    for k in range(length - 1, -1, -1):
        u, back = chain[k, 0], chain[k, 1]
        chain[k, 1] = np.int64(search.value[u].x)
        flip(terms, search, u, back, np.int64(0))
    if best_length:
        _take_chain(terms, search, best_length)
    return best_length > 0


@inner
def _take_chain(terms, search, length):
    chain = search.chain
    for k in range(length - 1):
        flip(terms, search, chain[k, 0], chain[k, 1], np.int64(1))
        push(search, chain[k, 0], np.uint8(1))
    n = np.int64(0)
    for k in range(length - 1):
        n = gather_touched(terms, search, chain[k, 0], n)
    take(terms, search, chain[length - 1, 0], chain[length - 1, 1], n)


@inner
def _add_beside(terms, search, v, size):
    """Lists the discrete variables that share a term with one; returns how many are listed."""
    for k in range(terms.variable[v].first, terms.variable[v].last):
        t = terms.incidence[k].term
        begin = terms.term[t].first
        for e in range(begin, terms.term[t].middle):
            u = terms.entry[e].variable
            if search.value[u].stamp != search.counts[STAMP] and terms.variable[u].movable:
                search.value[u].stamp = search.counts[STAMP]
                search.lists[1, size] = u
                size += 1
    return size


@inner
def _best_beside(terms, search, size, length):
    """The best flip beside a chain: its place in the list, state, what it breaks more, what it
    gains if reals stay, and what all reals near the longer chain gain then."""
    best, best_state, best_broken = np.int64(-1), np.int64(0), np.inf
    best_gain, best_shifted = -np.inf, 0.0
    near = np.int64(0)
    for k in range(length):
        near = gather_touched(terms, search, search.chain[k, 0], near)
    for i in range(size):
        v = np.int64(search.lists[1, i])
        for state in range(terms.variable[v].num_states):
            if state == search.value[v].x:
                continue
            n = np.int64(0)
            if near:  # weighing the last flip has changed them
                for k in range(length):
                    n = gather_touched(terms, search, search.chain[k, 0], n)
            broken, gain, shifted, _ = weigh(terms, search, v, state, n)
            if better(broken, gain + shifted, best_broken, best_gain + best_shifted):
                best, best_state, best_broken = i, state, broken
                best_gain, best_shifted = gain, shifted
    return best, best_state, best_broken, best_gain, best_shifted
