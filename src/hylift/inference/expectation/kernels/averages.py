"""Sites averaged over independent states, and tables of what covariances are worth to states."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def averages(
    begin, end, some, slot_ptr, slots, num_discrete, num_joint, base, theta, first, probs, dim,
    dim_ptr, matrix_ptr, most, precision, linear, constant,
):  # fmt: skip
    """Fill precision -2 E[A], linear part E[b] and constant E[c] of some sites; probs: (point,);
    most: discrete slots of a site, at most."""
    state = np.zeros(most, dtype=np.int64)
    for number in range(begin, end):
        c = some[number]
        r, low, n, matrix = dim[c], slot_ptr[c], num_discrete[c], matrix_ptr[c]
        at_b = base[c] + num_joint[c] * r * r
        at_c = at_b + num_joint[c] * r
        precision[matrix : matrix_ptr[c + 1]] = 0.0
        linear[dim_ptr[c] : dim_ptr[c + 1]] = 0.0
        constant[c] = 0.0
        state[:n] = 0
        for joint in range(num_joint[c]):
            p = 1.0
            for place in range(n):
                p *= probs[first[slots[low + place]] + state[place]]
            if p > 0.0:
                constant[c] += p * theta[at_c + joint]
                if theta[at_c + joint] > -np.inf:
                    for a in range(r):
                        linear[dim_ptr[c] + a] += p * theta[at_b + joint * r + a]
                    for a in range(r * r):
                        precision[matrix + a] -= 2.0 * p * theta[base[c] + joint * r * r + a]
            for place in range(n - 1, -1, -1):  # the next joint state
                variable = slots[low + place]
                state[place] += 1
                if state[place] < first[variable + 1] - first[variable]:
                    break
                state[place] = 0


@njit(cache=True, nogil=True)
def expected_tables(
    begin, end, some, num_joint, base, theta, dim, dim_ptr, matrix_ptr, vectors, matrices, is_whole,
    table_ptr, table,
):  # fmt: skip
    """Fill the tables of some sites with A · matrix + b · vector + c of each joint state; c is left
    out, and what is impossible is 0, unless they are to be whole."""
    for number in range(begin, end):
        c = some[number]
        r = dim[c]
        at_b = base[c] + num_joint[c] * r * r
        at_c = at_b + num_joint[c] * r
        for joint in range(num_joint[c]):
            total = theta[at_c + joint] if is_whole else 0.0
            if theta[at_c + joint] > -np.inf:
                for a in range(r * r):
                    total += theta[base[c] + joint * r * r + a] * matrices[matrix_ptr[c] + a]
                for a in range(r):
                    total += theta[at_b + joint * r + a] * vectors[dim_ptr[c] + a]
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
