"""Sweeps of a particle: every discrete variable in turn, with all reals integrated out.

The variables that change the Gaussian of a clique are drawn while the sweep is there, from its
means and covariances; then messages are sent on, so that a sweep costs little more than two
factorisations of the precision.
"""

import numpy as np

from hylift.inference.local.kernels import part
from hylift.inference.sampling.kernels.records import add_gaussian
from hylift.inference.smc.kernels.cliques import (
    add_terms,
    climb,
    climb_all,
    climb_on,
    descend,
    log_integral,
    solve,
)
from hylift.inference.smc.kernels.flips import (
    draw_state,
    move,
    put,
    weigh_curved,
    weigh_linear,
    weigh_tables,
)
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import below


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
            is_near = weigh_curved(terms, cliques, work, v, local, size)
        else:
            is_near = weigh_linear(terms, cliques, work, v, local, size)
        if not is_near:
            weigh_tables(terms, work, v)
            loose = _weigh_whole(terms, cliques, work, part, v)
            if loose >= 0:
                return loose
        state = draw_state(terms, work, v, beta, base, probs, amount)
        if is_near:
            if state != np.int64(work.x[v]):
                move(terms, cliques, work, v, local, size, state)
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
            loose = climb_on(terms, cliques, work, c)
            if loose >= 0:
                return loose
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
