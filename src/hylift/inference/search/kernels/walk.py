"""A random walk that moves variables of unsatisfied factors, and keeps the best assignment."""

import numpy as np

from hylift.inference.search.kernels import entry, inner
from hylift.inference.search.kernels.arrays import (
    BEST,
    BROKEN,
    CHANGED,
    MOVES,
    NOW,
    SATISFIED,
    UNSATISFIED,
    WORK,
)
from hylift.inference.search.kernels.moves import best_flip, better, weigh
from hylift.inference.search.kernels.random import below, normal, uniform
from hylift.inference.search.kernels.reals import best_step
from hylift.inference.search.kernels.scores import flip, joint_state, load, shift_real, term_value


@entry
def set_out(terms, search, factors, walk, start, fixed_broken, fixed_value):
    """Takes over an assignment: computes everything anew.

    The last two are what the factors are worth that the kernels do not know.
    """
    load(terms, search, start)
    walk.sizes[0] = 0
    walk.sizes[1] = 0
    for t in range(len(walk.status)):
        walk.status[t] = SATISFIED
    for t in range(len(walk.status)):
        _judge(factors, search, walk, t)
    broken, value = measure(factors.whole, search)
    walk.worth[NOW, 0] = broken + fixed_broken
    walk.worth[NOW, 1] = value + fixed_value
    for v in range(len(search.value)):  # all may differ from the best
        walk.changed[v] = v
        walk.is_changed[v] = 1
    walk.sizes[CHANGED] = len(search.value)


@entry
def measure(terms, search):
    """The multiplicity of terms at -inf, and the sum of the others."""
    broken, total = 0.0, 0.0
    x = search.value["x"]
    for t in range(len(terms.term)):
        value = term_value(terms, x, t, joint_state(terms, x, t))
        if value == -np.inf:
            broken += terms.term[t].multiplicity
        else:
            total += terms.term[t].multiplicity * value
    return broken, total


@inner
def _judge(factors, search, walk, t):
    """Puts a factor into the list where it belongs now; one that nobody can move into none."""
    whole, x = factors.whole, search.value["x"]
    value = term_value(whole, x, t, joint_state(whole, x, t))
    new = UNSATISFIED if value < factors.enough[t] else SATISFIED
    if value == -np.inf:
        new = BROKEN
    old = walk.status[t]
    if new == old:
        return
    walk.status[t] = new
    if factors.first[t] == factors.first[t + 1]:
        return
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


@inner
def note_moved(factors, search, walk, v):
    """Judges the factors of a variable that moved."""
    variable = factors.whole.variable
    for k in range(variable[v].first, variable[v].last):
        _judge(factors, search, walk, np.int64(factors.whole.incidence[k].term))
    if not walk.is_changed[v]:
        walk.is_changed[v] = 1
        walk.changed[walk.sizes[CHANGED]] = v
        walk.sizes[CHANGED] += 1


@entry
def keep_best(search, walk, least):
    """Keeps the assignment if it is the best so far, by at least so much; whether it is."""
    worth = walk.worth
    if not better(worth[NOW, 0], worth[NOW, 1], worth[BEST, 0], worth[BEST, 1] + least):
        return False
    for i in range(walk.sizes[CHANGED]):
        v = walk.changed[i]
        walk.best[v] = search.value[v].x
        walk.is_changed[v] = 0
    walk.sizes[CHANGED] = 0
    worth[BEST, 0], worth[BEST, 1] = worth[NOW, 0], worth[NOW, 1]
    return True


ENOUGH_WORK = 2_000_000
"""Factors that are looked at before the clock is."""

LITTLE = 1e-4
"""A real stays where it would gain less by itself: all reals are solved for from time to time."""


@entry
def walk_on(terms, search, factors, walk, most, random, noise):
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
            v, state, step = _any_move(terms, search, factors, walk, t, noise)
        else:
            v, state, step = _best_move(terms, search, factors, walk, t, row == 1)
        if v < 0:
            continue
        if state < 0:
            _shift(terms, search, factors, walk, v, step)
        else:
            _flip(terms, search, factors, walk, v, state)
        walk.sizes[MOVES] += 1
        keep_best(search, walk, terms.least)
    return most


@inner
def _any_move(terms, search, factors, walk, t, noise):
    """Any variable of a factor, with any other state, or else a step to about its optimum."""
    first = factors.first[t]
    v = np.int64(factors.member[first + below(walk.random, factors.first[t + 1] - first)])
    num_states = terms.variable[v].num_states
    if num_states > 0:
        shift = 1 + below(walk.random, num_states - 1)
        return v, (np.int64(search.value[v].x) + shift) % num_states, 0.0
    x, curve = search.value[v].x, search.value[v].curve
    down, up = x - terms.variable[v].lower, terms.variable[v].upper - x
    scale = terms.variable[v].unit
    if curve < -terms.variable[v].flat:
        scale = np.sqrt(-0.5 / curve)  # of the Gaussian given all others
    elif down + up < np.inf:
        scale = down + up
    step = best_step(terms.variable[v], curve, 2.0 * curve * x + search.value[v].slope, x)
    step += noise * scale * normal(walk.random)
    return v, np.int64(-1), min(max(step, -down), up)


@inner
def _best_move(terms, search, factors, walk, t, forced):
    """The variable of a factor whose best state, or step, gains most given all others.

    -1 if all lose and none is forced. In a soft model many factors stay unsatisfied at the best
    assignment: to force moves upon them would keep the walk away from it.
    """
    first, count = factors.first[t], factors.first[t + 1] - factors.first[t]
    shift = below(walk.random, count)  # chance decides between equals
    best, best_state, best_d = np.int64(-1), np.int64(-1), 0.0
    best_broken, best_gain = np.inf, -np.inf
    for i in range(count):
        v = np.int64(factors.member[first + (i + shift) % count])
        record = terms.variable[v]
        state, broken, gain, d = np.int64(-1), 0.0, 0.0, 0.0
        if record.num_states == 0:
            x, curve = search.value[v].x, search.value[v].curve
            slope = 2.0 * curve * x + search.value[v].slope
            d = best_step(record, curve, slope, x)
            gain = (curve * d + slope) * d
            if gain <= LITTLE:
                continue
        elif record.num_states == 2 and record.split == record.last:
            old = np.int64(search.value[v].x)
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


@inner
def _flip(terms, search, factors, walk, v, state):
    """Flips a variable, and moves the reals near it to their optimum."""
    broken, gain, shifted, n = weigh(terms, search, v, state, np.int64(0))
    flip(terms, search, v, state, np.int64(0))
    for i in range(n):
        if search.near[i].shift != 0.0:
            shift_real(terms, search, search.near[i].real, search.near[i].shift)
    note_moved(factors, search, walk, v)
    for i in range(n):
        if search.near[i].shift != 0.0:
            note_moved(factors, search, walk, search.near[i].real)
            walk.sizes[WORK] += _num_beside(terms, search.near[i].real)
    walk.sizes[WORK] += _num_beside(terms, v)
    walk.worth[NOW, 0] += broken
    walk.worth[NOW, 1] += gain + shifted


@inner
def _shift(terms, search, factors, walk, r, step):
    """Moves a real by itself."""
    slope = 2.0 * search.value[r].curve * search.value[r].x + search.value[r].slope
    walk.worth[NOW, 1] += (search.value[r].curve * step + slope) * step
    shift_real(terms, search, r, step)
    note_moved(factors, search, walk, r)
    walk.sizes[WORK] += _num_beside(terms, r)


@inner
def _num_beside(terms, v):
    """Layout and reals that hear of it when a variable moves."""
    record = terms.variable[v]
    return record.last - record.first + record.links_end - record.links
