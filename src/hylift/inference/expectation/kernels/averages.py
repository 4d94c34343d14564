"""Sites averaged over independent states, and tables of what covariances are worth to states."""

import numpy as np
from numba import njit

from hylift.inference.expectation.kernels.sites import next_state


@njit(cache=True, nogil=True)
def averages(begin, end, some, sites, slots, first, probs, most, precision, linear, constant):
    """Fill precision -2 E[A], linear part E[b] and constant E[c] of some sites; probs: (point,);
    most: discrete slots of a site, at most."""
    state, theta = np.zeros(most, dtype=np.int64), sites.theta
    for number in range(begin, end):
        c = some[number]
        site = sites.site[c]
        r, low, n, at, matrix = site.dim, site.slots, site.num_discrete, site.at, site.matrix
        at_b = site.base + site.num_joint * r * r
        at_c = at_b + site.num_joint * r
        precision[matrix : matrix + r * r] = 0.0
        linear[at : at + r] = 0.0
        constant[c] = 0.0
        state[:n] = 0
        for joint in range(site.num_joint):
            p = 1.0
            for place in range(n):
                p *= probs[first[slots[low + place]] + state[place]]
            if p > 0.0:
                constant[c] += p * theta[at_c + joint]
                if theta[at_c + joint] > -np.inf:
                    for a in range(r):
                        linear[at + a] += p * theta[at_b + joint * r + a]
                    for a in range(r * r):
                        precision[matrix + a] -= 2.0 * p * theta[site.base + joint * r * r + a]
            next_state(state, sites.place, low, n)


@njit(cache=True, nogil=True)
def expected_tables(begin, end, some, sites, vectors, matrices, is_whole, table_ptr, table):
    """Fill the tables of some sites with A · matrix + b · vector + c of each joint state; c is left
    out, and what is impossible is 0, unless they are to be whole."""
    theta = sites.theta
    for number in range(begin, end):
        site = sites.site[some[number]]
        r = site.dim
        at_b = site.base + site.num_joint * r * r
        at_c = at_b + site.num_joint * r
        for joint in range(site.num_joint):
            total = theta[at_c + joint] if is_whole else 0.0
            if theta[at_c + joint] > -np.inf:
                for a in range(r * r):
                    total += theta[site.base + joint * r * r + a] * matrices[site.matrix + a]
                for a in range(r):
                    total += theta[at_b + joint * r + a] * vectors[site.at + a]
            table[table_ptr[number] + joint] = total


@njit(cache=True, nogil=True)
def sweep_states(
    order, ptr, slot_of, term, slot_ptr, slots, num_discrete, stride, multiplicity, members, first,
    table_ptr, table, logs, probs,
):  # fmt: skip
    """Move the probabilities of each variable to their best given those of all others, where terms
    have these tables; logs: scratch for the states of a variable."""
    for v in order:
        size = first[v + 1] - first[v]
        logs[:size] = 0.0
        for place in range(ptr[v], ptr[v + 1]):
            slot = slot_of[place]
            c = term[slot]
            for joint in range(table_ptr[c + 1] - table_ptr[c]):
                p, own = multiplicity[c] / members[v], 0
                for other in range(slot_ptr[c], slot_ptr[c] + num_discrete[c]):
                    u = slots[other]
                    state = (joint // stride[other]) % (first[u + 1] - first[u])
                    if other == slot:
                        own = state
                    else:
                        p *= probs[first[u] + state]
                if p > 0.0:
                    logs[own] += p * table[table_ptr[c] + joint]
        top = logs[:size].max()
        if top > -np.inf:
            total = 0.0
            for state in range(size):
                probs[first[v] + state] = np.exp(logs[state] - top)
                total += probs[first[v] + state]
            for state in range(size):
                probs[first[v] + state] /= total


@njit(cache=True, nogil=True)
def spread_draws(ptr, later, factor, pivot, draws):
    """Turn standard normal draws (draw, step) into draws with a precision of these factors LDLᵀ."""
    for draw in range(len(draws)):
        for v in range(len(pivot) - 1, -1, -1):
            value = draws[draw, v] / np.sqrt(pivot[v])
            for e in range(ptr[v], ptr[v + 1]):
                value -= factor[e] * draws[draw, later[e]]
            draws[draw, v] = value
