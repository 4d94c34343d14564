"""Draws of a discrete variable together with the few reals next to it."""

import numpy as np

from hylift.inference.sampling.kernels.inner import inner
from hylift.inference.sampling.kernels.states import choose, flip, normalise, weigh_tables

SINGULAR = 1e-12
"""A pivot this small against its diagonal entry counts as zero."""


@inner
def draw_with_reals(terms, reals, chain, rng, v):
    """Draws a variable with its reals integrated out, then these reals, given all else.

    States and reals far from the present ones are thereby reached, where one after the other would
    never move. Nothing is done where the reals are no Gaussian in some state, which does not
    depend on what is drawn here. A draw beyond a bound is refused, and all stays as it was: the
    distribution without bounds is a proposal that knows nothing of the present values, and within
    the bounds it is proportional to the target.

    Returns whether `chain.weight` has the probabilities of the states: false where nothing was
    done, or where bounds come in, so that the variable is yet to be drawn by itself.
    """
    num_states, first = terms.variable[v].num_states, reals.near_ptr[v]
    size = reals.near_ptr[v + 1] - first
    _look_around(terms, reals, chain, v)
    weigh_tables(terms, chain, v, num_states)
    for state in range(num_states):
        if chain.weight[state] > -np.inf:
            log_total = _integrate(terms, reals, chain, v, state)
            if np.isnan(log_total):
                return False
            chain.weight[state] += log_total
    normalise(chain.weight, num_states)
    state = choose(chain.weight, num_states, rng)
    _integrate(terms, reals, chain, v, state)
    root, y = chain.precision, chain.linear_near
    is_bounded, is_inside = False, True
    for i in range(size - 1, -1, -1):
        value = y[1, i] + rng.standard_normal()
        for j in range(i + 1, size):
            value -= root[1, j, i] * y[1, j]
        y[1, i] = value / root[1, i, i]
        r = reals.variable[reals.near[first + i]]
        low, high = terms.variable[r].lower, terms.variable[r].upper
        is_bounded |= low > -np.inf or high < np.inf
        is_inside &= low <= y[1, i] <= high
    if is_inside:
        flip(terms, reals, chain, v, state)
        for i in range(size):
            chain.x[reals.variable[reals.near[first + i]]] = y[1, i]
    return not is_bounded


@inner
def _look_around(terms, reals, chain, v):
    """Precision and linear part of the near reals in the present state, given all others."""
    first, last = reals.near_ptr[v], reals.near_ptr[v + 1]
    P, h = chain.precision, chain.linear_near
    for i in range(last - first):
        step = reals.near[first + i]
        r = reals.variable[step]
        for j in range(last - first):
            P[0, i, j] = 0.0
        P[0, i, i] = chain.diagonal[step]
        h[0, i] = chain.linear[step]
        for k in range(terms.variable[r].links, terms.variable[r].links_end):
            other = np.int64(terms.link[k].other)
            value = chain.edges[reals.pair_edge[terms.link[k].pair]]
            j = _place(reals, v, reals.step[other])
            if j >= 0:
                P[0, i, j] = value
            else:
                h[0, i] -= value * chain.x[other]


@inner
def _place(reals, v, step):
    """Where a real stands among those near a variable, or -1."""
    for k in range(reals.near_ptr[v], reals.near_ptr[v + 1]):
        if reals.near[k] == step:
            return k - reals.near_ptr[v]
    return -1


@inner
def _integrate(terms, reals, chain, v, state):
    """Log-integral over the near reals in another state, up to a constant; NaN if infinite.

    It leaves the root L of their precision, and L⁻¹ of their linear part, in the second half of
    the room.
    """
    size = reals.near_ptr[v + 1] - reals.near_ptr[v]
    P, h = chain.precision, chain.linear_near
    for i in range(size):
        h[1, i] = h[0, i]
        for j in range(size):
            P[1, i, j] = P[0, i, j]
    step = state - np.int64(chain.x[v])
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        if step != 0:
            _add_near(terms, reals, chain, v, t, chain.joint[t], -terms.term[t].multiplicity)
            joint = chain.joint[t] + step * stride
            _add_near(terms, reals, chain, v, t, joint, terms.term[t].multiplicity)
    log_total = 0.0
    for i in range(size):
        own = P[1, i, i]
        for j in range(i):
            P[1, i, i] -= P[1, i, j] ** 2
            h[1, i] -= P[1, i, j] * h[1, j]
        if not P[1, i, i] > SINGULAR * abs(own):
            return np.nan
        P[1, i, i] = np.sqrt(P[1, i, i])
        h[1, i] /= P[1, i, i]
        log_total += 0.5 * h[1, i] ** 2 - np.log(P[1, i, i])
        for k in range(i + 1, size):
            for j in range(i):
                P[1, k, i] -= P[1, k, j] * P[1, i, j]
            P[1, k, i] /= P[1, i, i]
    return log_total


@inner
def _add_near(terms, reals, chain, v, t, joint, m):
    """Adds m times a quadratic in a joint state to the Gaussian of the near reals."""
    first = terms.term[t].middle
    size = terms.term[t].last - first
    A = terms.term[t].base + joint * size * size
    b = terms.term[t].base + terms.term[t].num_joint * size * size + joint * size
    for i in range(size):
        at = _place(reals, v, reals.step[terms.entry[first + i].variable])
        chain.linear_near[1, at] += m * terms.theta[b + i]
        for j in range(size):
            other = _place(reals, v, reals.step[terms.entry[first + j].variable])
            chain.precision[1, at, other] -= 2.0 * m * terms.theta[A + i * size + j]
