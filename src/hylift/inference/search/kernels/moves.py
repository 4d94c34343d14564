"""Coordinate ascent over discrete variables: single flips, and chains of flips."""

import numpy as np

from hylift.inference.local.kernels import entry, part
from hylift.inference.search.kernels.reals import gather_touched, weigh_reals
from hylift.inference.search.kernels.scores import SIZE, STAMP, flip, pop, push, shift_real
from hylift.inference.search.state import LONGEST
from hylift.numerics.kernels import inner

UNBROKEN = 1e-9
"""Multiplicities that differ by less than this break as much."""


@inner
def better(broken, gain, best_broken, best_gain):
    """Compare two moves: first by what they break, then by their gain."""
    if broken < best_broken - UNBROKEN:
        return True
    return broken <= best_broken + UNBROKEN and gain > best_gain


@part
def weigh(terms, search, v, state, n):
    """Weigh a flip: what it breaks more, what it gains if reals stay and what more if they do not.

    The first `n` reals are near already; returns their number with those of the flip as well.
    """
    old, record = np.int64(search.x[v]), terms.variable[v]
    was, becomes = search.score[record.scores + old], search.score[record.scores + state]
    broken, gain, shifted = becomes.broken - was.broken, becomes.value - was.value, 0.0
    if n > 0 or record.split < record.last:
        change, shifted, n = weigh_reals(terms, search, v, state - old, n)
        gain += change
    return broken, gain, shifted, n


@part
def best_flip(terms, search, v):
    """The best other state of a variable, with what it breaks more and gains."""
    best, best_broken, best_gain = np.int64(-1), np.inf, -np.inf
    for state in range(terms.variable[v].num_states):
        if state != search.x[v]:
            broken, gain, shifted, _ = weigh(terms, search, v, state, np.int64(0))
            if better(broken, gain + shifted, best_broken, best_gain):
                best, best_broken, best_gain = state, broken, gain + shifted
    return best, best_broken, best_gain


@entry
def ascend(terms, search, place, most):
    """Takes single flips that gain, and then chains of those variables from `place` on.

    A chain begins with any flip, and goes on with the best flip beside it while that gains. Its
    first two flips are the best pair of those that share a term. Returns where to go on after
    looking at so many variables, how many these were, and how many flips and chains were taken.
    """
    looked, taken = 0, 0
    while looked < most:
        length, n = np.int64(0), np.int64(0)
        if search.counts[SIZE] > 0:
            looked += 1
            v = pop(search)
            best, broken, gain = best_flip(terms, search, v)
            if best >= 0 and better(broken, gain, 0.0, terms.least):
                search.chain[0, 0], search.chain[0, 1] = v, best
                length += 1
        else:
            if place == len(search.x):
                break
            v = place
            place += 1
            record = terms.variable[v]
            if not search.mark[v].stale or record.num_states < 2:
                continue
            search.mark[v].stale = 0
            if not record.movable or not _has_company(terms, v):
                continue
            looked += 1
            old, state = np.int64(search.x[v]), np.int64(0)
            while length == 0 and state < record.num_states:
                if state != old:
                    length = _follow(terms, search, v, state)
                state += 1
        if length == 0:
            continue
        taken += 1
        for k in range(length):  # all but the last flip first: then the reals near them move
            v, state = search.chain[k, 0], search.chain[k, 1]
            if k == length - 1:
                n = weigh(terms, search, v, state, gather_touched(terms, search, k))[3]
            flip(terms, search, v, state, np.int64(1))
            push(search.mark, search.lists, search.counts, v, np.uint8(1))
        for i in range(n):
            if search.shift[i] != 0.0:
                shift_real(terms, search, search.near[i].real, search.shift[i])
    return place, looked, taken


@part
def _has_company(terms, v):
    """Return True if a discrete variable shares a term with another one."""
    found = False
    for k in range(terms.variable[v].first, terms.variable[v].last):
        term = terms.term[terms.incidence[k].term]
        found |= term.middle - term.first > 1
    return found


@part
def _follow(terms, search, v, state):
    """The length of the best chain that begins with a flip; 0 if none gains."""
    chain, length, size = search.chain, np.int64(0), np.int64(0)
    broken, gain, shifted, _ = weigh(terms, search, v, state, np.int64(0))
    best_length, best_broken, best_gain = np.int64(0), 0.0, terms.least
    search.counts[STAMP] += 1
    search.mark[v].stamp = search.counts[STAMP]
    while True:
        chain[length, 0], chain[length, 1] = v, np.int64(search.x[v])
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
        chain[k, 1] = np.int64(search.x[u])
        flip(terms, search, u, back, np.int64(0))
    return best_length


@part
def _add_beside(terms, search, v, size):
    """Lists the discrete variables that share a term with one; returns how many are listed."""
    for k in range(terms.variable[v].first, terms.variable[v].last):
        term = terms.term[terms.incidence[k].term]
        for e in range(term.first, term.middle):
            u = terms.entry[e].variable
            if search.mark[u].stamp != search.counts[STAMP] and terms.variable[u].movable:
                search.mark[u].stamp = search.counts[STAMP]
                search.lists[1, size] = u
                size += 1
    return size


@part
def _best_beside(terms, search, size, length):
    """The best flip beside a chain: its place in the list, state, what it breaks more, what it
    gains if reals stay, and what all reals near the longer chain gain then."""
    best, best_state, best_broken = np.int64(-1), np.int64(0), np.inf
    best_gain, best_shifted = -np.inf, 0.0
    near = np.int64(-1)
    for i in range(size):
        v = np.int64(search.lists[1, i])
        for state in range(terms.variable[v].num_states):
            if state == search.x[v]:
                continue
            if near != 0:  # weighing the last flip has changed them
                near = gather_touched(terms, search, length)
            broken, gain, shifted, _ = weigh(terms, search, v, state, near)
            if better(broken, gain + shifted, best_broken, best_gain + best_shifted):
                best, best_state, best_broken = i, state, broken
                best_gain, best_shifted = gain, shifted
    return best, best_state, best_broken, best_gain, best_shifted
