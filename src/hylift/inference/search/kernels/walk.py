"""A random walk that moves variables of unsatisfied factors, and keeps the best assignment."""

import numpy as np

from hylift.inference.local.kernels import entry, joint_state, part, term_value
from hylift.inference.search.kernels.moves import best_flip, better, weigh
from hylift.inference.search.kernels.reals import best_step
from hylift.inference.search.kernels.scores import flip, shift_real
from hylift.inference.search.state import (
    BEST,
    BROKEN,
    CHANGED,
    MOVES,
    NOW,
    SATISFIED,
    UNSATISFIED,
    WORK,
)
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import below, normal, uniform


@entry
def set_out(search, goals, walk, fixed_broken, fixed_value):
    """Judges all factors at the assignment of a search.

    The last two are what the factors are worth that the kernels do not know.
    """
    walk.sizes[0] = 0
    walk.sizes[1] = 0
    broken, total = fixed_broken, fixed_value
    for t in range(len(walk.status)):
        walk.status[t] = SATISFIED
        value, m = _judge(goals, search.x, walk, t), goals.whole.term[t].multiplicity
        if value == -np.inf:
            broken += m
        else:
            total += m * value
    walk.worth[NOW, 0], walk.worth[NOW, 1] = broken, total
    for v in range(len(search.x)):  # all may differ from the best
        walk.changed[v] = v
        walk.is_changed[v] = 1
    walk.sizes[CHANGED] = len(search.x)
    _keep_best(search.x, walk, 0.0)


@inner
def _judge(goals, x, walk, t):
    """Puts a factor into the list where it belongs now; one without variables to move into none.

    Returns its log-value.
    """
    whole = goals.whole
    value = term_value(whole, x, t, joint_state(whole, x, t))
    new = UNSATISFIED if value < goals.enough[t] else SATISFIED
    if value == -np.inf:
        new = BROKEN
    old = walk.status[t]
    if new == old:
        return value
    walk.status[t] = new
    if goals.first[t] == goals.first[t + 1]:
        return value
    if old != SATISFIED:
        row = old - 1
        walk.sizes[row] -= 1
        last = walk.lists[row, walk.sizes[row]]
        walk.lists[row, walk.place[t]] = last
        walk.place[last] = walk.place[t]
    if new != SATISFIED:
        row = new - 1
        walk.lists[row, walk.sizes[row]] = t
        walk.place[t] = walk.sizes[row]
        walk.sizes[row] += 1
    return value


@inner
def _note_moved(variables, goals, x, walk, v):
    """Judges the factors of a variable that moved, and counts those that hear of it."""
    variable = goals.whole.variable
    for k in range(variable[v].first, variable[v].last):
        _judge(goals, x, walk, np.int64(goals.whole.incidence[k].term))
    if not walk.is_changed[v]:
        walk.is_changed[v] = 1
        walk.changed[walk.sizes[CHANGED]] = v
        walk.sizes[CHANGED] += 1
    record = variables[v]
    walk.sizes[WORK] += record.last - record.first + record.links_end - record.links


@inner
def _keep_best(x, walk, least):
    """Keeps the assignment if it is the best so far, by at least so much."""
    worth = walk.worth
    if better(worth[NOW, 0], worth[NOW, 1], worth[BEST, 0], worth[BEST, 1] + least):
        for i in range(walk.sizes[CHANGED]):
            v = walk.changed[i]
            walk.best[v] = x[v]
            walk.is_changed[v] = 0
        walk.sizes[CHANGED] = 0
        worth[BEST, 0], worth[BEST, 1] = worth[NOW, 0], worth[NOW, 1]


ENOUGH_WORK = 2_000_000
"""Factors that are looked at before the clock is."""

LITTLE = 1e-4
"""A real stays where it would gain less by itself: all reals are solved for from time to time."""


@entry
def walk_on(terms, search, goals, walk, most, random, noise):
    """Picks so many factors, or fewer where moves are costly or none is left; returns how many.

    Some are picked in vain: no move of their variables is worth while.
    """
    walk.sizes[WORK] = 0
    for picked in range(most):
        row = 1 if walk.sizes[1] > 0 else 0  # broken factors come first
        if walk.sizes[row] == 0 or walk.sizes[WORK] > ENOUGH_WORK:
            return picked
        t = np.int64(walk.lists[row, below(walk.random, walk.sizes[row])])
        if uniform(walk.random) < random:
            v, state, step = _any_move(terms, search, goals, walk, t, noise)
        else:
            v, state, step = _best_move(terms, search, goals, walk, t, row == 1)
        if v < 0:
            continue
        n = np.int64(0)
        if state < 0:
            slope = 2.0 * search.curve[v] * search.x[v] + search.slope[v]
            walk.worth[NOW, 1] += (search.curve[v] * step + slope) * step
            shift_real(terms, search, v, step)
        else:  # a flip takes the reals near it along
            broken, gain, shifted, n = weigh(terms, search, v, state, n)
            walk.worth[NOW, 0] += broken
            walk.worth[NOW, 1] += gain + shifted
            flip(terms, search, v, state, np.int64(0))
            for i in range(n):
                if search.shift[i] != 0.0:
                    shift_real(terms, search, search.near[i].real, search.shift[i])
        for i in range(-1, n):
            if i < 0 or search.shift[i] != 0.0:
                moved = v if i < 0 else search.near[i].real
                _note_moved(terms.variable, goals, search.x, walk, moved)
        walk.sizes[MOVES] += 1
        _keep_best(search.x, walk, terms.least)
    return most


@part
def _any_move(terms, search, goals, walk, t, noise):
    """Any variable of a factor, with any other state, or else a step to about its optimum."""
    first = goals.first[t]
    v = np.int64(goals.member[first + below(walk.random, goals.first[t + 1] - first)])
    record, x, curve = terms.variable[v], search.x[v], search.curve[v]
    state, step = np.int64(-1), 0.0
    if record.num_states > 0:
        shift = 1 + below(walk.random, record.num_states - 1)
        state = (np.int64(x) + shift) % record.num_states
    else:
        down, up = x - record.lower, record.upper - x
        scale = record.unit
        if curve < -record.flat:
            scale = np.sqrt(-0.5 / curve)  # of the Gaussian given all others
        elif down + up < np.inf:
            scale = down + up
        step = best_step(record, curve, 2.0 * curve * x + search.slope[v], x)
        step = min(max(step + noise * scale * normal(walk.random), -down), up)
    return v, state, step


@part
def _best_move(terms, search, goals, walk, t, forced):
    """The variable of a factor whose best state, or step, gains most given all others.

    -1 if all lose and none is forced. In a soft model many goals stay unsatisfied at the best
    assignment: to force moves upon them would keep the walk away from it.
    """
    first, count = goals.first[t], goals.first[t + 1] - goals.first[t]
    shift = below(walk.random, count)  # chance decides between equals
    best, best_state, best_d = np.int64(-1), np.int64(-1), 0.0
    best_broken, best_gain = np.inf, -np.inf
    for i in range(count):
        v = np.int64(goals.member[first + (i + shift) % count])
        record = terms.variable[v]
        state, broken, gain, d = np.int64(-1), 0.0, 0.0, 0.0
        if record.num_states == 0:
            x, curve = search.x[v], search.curve[v]
            slope = 2.0 * curve * x + search.slope[v]
            d = best_step(record, curve, slope, x)
            gain = (curve * d + slope) * d
            if gain <= LITTLE:
                continue
        elif record.num_states == 2 and record.split == record.last:
            old = np.int64(search.x[v])
            state = 1 - old
            was, becomes = search.score[record.scores + old], search.score[record.scores + state]
            broken, gain = becomes.broken - was.broken, becomes.value - was.value
        else:
            state, broken, gain = best_flip(terms, search, v)
            walk.sizes[WORK] += record.num_states * (1 + record.last - record.split)
        if better(broken, gain, best_broken, best_gain):
            best, best_state, best_d = v, state, d
            best_broken, best_gain = broken, gain
    walk.sizes[WORK] += count
    if not forced and not better(best_broken, best_gain, 0.0, -terms.least):
        best = np.int64(-1)
    return best, best_state, best_d
