"""Hard tables: which variables they tie together, and a walk to where none is broken."""

import numpy as np
from numba import njit

from hylift.inference.sampling.kernels.inner import inner
from hylift.inference.sampling.kernels.states import put
from hylift.inference.search.kernels.walk import note_broken


@njit(cache=True, nogil=True, _nrt=False)
def tie(ptr, members, log_states, most, parent):
    """Unites the members of each scope, in turn, where their group stays small enough.

    log_states: (variable,), of each group at its root; `parent` is each variable itself at first,
    and afterwards the root of its group.
    """
    for s in range(len(ptr) - 1):
        total = 0.0
        root = np.int64(-1)
        for k in range(ptr[s], ptr[s + 1]):
            other = _root(parent, members[k])
            is_new = True
            for j in range(ptr[s], k):
                is_new &= _root(parent, members[j]) != other
            if is_new:
                total += log_states[other]
                root = other
        if total > most:
            continue
        for k in range(ptr[s], ptr[s + 1]):
            parent[_root(parent, members[k])] = root
        if root >= 0:
            log_states[root] = total
    for v in range(len(parent)):
        parent[v] = _root(parent, v)


@inner
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return np.int64(v)


@njit(cache=True, nogil=True, _nrt=False)
def wander(terms, x, joint, room, rng, most):
    """Flips variables of broken tables until none is broken; whether that was so within `most`.

    One half of the flips are random ones, the others break least; nothing else draws the walk
    anywhere, so that walks from several starts end in several places. room: (2, table), scratch.
    """
    broken, place = room[0], room[1]
    size = np.int64(0)
    for t in range(terms.num_tables):
        place[t] = -1
        size = note_broken(terms, joint, t, broken, place, size)
    for _ in range(most):
        if size == 0:
            break
        t = broken[np.int64(rng.random() * size)]
        v, state = _choose_flip(terms, x, joint, t, rng)
        if v < 0:
            continue
        put(terms, x, joint, v, state)
        for k in range(terms.variable[v].first, terms.variable[v].split):
            t = np.int64(terms.incidence[k].term)
            size = note_broken(terms, joint, t, broken, place, size)
    return size == 0


@inner
def _choose_flip(terms, x, joint, t, rng):
    """A variable of a table and another state of it; -1 if the variable has no other."""
    first, last = terms.term[t].first, terms.term[t].last
    if rng.random() < 0.5:
        v = np.int64(terms.entry[first + np.int64(rng.random() * (last - first))].variable)
        others = terms.variable[v].num_states - 1
        if others == 0:
            return np.int64(-1), np.int64(0)
        step = 1 + np.int64(rng.random() * others)
        return v, (np.int64(x[v]) + step) % (others + 1)
    best_v, best_state, best, alike = np.int64(-1), np.int64(0), np.inf, 0
    for e in range(first, last):
        v = np.int64(terms.entry[e].variable)
        for state in range(terms.variable[v].num_states):
            if state == np.int64(x[v]):
                continue
            count = _count_broken(terms, x, joint, v, state)
            if count < best:
                best, alike = count, 0
            if count == best:
                # Of flips that are alike, each is taken with the same probability.
                alike += 1
                if rng.random() * alike < 1.0:
                    best_v, best_state = v, np.int64(state)
    return best_v, best_state


@inner
def _count_broken(terms, x, joint, v, state):
    """Tables of a variable that are broken in a state of it."""
    count = 0.0
    for k in range(terms.variable[v].first, terms.variable[v].split):
        t = terms.incidence[k].term
        step = (state - np.int64(x[v])) * np.int64(terms.incidence[k].stride)
        count += terms.theta[terms.term[t].base + joint[t] + step] == -np.inf
    return count
