"""Weights of the states of one discrete variable, by its tables and by the reals near it.

The reals near a variable are in one clique, whose means and covariances are known: how the integral
over all reals changes with the state follows from these few.
"""

import numpy as np

from hylift.inference.smc.kernels.cliques import HALF_LOG_2PI, add_quadratic, eliminate, invert
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import categorical

EXTREME = 1e7
"""Ratio of the precisions in two states beyond which a difference of them has too few digits."""

TIED = 1e-6
"""Share of its variance that a real keeps given others, below which their inverse has too few."""

CANCELLED = 1e10
"""Size of terms that cancel each other beyond which their sum has too few."""


@inner
def put(terms, cliques, work, v, state):
    """Changes a state, the joint states of its terms, and marks the cliques of these."""
    step = state - np.int64(work.x[v])
    if step == 0:
        return
    work.x[v] = state
    record = terms.variable[v]
    for k in range(record.first, record.last):
        t = np.int64(terms.incidence[k].term)
        work.ints[work.joint + t] += step * np.int64(terms.incidence[k].stride)
        if k >= record.split:
            work.ints[work.is_stale + cliques.lists[cliques.of_term + t]] = 1


@inner
def weigh_tables(terms, work, v):
    """Fills in the sums of the tables of a variable, by state."""
    record = terms.variable[v]
    for state in range(record.num_states):
        work.weight[state] = 0.0
    for k in range(record.first, record.split):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        m = terms.term[t].multiplicity
        first = terms.term[t].base + work.ints[work.joint + t] - np.int64(work.x[v]) * stride
        for state in range(record.num_states):
            work.weight[state] += m * terms.theta[first + state * stride]


@inner
def draw_state(terms, work, v, beta, base, probs, amount):
    """Draws a state by its weight, once tables and reals are added up there, at a temperature;
    where amount is positive, its probabilities are recorded."""
    record = terms.variable[v]
    for state in range(record.num_states):
        if work.weight[state] > -np.inf:
            start = base[record.scores + state]
            work.weight[state] = start + beta * (work.weight[state] - start)
    state = categorical(work.weight, record.num_states, work.random)
    if amount > 0.0:
        for other in range(record.num_states):
            probs[record.scores + other] += amount * work.weight[other]
    return state


@inner
def _difference(terms, cliques, work, v, state, near):
    """The change of precision and linear part of the reals near a variable, were it in another
    state, in `change` and `slope`; that of the constant."""
    record = terms.variable[v]
    for i in range(near):
        work.floats[work.slope + i] = 0.0
    for i in range(near * near):
        work.floats[work.change + i] = 0.0
    total = 0.0
    step = state - np.int64(work.x[v])
    for k in range(record.split, record.last):
        t = np.int64(terms.incidence[k].term)
        m, now = terms.term[t].multiplicity, work.ints[work.joint + t]
        then = now + step * np.int64(terms.incidence[k].stride)
        at = cliques.near_place + cliques.lists[cliques.near_place_ptr + k]
        for sign, joint in ((1.0, then), (-1.0, now)):
            total += add_quadratic(
                terms, t, joint, sign * m, cliques.lists, at,
                work.floats, work.change, near, work.slope,
            )  # fmt: skip
    return total


@inner
def _tilt(cliques, work, k, near):
    """Log-ratio of the density at the means, and its slope there, in `slope`, for the change at
    hand."""
    value = 0.0
    for i in range(near):
        mu = work.floats[work.mean + cliques.lists[cliques.near + k + i]]
        pull = work.floats[work.slope + i]
        for j in range(near):
            pull -= (
                work.floats[work.change + i * near + j]
                * work.floats[work.mean + cliques.lists[cliques.near + k + j]]
            )
        value += 0.5 * mu * (work.floats[work.slope + i] + pull)
        work.floats[work.tilt + i] = pull
    return value


@inner
def weigh_linear(terms, cliques, work, v, local, size):
    """Adds to the weights of a variable that changes no precision, by the reals; False where digits
    would be lost."""
    near = local.near_end - local.near
    for state in range(terms.variable[v].num_states):
        if work.weight[state] == -np.inf or state == np.int64(work.x[v]):
            continue
        total = _difference(terms, cliques, work, v, state, near)
        total += _tilt(cliques, work, local.near, near)
        at_means, largest = total, 0.0
        for i in range(near):
            row = cliques.lists[cliques.near + local.near + i] * size
            inner = 0.0
            for j in range(near):
                inner += (
                    work.floats[work.cov + row + cliques.lists[cliques.near + local.near + j]]
                    * work.floats[work.tilt + j]
                )
            own = work.floats[work.cov + row + cliques.lists[cliques.near + local.near + i]]
            largest = max(largest, own * work.floats[work.tilt + i] ** 2)
            total += 0.5 * work.floats[work.tilt + i] * inner
        if largest > CANCELLED and total - at_means < 0.01 * largest:
            return False
        work.weight[state] += total
    return True


@inner
def _precision_near(cliques, work, local, size):
    """The precision of the reals near a variable, all others integrated out, in `inner`, and half
    its log-determinant."""
    near = local.near_end - local.near
    for i in range(near):
        work.floats[work.slope + i] = 0.0
        for j in range(near):
            row, column = (
                cliques.lists[cliques.near + local.near + i],
                cliques.lists[cliques.near + local.near + j],
            )
            work.floats[work.change + i * near + j] = work.floats[work.cov + row * size + column]
    if np.isnan(eliminate(work, work.change, near, work.slope, near)):
        return np.nan
    half = 0.0
    for i in range(near):
        half -= np.log(work.floats[work.change + i * near + i])
    invert(work.floats, work.change, near, work.inner)
    return half


@inner
def weigh_curved(terms, cliques, work, v, local, size):
    """Adds to the weights of a variable by the reals; False where digits would be lost."""
    near = local.near_end - local.near
    half = _precision_near(cliques, work, local, size)
    if np.isnan(half):
        return False
    for i in range(near):
        at = cliques.lists[cliques.near + local.near + i]
        share = work.floats[work.inner + i * near + i] * work.floats[work.cov + at * size + at]
        if not share < 1.0 / TIED:
            return False
        work.floats[work.largest + i] = work.floats[work.inner + i * near + i]
        work.floats[work.smallest + i] = work.floats[work.inner + i * near + i]
    for state in range(terms.variable[v].num_states):
        if work.weight[state] == -np.inf or state == np.int64(work.x[v]):
            continue
        total = _difference(terms, cliques, work, v, state, near)
        total += _tilt(cliques, work, local.near, near)
        for i in range(near * near):
            work.floats[work.change + i] += work.floats[work.inner + i]
        for i in range(near):
            work.floats[work.largest + i] = max(
                work.floats[work.largest + i], work.floats[work.change + i * near + i]
            )
            work.floats[work.smallest + i] = min(
                work.floats[work.smallest + i], work.floats[work.change + i * near + i]
            )
        found = eliminate(work, work.change, near, work.tilt, near)
        if np.isnan(found):
            return False
        work.weight[state] += total + found - near * HALF_LOG_2PI + half
    for i in range(near):
        if not work.floats[work.largest + i] < EXTREME * work.floats[work.smallest + i]:
            return False
    return True


@inner
def move(terms, cliques, work, v, local, size, state):
    """Means and covariances of a clique after a variable has changed."""
    near = local.near_end - local.near
    if local.is_curved:
        _precision_near(cliques, work, local, size)
    _difference(terms, cliques, work, v, state, near)
    _tilt(cliques, work, local.near, near)
    # C: the columns near v; M: the precision there; LLᵀ = M + change.
    for i in range(size):
        for k in range(near):
            work.floats[work.columns + k * size + i] = work.floats[
                work.cov + i * size + cliques.lists[cliques.near + local.near + k]
            ]
    if not local.is_curved:
        for i in range(size):
            for k in range(near):
                work.floats[work.mean + i] += (
                    work.floats[work.columns + k * size + i] * work.floats[work.tilt + k]
                )
        return
    for i in range(near * near):
        work.floats[work.change + i] += work.floats[work.inner + i]
    eliminate(work, work.change, near, work.tilt, near)
    if near == size:
        invert(work.floats, work.change, near, work.inner)
        for i in range(near):
            for j in range(near):
                row, column = (
                    cliques.lists[cliques.near + local.near + i],
                    cliques.lists[cliques.near + local.near + j],
                )
                work.floats[work.cov + row * size + column] = work.floats[work.inner + i * near + j]
        for i in range(near - 1, -1, -1):
            for j in range(i + 1, near):
                work.floats[work.tilt + i] -= (
                    work.floats[work.change + j * near + i] * work.floats[work.tilt + j]
                )
            work.floats[work.tilt + i] /= work.floats[work.change + i * near + i]
            work.floats[work.mean + cliques.lists[cliques.near + local.near + i]] += work.floats[
                work.tilt + i
            ]
        return
    # X = M Cᵀ in `matrix`, Y = L⁻¹ X in `moved`: cov += YᵀY - XᵀCᵀ, and mean += YᵀL⁻¹ tilt.
    for i in range(size):
        for k in range(near):
            value = 0.0
            for j in range(near):
                value += (
                    work.floats[work.inner + k * near + j]
                    * work.floats[work.columns + j * size + i]
                )
            work.floats[work.matrix + k * size + i] = value
            for j in range(k):
                value -= (
                    work.floats[work.change + k * near + j] * work.floats[work.moved + j * size + i]
                )
            work.floats[work.moved + k * size + i] = value / work.floats[work.change + k * near + k]
    for k in range(near):
        for i in range(size):
            work.floats[work.mean + i] += (
                work.floats[work.moved + k * size + i] * work.floats[work.tilt + k]
            )
            for j in range(size):
                value = (
                    work.floats[work.moved + k * size + i] * work.floats[work.moved + k * size + j]
                )
                value -= (
                    work.floats[work.matrix + k * size + i]
                    * work.floats[work.columns + k * size + j]
                )
                work.floats[work.cov + i * size + j] += value
