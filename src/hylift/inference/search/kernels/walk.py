"""A walk towards assignments that break no hard table."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels.flips import RANDOM, flip, push
from hylift.inference.search.kernels.moves import better


@njit(cache=True, nogil=True, _nrt=False)
def repair(terms, search, room, most):
    """Flips variables of broken tables, the least harmful ones most often; whether none is left.

    Min-conflicts with a share of random flips, at most so many. room: (2, table), scratch.
    """
    broken, place = room[0], room[1]
    size = np.int64(0)
    for t in range(terms.num_tables):
        place[t] = -1
        size = note_broken(terms, search.joint, t, broken, place, size)
    for _ in range(most):
        if size == 0:
            break
        t = broken[_random(search) % size]
        v, state = _choose(terms, search, t)
        if v < 0:
            continue
        flip(terms, search, v, state, np.int64(1))
        push(search, v, np.uint8(1))
        for k in range(terms.variable[v].first, terms.variable[v].split):
            t = np.int64(terms.incidence[k].term)
            size = note_broken(terms, search.joint, t, broken, place, size)
    return size == 0


@njit(cache=True, nogil=True, _nrt=False)
def note_broken(terms, joint, t, broken, place, size):
    """Keeps the list of broken tables; returns its length. joint: (term,), joint states."""
    is_broken = terms.theta[terms.term[t].base + joint[t]] == -np.inf
    if is_broken and place[t] < 0:
        broken[size] = t
        place[t] = size
        return size + 1
    if not is_broken and place[t] >= 0:
        last = broken[size - 1]
        broken[place[t]] = last
        place[last] = place[t]
        place[t] = -1
        return size - 1
    return size


@njit(cache=True, nogil=True, _nrt=False)
def _choose(terms, search, t):
    """A flip of a variable of a table: the one that breaks least, or any."""
    first, last = terms.term[t].first, terms.term[t].last
    if _random(search) % 8 == 0:
        v = np.int64(terms.entry[first + _random(search) % (last - first)].variable)
        if terms.variable[v].num_states < 2 or not terms.variable[v].movable:
            return -1, 0
        step = 1 + _random(search) % (terms.variable[v].num_states - 1)
        return v, (np.int64(search.value[v].x) + step) % terms.variable[v].num_states
    best_v, best_state, best_broken, best_gain = -1, 0, np.inf, -np.inf
    for e in range(first, last):
        v = np.int64(terms.entry[e].variable)
        if not terms.variable[v].movable:
            continue
        at = terms.variable[v].scores
        old = np.int64(search.value[v].x)
        for state in range(terms.variable[v].num_states):
            if state == old:
                continue
            broken = search.score[at + state].broken - search.score[at + old].broken
            gain = search.score[at + state].value - search.score[at + old].value
            if better(broken, gain, best_broken, best_gain):
                best_v, best_state, best_broken, best_gain = v, state, broken, gain
    return best_v, best_state


@njit(cache=True, nogil=True, _nrt=False)
def _random(search):
    """The next of a fixed sequence of numbers that look random."""
    value = search.counts[RANDOM] * 6364136223846793005 + 1442695040888963407
    search.counts[RANDOM] = value
    return (value >> 33) & 0x7FFFFFFF
