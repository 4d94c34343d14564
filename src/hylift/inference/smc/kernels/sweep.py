"""Sweeps of a particle: every discrete variable in turn, with all reals integrated out.

The variables that change the Gaussian of a clique are drawn while the sweep is there, from its
means and covariances; then messages are sent on, so that a sweep costs little more than two
factorisations of the precision.
"""

import numpy as np

from hylift.inference.local.kernels import inner, part
from hylift.inference.sampling.kernels.records import add_gaussian
from hylift.inference.smc.kernels.cliques import (
    HALF_LOG_2PI,
    add_quadratic,
    add_terms,
    climb,
    climb_all,
    descend,
    eliminate,
    invert,
    log_integral,
    solve,
)
from hylift.numerics.kernels.random import below, uniform

EXTREME = 1e7
"""Ratio of the precisions in two states beyond which a difference of them has too few digits."""


@inner
def choose(weight, num_states, random):
    """Turns log-weights into probabilities, and draws a state with them."""
    top, total = -np.inf, 0.0
    for state in range(num_states):
        top = max(top, weight[state])
    for state in range(num_states):
        weight[state] = np.exp(weight[state] - top)
        total += weight[state]
    left, chosen = uniform(random), np.int64(-1)
    for state in range(num_states):
        weight[state] /= total
        if weight[state] > 0.0 and left >= 0.0:  # by rounding, something may be left at the end
            chosen = np.int64(state)
            left -= weight[state]
    return chosen


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
    state = choose(work.weight, record.num_states, work.random)
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
def _weigh_linear(terms, cliques, work, v, local, size):
    """Adds to the weights of a variable that changes no precision, by the reals."""
    near = local.near_end - local.near
    for state in range(terms.variable[v].num_states):
        if work.weight[state] == -np.inf or state == np.int64(work.x[v]):
            continue
        total = _difference(terms, cliques, work, v, state, near)
        total += _tilt(cliques, work, local.near, near)
        for i in range(near):
            row = cliques.lists[cliques.near + local.near + i] * size
            inner = 0.0
            for j in range(near):
                inner += (
                    work.floats[work.cov + row + cliques.lists[cliques.near + local.near + j]]
                    * work.floats[work.tilt + j]
                )
            total += 0.5 * work.floats[work.tilt + i] * inner
        work.weight[state] += total


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
def _weigh_curved(terms, cliques, work, v, local, size):
    """Adds to the weights of a variable by the reals; False where digits would be lost."""
    near = local.near_end - local.near
    half = _precision_near(cliques, work, local, size)
    if np.isnan(half):
        return False
    for i in range(near):
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
def _move(terms, cliques, work, v, local, size, state):
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


@inner
def _weigh_whole(terms, cliques, work, part, v):
    """Adds the log-integrals over all reals to the weights of a variable; a real that nothing
    holds in one of its states, or -1."""
    now = np.int64(work.x[v])
    loose = climb_all(terms, cliques, work, part.cliques, part.cliques_end)
    before = log_integral(cliques, work, part.cliques, part.cliques_end)
    for state in range(terms.variable[v].num_states):
        if work.weight[state] == -np.inf or state == now or loose >= 0:
            continue
        put(terms, cliques, work, v, state)
        loose = climb_all(terms, cliques, work, part.cliques, part.cliques_end)
        after = log_integral(cliques, work, part.cliques, part.cliques_end)
        work.weight[state] += after - before
    put(terms, cliques, work, v, now)
    return loose


@part
def _refresh(terms, cliques, work, c, host):
    """Messages towards clique c after the terms of another have changed."""
    a = host
    while work.ints[work.depth + a] < 0:
        climb(terms, cliques, work, a)
        a = cliques.clique[a].parent
    if work.ints[work.is_stale + a]:
        add_terms(terms, cliques, work, a)
    work.ints[work.has_changed + a] = 1
    for level in range(work.ints[work.depth + a], work.ints[work.depth + c]):
        descend(cliques, work, work.ints[work.stack + level], work.ints[work.stack + level + 1])


@part
def _arrive(terms, cliques, work, part, c, beta, base, probs, mixtures, amount, is_moving):
    """Draws the variables of a clique, and records its reals; a real that nothing holds, or -1."""
    clique = cliques.clique[c]
    size = clique.last - clique.first
    if amount == 0.0 and (clique.locals == clique.locals_end or not is_moving):
        return np.int64(-1)
    if not solve(cliques, work, c):
        return np.int64(cliques.member[clique.first].variable)
    for k in range(clique.locals, clique.locals_end if is_moving else clique.locals):
        local = cliques.local[k]
        v, is_near = local.variable, True
        weigh_tables(terms, work, v)
        if local.is_curved:
            is_near = _weigh_curved(terms, cliques, work, v, local, size)
        else:
            _weigh_linear(terms, cliques, work, v, local, size)
        if not is_near:
            weigh_tables(terms, work, v)
            loose = _weigh_whole(terms, cliques, work, part, v)
            if loose >= 0:
                return loose
        state = draw_state(terms, work, v, beta, base, probs, amount)
        if is_near:
            if state != np.int64(work.x[v]):
                _move(terms, cliques, work, v, local, size, state)
                put(terms, cliques, work, v, state)
            continue
        put(terms, cliques, work, v, state)
        climb_all(terms, cliques, work, part.cliques, part.cliques_end)
        for level in range(work.ints[work.depth + c]):
            descend(cliques, work, work.ints[work.stack + level], work.ints[work.stack + level + 1])
        solve(cliques, work, c)
    if amount > 0.0:
        for i in range(clique.num_own):
            real = np.int64(cliques.member[clique.first + i].real)
            add_gaussian(
                mixtures,
                real,
                amount,
                work.floats[work.mean + i],
                work.floats[work.cov + i * size + i],
            )
    for k in range(clique.locals, clique.locals_end):
        record = terms.variable[cliques.local[k].variable]
        for at in range(record.split, record.last):
            host = cliques.lists[cliques.of_term + terms.incidence[at].term]
            if work.ints[work.is_stale + host]:
                _refresh(terms, cliques, work, c, host)
    return np.int64(-1)


@part
def _visit(terms, cliques, work, part, root, beta, base, probs, mixtures, amount, is_moving):
    """Goes through a tree of cliques and back; a real that nothing holds, or -1."""
    depth, is_new = 0, True
    work.ints[work.stack + 0] = root
    while depth >= 0:
        c = work.ints[work.stack + depth]
        if is_new:
            work.ints[work.depth + c] = depth
            work.ints[work.next + c] = cliques.clique[c].children
            loose = _arrive(
                terms, cliques, work, part, c, beta, base, probs, mixtures, amount, is_moving
            )
            if loose >= 0:
                return loose
        is_new = False
        if work.ints[work.next + c] < cliques.clique[c].children_end:
            child = cliques.lists[cliques.child + work.ints[work.next + c]]
            work.ints[work.next + c] += 1
            if amount > 0.0 or cliques.clique[child].is_busy:
                if not descend(cliques, work, c, child):
                    return np.int64(cliques.member[cliques.clique[c].first].variable)
                depth += 1
                work.ints[work.stack + depth] = child
                is_new = True
            continue
        work.ints[work.depth + c] = -1
        if work.ints[work.has_changed + c]:
            loose = climb(terms, cliques, work, c)
            if loose >= 0:
                return loose
            work.ints[work.has_changed + c] = 0
            if cliques.clique[c].parent >= 0:
                work.ints[work.has_changed + cliques.clique[c].parent] = 1
        depth -= 1
    return np.int64(-1)


@inner
def begin(terms, cliques, work, part):
    """Sends all messages up in the states at hand; a real that nothing holds, or -1."""
    for c in range(part.cliques, part.cliques_end):
        work.ints[work.is_stale + c] = 1
        work.ints[work.has_changed + c] = 0
        work.ints[work.depth + c] = -1
    return climb_all(terms, cliques, work, part.cliques, part.cliques_end)


@inner
def log_density(terms, cliques, work, part):
    """Of the states at hand, with all reals integrated out."""
    total = log_integral(cliques, work, part.cliques, part.cliques_end)
    for k in range(part.terms, part.terms_end):
        t = cliques.lists[cliques.terms + k]
        if t < terms.num_tables:
            total += (
                terms.term[t].multiplicity
                * terms.theta[terms.term[t].base + work.ints[work.joint + t]]
            )
    return total


@inner
def sweep(terms, cliques, work, part, beta, base, probs, mixtures, amount, is_moving):
    """Draws every discrete variable once, unless nothing is to move, at an inverse temperature.

    base: log-probabilities of the start, by variable and state. Where amount is positive,
    probabilities and Gaussians are added to the records with that weight. Returns a real that
    nothing holds, or -1.
    """
    loose = begin(terms, cliques, work, part)
    for root in range(part.cliques, part.cliques_end):
        is_root = cliques.clique[root].parent < 0 and loose < 0
        if is_root and (amount > 0.0 or cliques.clique[root].is_busy):
            loose = _visit(
                terms, cliques, work, part, root, beta, base, probs, mixtures, amount, is_moving
            )
    if not is_moving:
        for k in range(part.discrete, part.discrete_end):
            v = cliques.lists[cliques.discrete + k]
            probs[terms.variable[v].scores + np.int64(work.x[v])] += amount
        return loose
    for k in range(part.wide, part.wide_end):
        if loose >= 0:
            return loose
        v = cliques.lists[cliques.wide + k]
        weigh_tables(terms, work, v)
        loose = _weigh_whole(terms, cliques, work, part, v)
        put(terms, cliques, work, v, draw_state(terms, work, v, beta, base, probs, amount))
    count = part.plain_end - part.plain
    turn = below(work.random, max(count, 1))
    for k in range(count):
        v = cliques.lists[cliques.plain + part.plain + (k + turn) % count]
        weigh_tables(terms, work, v)
        put(terms, cliques, work, v, draw_state(terms, work, v, beta, base, probs, amount))
    if loose < 0:
        loose = climb_all(terms, cliques, work, part.cliques, part.cliques_end)
    return loose
