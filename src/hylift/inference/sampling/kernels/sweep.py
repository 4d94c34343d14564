"""Sweeps of a chain: all states, then all reals.

One in a few sweeps also draws groups of states together with the reals next to them.
"""

import numpy as np

from hylift.inference.local.kernels import entry, inner, part
from hylift.inference.local.kernels.terms import term_value
from hylift.inference.sampling.kernels.reals import draw_reals
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.kernels.states import (
    choose,
    flip,
    forget,
    log_density,
    normalise,
    put,
    weigh_tables,
)

BEST, LAST = 0, 1

IN_GROUPS = 4
"""One in so many sweeps draws states together, and with reals, which reaches further and costs
more."""


@entry
def advance(terms, reals, groups, chain, record, rng, start, stop, thin, every):
    """Draws number `start` to `stop`, each after `thin` sweeps; of these, every so-many-th is
    stored. While warming up, `every` is 0: stored are the last ones.

    Returns a variable that nothing holds, or -1.
    """
    for draw in range(start, stop):
        for sweep in range(thin):
            recording = every > 0 and sweep == thin - 1
            in_groups = (draw * thin + sweep) % IN_GROUPS == 0
            if every > 0 or draw > 0:
                # The states of a start are random: they come first, or else its reals, which are
                # not, would pull all chains into one mode.
                if in_groups:
                    _draw_groups(terms, reals, groups, chain, rng)
                _draw_states(terms, reals, chain, rng, record.probs, recording)
            failed = draw_reals(terms, reals, chain, rng)
            if failed >= 0:
                return failed
            chain.log_density[LAST] = log_density(terms, chain.x, chain.joint)
            if chain.log_density[LAST] > chain.log_density[BEST]:
                chain.log_density[BEST] = chain.log_density[LAST]
                for v in range(len(chain.x)):
                    chain.best[v] = chain.x[v]
        place = draw % len(record.values)
        note_reals(terms, reals, chain, record, every > 0)
        if every > 0:
            place = draw // every if draw % every == 0 else -1
        if place >= 0:
            for v in range(len(chain.x)):
                record.values[place, v] = chain.x[v]
    return np.int64(-1)


@part
def _draw_groups(terms, reals, groups, chain, rng):
    """Draws every group in turn."""
    for g in range(len(groups.num_joint)):
        near = chain.near
        draw_group(terms, groups, chain.x, chain.joint, chain.weight, near, rng, g)
        for k in range(groups.ptr[g], groups.ptr[g + 1]):
            v = groups.variable[k]
            if np.int64(chain.x[v]) != near.before[k - groups.ptr[g]]:
                forget(terms, reals.of_term, chain.known, v)


@part
def _draw_states(terms, reals, chain, rng, probs, recording):
    """Draws every discrete variable in turn; recording, its probabilities are added up."""
    for v in range(len(terms.variable)):
        num_states = terms.variable[v].num_states
        if num_states == 0:
            continue
        _weigh(terms, chain.x, chain.joint, chain.weight, v, num_states)
        if recording:
            first = terms.variable[v].scores
            for state in range(num_states):
                probs[first + state] += chain.weight[state]
        state = choose(chain.weight, num_states, rng)
        flip(terms, reals.of_term, chain.x, chain.joint, chain.known, v, state)


@inner
def _weigh(terms, x, joint, weight, v, num_states):
    """Fills in the probabilities of the states of a variable, given all else."""
    weigh_tables(terms, x, joint, weight, v, num_states)
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        m, first = terms.term[t].multiplicity, joint[t] - np.int64(x[v]) * stride
        for state in range(num_states):
            weight[state] += m * term_value(terms, x, t, first + state * stride)
    normalise(weight, num_states)


SINGULAR = 1e-12
"""A pivot this small against what it is the sum of counts as zero."""


@inner
def draw_group(terms, groups, x, joint, weight, near, rng, g):
    """Draws a group, with the reals next to it where they are few and Gaussian.

    States far from the present ones are thereby reached, where one variable after the other would
    never move. `near.before` is left with the states from before.
    """
    first, last = groups.ptr[g], groups.ptr[g + 1]
    for k in range(first, last):
        near.before[k - first] = np.int64(x[groups.variable[k]])
    num_near = groups.near_ptr[g + 1] - groups.near_ptr[g]
    if num_near > 0:
        _look_around(terms, groups, x, joint, near, g)
    for integrating in (True, False):
        # A single variable is drawn by itself later on.
        if (num_near == 0) if integrating else (last - first == 1):
            continue
        if not _weigh_joint(terms, groups, x, joint, weight, near, g, integrating):
            _put_back(terms, groups, x, joint, near.before, g)
            continue
        normalise(weight, groups.num_joint[g])
        chosen = choose(weight, groups.num_joint[g], rng)
        for k in range(last - 1, first - 1, -1):
            v = groups.variable[k]
            put(terms, x, joint, v, chosen % terms.variable[v].num_states)
            chosen //= terms.variable[v].num_states
        if not integrating:
            return
        _integrate(terms, groups, x, joint, near, g)
        is_bounded, is_inside = _draw_near(terms, groups, x, near, rng, g)
        if not is_inside:
            _put_back(terms, groups, x, joint, near.before, g)
        if not is_bounded:
            return


@inner
def _draw_near(terms, groups, x, near, rng, g):
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
        value = y[1, i] + rng.standard_normal()
        for j in range(i + 1, size):
            value -= root[1, j, i] * y[1, j]
        y[1, i] = value / root[1, i, i]
        r = groups.near[first + i]
        low, high = terms.variable[r].lower, terms.variable[r].upper
        is_bounded |= low > -np.inf or high < np.inf
        is_inside &= low <= y[1, i] <= high
    if is_inside:
        for i in range(size):
            x[groups.near[first + i]] = y[1, i]
    return is_bounded, is_inside


@inner
def _put_back(terms, groups, x, joint, before, g):
    """Puts a group into the states in which it was."""
    for k in range(groups.ptr[g], groups.ptr[g + 1]):
        put(terms, x, joint, groups.variable[k], before[k - groups.ptr[g]])


@inner
def _weigh_joint(terms, groups, x, joint, weight, near, g, integrating):
    """Fills in the log-weights of the joint states of a group, its near reals integrated out or
    given; false if some integral is infinite.

    That does not depend on what is drawn. Of the variables, the last counts fastest; the group is
    left in some state.
    """
    for k in range(groups.ptr[g], groups.ptr[g + 1]):
        put(terms, x, joint, groups.variable[k], np.int64(0))
    for number in range(groups.num_joint[g]):
        total = 0.0
        for k in range(groups.table_ptr[g], groups.table_ptr[g + 1]):
            t = groups.table[k]
            total += terms.term[t].multiplicity * terms.theta[terms.term[t].base + joint[t]]
        if total > -np.inf and integrating:
            total += _integrate(terms, groups, x, joint, near, g)
            if np.isnan(total):
                return False
        elif total > -np.inf:
            for k in range(groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]):
                t = groups.quadratic[k]
                total += terms.term[t].multiplicity * term_value(terms, x, t, joint[t])
        weight[number] = total
        for k in range(groups.ptr[g + 1] - 1, groups.ptr[g] - 1, -1):
            v = groups.variable[k]
            state = (np.int64(x[v]) + 1) % terms.variable[v].num_states
            put(terms, x, joint, v, state)
            if state > 0:
                break
    return True


@inner
def _look_around(terms, groups, x, joint, near, g):
    """Precision and linear part of the near reals by all terms but those of the group, given all
    other reals.

    They are summed afresh: what a state of the group adds may be so large that nothing of the
    others would be left were it subtracted again.
    """
    first, size = groups.near_ptr[g], groups.near_ptr[g + 1] - groups.near_ptr[g]
    for i in range(size):
        near.linear[0, i] = 0.0
        near.size[0, i] = 0.0
        for j in range(size):
            near.precision[0, i, j] = 0.0
    for i in range(size):
        r = groups.near[first + i]
        for k in range(terms.variable[r].split, terms.variable[r].last):
            t = np.int64(terms.incidence[k].term)
            if not _is_own(groups, g, t):
                _add_near(terms, groups, x, joint[t], near, g, t, np.int64(i), np.int64(0))


@inner
def _is_own(groups, g, t):
    """Whether a quadratic is one of those of a group, which are sorted."""
    low, high = groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]
    while low < high:
        middle = (low + high) // 2
        if groups.quadratic[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low < groups.quadratic_ptr[g + 1] and groups.quadratic[low] == t


@inner
def _place(groups, g, r):
    """Where a real stands among those near a group, or -1."""
    for k in range(groups.near_ptr[g], groups.near_ptr[g + 1]):
        if groups.near[k] == r:
            return k - groups.near_ptr[g]
    return np.int64(-1)


@inner
def _add_near(terms, groups, x, joint, near, g, t, only, half):
    """Adds a quadratic to one half of the Gaussian of the near reals: the row of one of them, or
    all if `only` is negative."""
    first, m = terms.term[t].middle, terms.term[t].multiplicity
    size = terms.term[t].last - first
    A = terms.term[t].base + joint * size * size
    b = terms.term[t].base + terms.term[t].num_joint * size * size + joint * size
    for i in range(size):
        at = _place(groups, g, np.int64(terms.entry[first + i].variable))
        if at < 0 or (only >= 0 and at != only):
            continue
        near.linear[half, at] += m * terms.theta[b + i]
        near.size[half, at] += abs(2.0 * m * terms.theta[A + i * size + i])
        for j in range(size):
            r = np.int64(terms.entry[first + j].variable)
            other = _place(groups, g, r)
            value = -2.0 * m * terms.theta[A + i * size + j]
            if other >= 0:
                near.precision[half, at, other] += value
            else:
                near.linear[half, at] -= value * x[r]


@inner
def _integrate(terms, groups, x, joint, near, g):
    """Log-integral over the near reals in the state at hand, up to a constant; NaN if infinite.

    It leaves the root L of their precision, and L⁻¹ of their linear part, in the second half of
    the room.
    """
    size = groups.near_ptr[g + 1] - groups.near_ptr[g]
    P, h = near.precision, near.linear
    for i in range(size):
        h[1, i] = h[0, i]
        near.size[1, i] = near.size[0, i]
        for j in range(size):
            P[1, i, j] = P[0, i, j]
    for k in range(groups.quadratic_ptr[g], groups.quadratic_ptr[g + 1]):
        t = groups.quadratic[k]
        _add_near(terms, groups, x, joint[t], near, g, t, np.int64(-1), np.int64(1))
    log_total = 0.0
    for i in range(size):
        for j in range(i):
            P[1, i, i] -= P[1, i, j] ** 2
            h[1, i] -= P[1, i, j] * h[1, j]
        if not P[1, i, i] > SINGULAR * near.size[1, i]:
            return np.nan
        P[1, i, i] = np.sqrt(P[1, i, i])
        h[1, i] /= P[1, i, i]
        log_total += 0.5 * h[1, i] ** 2 - np.log(P[1, i, i])
        for k in range(i + 1, size):
            for j in range(i):
                P[1, k, i] -= P[1, k, j] * P[1, i, j]
            P[1, k, i] /= P[1, i, i]
    return log_total
