"""Discrete variables.

Log-weights of their states, draws, and groups of variables that are tied together.
"""

import numpy as np

from hylift.inference.local.kernels import entry, inner
from hylift.inference.local.kernels.terms import term_value
from hylift.inference.sampling.kernels.arrays import STALE


@inner
def log_density(terms, x, joint):
    """Sum of all terms."""
    total = 0.0
    for t in range(len(terms.term)):
        total += terms.term[t].multiplicity * term_value(terms, x, t, joint[t])
    return total


@inner
def weigh_tables(terms, x, joint, weight, v, num_states):
    """Fills in the log-weights of the states of a variable by its tables alone."""
    for state in range(num_states):
        weight[state] = 0.0
    for k in range(terms.variable[v].first, terms.variable[v].split):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        first = terms.term[t].base + joint[t] - np.int64(x[v]) * stride
        for state in range(num_states):
            weight[state] += terms.term[t].multiplicity * terms.theta[first + state * stride]


@inner
def normalise(weight, num_states):
    """Turns log-weights into probabilities."""
    top = -np.inf
    for state in range(num_states):
        top = max(top, weight[state])
    total = 0.0
    for state in range(num_states):
        weight[state] = np.exp(weight[state] - top)
        total += weight[state]
    for state in range(num_states):
        weight[state] /= total


@inner
def choose(weight, num_states, rng):
    """A state with these probabilities."""
    left = rng.random()
    chosen = np.int64(0)
    for state in range(num_states):
        if weight[state] > 0.0:  # by rounding, something may be left after the last
            chosen = np.int64(state)
            left -= weight[state]
            if left < 0.0:
                break
    return chosen


@inner
def flip(terms, of_term, x, joint, known, v, state):
    """Puts a variable into another state, so that nothing is known of the Gaussians next to it."""
    if put(terms, x, joint, v, state):
        forget(terms, of_term, known, v)


@inner
def put(terms, x, joint, v, state):
    """Changes a state, and the joint states of its terms; whether it was another one."""
    step = state - np.int64(x[v])
    if step == 0:
        return False
    x[v] = state
    for k in range(terms.variable[v].first, terms.variable[v].last):
        joint[terms.incidence[k].term] += step * np.int64(terms.incidence[k].stride)
    return True


@inner
def forget(terms, of_term, known, v):
    """Marks the components whose Gaussians depend on a variable."""
    for k in range(terms.variable[v].split, terms.variable[v].last):
        known[of_term[terms.incidence[k].term]] = STALE


@inner
def add_quadratic(terms, reals, chain, t, joint, m):
    """Adds m times a quadratic in a joint state to the precision and linear part of its reals."""
    first = terms.term[t].middle
    size = terms.term[t].last - first
    A = terms.term[t].base + joint * size * size
    b = terms.term[t].base + terms.term[t].num_joint * size * size + joint * size
    pair = terms.term[t].pair
    for i in range(size):
        v = reals.step[terms.entry[first + i].variable]
        chain.diagonal[v] -= 2.0 * m * terms.theta[A + i * size + i]
        chain.linear[v] += m * terms.theta[b + i]
        for j in range(i + 1, size):
            edge = reals.pair_edge[terms.pair_of[pair]]
            chain.edges[edge] -= 2.0 * m * terms.theta[A + i * size + j]
            pair += 1


@entry
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
