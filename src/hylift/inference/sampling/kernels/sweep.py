"""Sweeps of a chain: all discrete variables, then all reals.

Discrete variables are drawn one by one; one in a few sweeps also draws groups of them together with
the reals next to them.
"""

import numpy as np

from hylift.inference.local.kernels import (
    entry,
    entry_with_views,
    factorise_small,
    part,
    term_value,
)
from hylift.inference.sampling.kernels.reals import draw_reals
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.state import STALE
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import categorical, normal, normalise, uniform

BEST, LAST, FUNCTIONS = 0, 1, 2

IN_GROUPS = 4
"""One in so many sweeps draws states together, and with reals, which reaches further and costs
more."""


@inner
def _put(terms, x, joint, v, state):
    """Changes a state, and the joint states of its terms; whether it was another one."""
    step = state - np.int64(x[v])
    if step == 0:
        return False
    x[v] = state
    for k in range(terms.variable[v].first, terms.variable[v].last):
        joint[terms.incidence[k].term] += step * np.int64(terms.incidence[k].stride)
    return True


@inner
def _forget(terms, of_term, known, v):
    """Marks the components whose Gaussians depend on a variable."""
    for k in range(terms.variable[v].split, terms.variable[v].last):
        c = of_term[terms.incidence[k].term]
        if c >= 0:
            known[c] = STALE


@inner
def weigh_state(terms, x, joint, v, weight):
    """Fills in the log-weights of the states of a variable given all else."""
    record = terms.variable[v]
    for state in range(record.num_states):
        weight[state] = 0.0
    for k in range(record.first, record.last):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        m, first = terms.term[t].multiplicity, joint[t] - np.int64(x[v]) * stride
        if k < record.split:
            first += terms.term[t].base
            for state in range(record.num_states):
                weight[state] += m * terms.theta[first + state * stride]
        else:
            for state in range(record.num_states):
                weight[state] += m * term_value(terms, x, t, first + state * stride)


@entry_with_views
def weigh_states(terms, x, joint, variables, weight):
    """Fills in the log-weights (chain, variable, state) of some variables by tables and quadratics;
    x: (chain, variable), joint: (chain, term)."""
    for c in range(len(x)):
        for i in range(len(variables)):
            weigh_state(terms, x[c], joint[c], variables[i], weight[c, i])


@inner
def _shuffle(order, random):
    """Brings numbers into a random order."""
    for i in range(len(order) - 1, 0, -1):
        j = min(np.int64(uniform(random) * (i + 1)), np.int64(i))
        order[i], order[j] = order[j], order[i]


@inner
def draw_states(terms, of_term, is_collapsed, chain, probs, recording):
    """Draws every discrete variable, in random order: a fixed one would decide into which of
    several modes chains fall. Recording, the probabilities of those are added up that
    `note_states` does not note."""
    x, joint, weight = chain.x, chain.joint, chain.weight
    _shuffle(chain.order, chain.random)
    for i in range(len(chain.order)):
        v = chain.order[i]
        record = terms.variable[v]
        weigh_state(terms, x, joint, v, weight)
        state = categorical(weight, record.num_states, chain.random)
        if recording and not is_collapsed[v]:
            for other in range(record.num_states):
                probs[record.scores + other] += weight[other]
        if _put(terms, x, joint, v, state):
            _forget(terms, of_term, chain.known, v)


SINGULAR = 1e-12
"""A pivot this small against what it is the sum of counts as zero."""


@inner
def draw_groups(terms, of_term, groups, chain):
    """Draws every group, in random order, with the reals near it where they are few and Gaussian.

    States far from the present ones are thereby reached, where one variable after the other would
    never move.
    """
    x, joint, near = chain.x, chain.joint, chain.near
    _shuffle(chain.group_order, chain.random)
    for i in range(len(chain.group_order)):
        g = chain.group_order[i]
        first, last = groups.ptr[g], groups.ptr[g + 1]
        num_near = groups.near_ptr[g + 1] - groups.near_ptr[g]
        before = np.int64(0)
        for k in range(first, last):
            v = groups.variable[k]
            before = before * terms.variable[v].num_states + np.int64(x[v])
        now = before
        if num_near > 0:
            _look_around(terms, groups, x, joint, near, g)
        for given in range(2):  # the near reals are integrated out, or given
            # A single variable is drawn by itself later on.
            if (last - first == 1) if given else (num_near == 0):
                continue
            is_finite = _weigh_joint(terms, groups, x, joint, chain.weight, near, g, given)
            now = before
            if is_finite:
                now = categorical(chain.weight, groups.num_joint[g], chain.random)
            _put_joint(terms, groups, x, joint, g, now)
            if not is_finite:
                continue
            if given:
                break
            _integrate(terms, groups, x, joint, near, g)
            is_bounded, is_inside = _draw_near(terms, groups, x, near, chain.random, g)
            if not is_inside:
                now = before
                _put_joint(terms, groups, x, joint, g, now)
            if not is_bounded:
                break
        if now != before:
            for k in range(first, last):
                _forget(terms, of_term, chain.known, groups.variable[k])


@inner
def _put_joint(terms, groups, x, joint, g, number):
    """Puts a group into one of its joint states; of its variables the last counts fastest."""
    for k in range(groups.ptr[g + 1] - 1, groups.ptr[g] - 1, -1):
        v = groups.variable[k]
        _put(terms, x, joint, v, number % terms.variable[v].num_states)
        number //= terms.variable[v].num_states


@part
def _draw_near(terms, groups, x, near, random, g):
    """Draws the reals near a group in the state at hand: whether one has bounds, and whether all
    are within theirs.

    A draw beyond a bound is refused, and all stays as it was: the distribution without bounds is a
    proposal that knows nothing of the present values, and within the bounds it is proportional to
    the target.
    """
    first = groups.near_ptr[g]
    size = groups.near_ptr[g + 1] - first
    root, y = near.precision, near.linear
    is_bounded, is_inside = False, True
    for i in range(size - 1, -1, -1):
        value = y[i] + normal(random)
        for j in range(i + 1, size):
            value -= root[j, i] * y[j]
        y[i] = value / root[i, i]
        record = terms.variable[groups.near[first + i]]
        is_bounded |= record.lower > -np.inf or record.upper < np.inf
        is_inside &= record.lower <= y[i] <= record.upper
    if is_inside:
        for i in range(size):
            x[groups.near[first + i]] = y[i]
    return is_bounded, is_inside


@inner
def _weigh_joint(terms, groups, x, joint, weight, near, g, given):
    """Fills in the log-weights of the joint states of a group, its near reals integrated out or
    given; false if some integral is infinite.

    That does not depend on what is drawn. The group is left in some state.
    """
    is_finite = True
    for number in range(groups.num_joint[g]):
        _put_joint(terms, groups, x, joint, g, number)
        total = 0.0
        for k in range(groups.table_ptr[g], groups.table_ptr[g + 1]):
            t = groups.table[k]
            total += terms.term[t].multiplicity * terms.theta[terms.term[t].base + joint[t]]
        if total > -np.inf:
            if given:
                for k in range(groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]):
                    t = groups.quadratic[k]
                    total += terms.term[t].multiplicity * term_value(terms, x, t, joint[t])
            else:
                total += _integrate(terms, groups, x, joint, near, g)
                if np.isnan(total):
                    is_finite = False
                    break
        weight[number] = total
    return is_finite


@part
def _look_around(terms, groups, x, joint, near, g):
    """Precision and linear part of the near reals by all terms but those of the group, given all
    other reals.

    They are summed afresh: what a state of the group adds may be so large that nothing of the
    others would be left were it subtracted again.
    """
    first, size = groups.near_ptr[g], groups.near_ptr[g + 1] - groups.near_ptr[g]
    P, h, s = near.outer_precision, near.outer_linear, near.outer_size
    for i in range(size):
        h[i], s[i] = 0.0, 0.0
        for j in range(size):
            P[i, j] = 0.0
    for i in range(size):
        r = groups.near[first + i]
        for k in range(terms.variable[r].split, terms.variable[r].last):
            t = np.int64(terms.incidence[k].term)
            if not _is_own(groups, g, t):
                _add_near(terms, groups, x, joint[t], P, h, s, g, t, np.int64(i))


@part
def _is_own(groups, g, t):
    """Return True if a quadratic is one of those of a group, which are sorted."""
    low, high = groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if groups.quadratic[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low < end and groups.quadratic[low] == t


@inner
def _place(groups, g, r):
    """The place of a real among those near a group, or -1."""
    for k in range(groups.near_ptr[g], groups.near_ptr[g + 1]):
        if groups.near[k] == r:
            return k - groups.near_ptr[g]
    return np.int64(-1)


@inner
def _add_near(terms, groups, x, joint, P, h, s, g, t, only):
    """Adds a quadratic to the Gaussian of the near reals: the row of one of them, or all if `only`
    is negative."""
    term, theta = terms.term[t], terms.theta
    first, m, size = term.middle, term.multiplicity, term.last - term.middle
    A, b = term.base + joint * size * size, term.base + (term.num_joint * size + joint) * size
    for i in range(size):
        at = _place(groups, g, np.int64(terms.entry[first + i].variable))
        if at < 0 or (only >= 0 and at != only):
            continue
        h[at] += m * theta[b + i]
        s[at] += abs(2.0 * m * theta[A + i * size + i])
        for j in range(size):
            r = np.int64(terms.entry[first + j].variable)
            other = _place(groups, g, r)
            value = -2.0 * m * theta[A + i * size + j]
            if other >= 0:
                P[at, other] += value
            else:
                h[at] -= value * x[r]


@inner
def _integrate(terms, groups, x, joint, near, g):
    """Log-integral over the near reals in the state at hand, up to a constant; NaN if infinite.

    It leaves the root L of their precision in `near`, and L⁻¹ of their linear part.
    """
    size = groups.near_ptr[g + 1] - groups.near_ptr[g]
    P, h, s = near.precision, near.linear, near.size
    for i in range(size):
        h[i], s[i] = near.outer_linear[i], near.outer_size[i]
        for j in range(size):
            P[i, j] = near.outer_precision[i, j]
    for k in range(groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]):
        t = groups.quadratic[k]
        _add_near(terms, groups, x, joint[t], P, h, s, g, t, np.int64(-1))
    for i in range(size):
        s[i] *= SINGULAR
    log_total = -factorise_small(P, s, h, size)
    for i in range(size):
        log_total += 0.5 * h[i] ** 2
    return log_total


@inner
def note_states(terms, groups, chain, probs):
    """Adds up the probabilities of variables given all others, with all reals integrated out.

    They vary less from draw to draw than those given the reals, too. The Gaussian of the reals
    next to a variable, given all states, is known; without the terms of the variable it is their
    Gaussian given the states of all others. Where those reals are tied so closely that rounding
    would decide, the other reals are given, as when groups are drawn.
    """
    x, joint, near = chain.x, chain.joint, chain.near
    P, h = near.outer_precision, near.outer_linear
    for n in range(len(groups.collapsed)):
        g = groups.collapsed[n]
        v = groups.variable[groups.ptr[g]]
        first, size = groups.near_ptr[g], groups.near_ptr[g + 1] - groups.near_ptr[g]
        pair = 0
        for i in range(size):
            P[i, i], h[i] = chain.var[groups.step[first + i]], chain.mean[groups.step[first + i]]
            for j in range(i):
                edge = groups.edge[n, pair]
                P[i, j] = chain.edges[edge] if edge >= 0 else 0.0
                P[j, i] = P[i, j]
                pair += 1
        _invert(P, h, size)
        is_free = True
        for i in range(size):
            is_free &= 0.0 < P[i, i] * chain.var[groups.step[first + i]] < 1.0 / TIED
        if is_free:
            _leave_out(terms, groups, x, joint, near, g)
        else:
            _look_around(terms, groups, x, joint, near, g)
        record, before = terms.variable[v], np.int64(x[v])
        is_finite = _weigh_joint(terms, groups, x, joint, chain.weight, near, g, False)
        _put(terms, x, joint, v, before)
        if not is_finite:
            weigh_state(terms, x, joint, v, chain.weight)
        normalise(chain.weight, record.num_states)
        for state in range(record.num_states):
            probs[record.scores + state] += chain.weight[state]


TIED = 1e-6
"""Share of its variance that a real keeps given others, below which an inverse has lost so many
digits that the terms of a variable cannot be subtracted from it."""


@inner
def _leave_out(terms, groups, x, joint, near, g):
    """Subtracts the terms of a group from the Gaussian of all terms of its near reals."""
    P, h, first = near.outer_precision, near.outer_linear, groups.near_ptr[g]
    size = groups.near_ptr[g + 1] - first
    for i in range(size):
        near.linear[i] = 0.0
        near.outer_size[i] = P[i, i]
        for j in range(size):
            near.precision[i, j] = 0.0
    for k in range(groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]):
        t = groups.quadratic[k]
        _add_near(
            terms, groups, x, joint[t], near.precision, near.linear, near.size, g, t, np.int64(-1)
        )
    for i in range(size):
        h[i] -= near.linear[i]
        for j in range(size):
            P[i, j] -= near.precision[i, j]


@inner
def _invert(matrix, right, size):
    """Puts the inverse of a small positive matrix, and that times `right`, in their places."""
    for k in range(size):
        own = 1.0 / matrix[k, k]
        right[k] *= own
        for j in range(size):
            if j != k:
                matrix[k, j] *= own
        for i in range(size):
            if i != k:
                scale = matrix[i, k]
                right[i] -= scale * right[k]
                matrix[i, k] = -scale * own
                for j in range(size):
                    if j != k:
                        matrix[i, j] -= scale * matrix[k, j]
        matrix[k, k] = own


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


@entry
def advance(terms, blocks, groups, chain, record, start, stop, thin, every):
    """Draws number `start` to `stop`, each after `thin` sweeps; of these, every so-many-th is
    stored. While warming up, `every` is 0: stored are the last ones.

    Returns a variable that nothing holds, or -1.
    """
    for draw in range(start, stop):
        for sweep in range(thin):
            if every > 0 or draw > 0:
                # The states of a start are random: they come first, or else its reals, which are
                # not, would pull all chains into one mode.
                if (draw * thin + sweep) % IN_GROUPS == 0:
                    draw_groups(terms, blocks.of_term, groups, chain)
                recording = every > 0 and sweep == thin - 1
                draw_states(
                    terms, blocks.of_term, groups.is_collapsed, chain, record.probs, recording
                )
            loose = draw_reals(terms, blocks, chain)
            if loose >= 0:
                return loose
            total = chain.log_density[FUNCTIONS]
            for t in range(len(terms.term)):
                value = term_value(terms, chain.x, t, chain.joint[t])
                total += terms.term[t].multiplicity * value
            chain.log_density[LAST] = total
            if total > chain.log_density[BEST]:
                chain.log_density[BEST] = total
                for v in range(len(chain.x)):
                    chain.best[v] = chain.x[v]
        note_reals(terms, blocks, chain, record, every > 0)
        if every > 0:
            note_states(terms, groups, chain, record.probs)
        place = draw % len(record.values)
        if every > 0:
            place = draw // every if draw % every == 0 else -1
        if place >= 0:
            for v in range(len(chain.x)):
                record.values[place, v] = chain.x[v]
    return np.int64(-1)
