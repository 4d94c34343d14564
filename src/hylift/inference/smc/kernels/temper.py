"""A group of particles on the way from its start to the distribution: weights, resampling, sweeps.

Each connected part of the graph has its own temperatures: parts are independent. All groups take
those that a pilot has found: log Z would be too low if each chose them by its own weights.
"""

import numpy as np

from hylift.inference.local.kernels import entry, joint_state, part
from hylift.inference.smc.kernels.cliques import draw_reals
from hylift.inference.smc.kernels.flips import put
from hylift.inference.smc.kernels.sweep import begin, log_density, sweep
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import categorical, uniform

BREAKING, STARTING, TEMPERING, FINAL, DONE, FAILED = 0, 1, 2, 3, 4, 5
"""Phases: particles that break hard tables, whose density is unknown, on the way, at the end."""

FEW = 8
"""Particles that are evaluated and recorded where time has run out."""

KEPT = 0.8
"""Effective share of particles that a change of temperature leaves."""

PENALTY, MOST_PENALTY = 2.0, 100.0
"""Fall of the log-density for a broken factor: what a step adds, and where all is given up."""


@inner
def _load(terms, cliques, work, part, states, g, i):
    """Takes the states of a particle."""
    for k in range(part.discrete, part.discrete_end):
        work.x[cliques.lists[cliques.discrete + k]] = states[g, i, k]
    for k in range(part.terms, part.terms_end):
        work.ints[work.joint + cliques.lists[cliques.terms + k]] = joint_state(
            terms, work.x, cliques.lists[cliques.terms + k]
        )


@inner
def _store(cliques, work, part, states, g, i):
    for k in range(part.discrete, part.discrete_end):
        states[g, i, k] = np.int32(work.x[cliques.lists[cliques.discrete + k]])


@inner
def _start_value(terms, cliques, work, part, base):
    """Log-probability of the states at hand at the start."""
    total = 0.0
    for k in range(part.discrete, part.discrete_end):
        v = cliques.lists[cliques.discrete + k]
        total += base[terms.variable[v].scores + np.int64(work.x[v])]
    return total


@inner
def _num_broken(terms, cliques, work, part):
    """Hard tables that the states at hand break."""
    count = 0
    for k in range(part.terms, part.terms_end):
        t = cliques.lists[cliques.terms + k]
        if t < terms.num_tables:
            count += terms.theta[terms.term[t].base + work.ints[work.joint + t]] == -np.inf
    return count


@inner
def _mend(terms, cliques, work, part, base, penalty):
    """Draws every discrete variable by the start and a penalty for each broken table."""
    for k in range(part.discrete, part.discrete_end):
        v = cliques.lists[cliques.discrete + k]
        record = terms.variable[v]
        for state in range(record.num_states):
            work.weight[state] = base[record.scores + state]
        for at in range(record.first, record.split):
            t, stride = np.int64(terms.incidence[at].term), np.int64(terms.incidence[at].stride)
            first = terms.term[t].base + work.ints[work.joint + t] - np.int64(work.x[v]) * stride
            for state in range(record.num_states):
                if terms.theta[first + state * stride] == -np.inf:
                    work.weight[state] -= penalty
        put(terms, cliques, work, v, categorical(work.weight, record.num_states, work.random))


@inner
def _effective(work, count, step):
    """The effective share of particles with weights exp(step · energy)."""
    top = -np.inf
    for i in range(count):
        top = max(top, step * work.floats[work.energy + i])
    total, squares = 0.0, 0.0
    for i in range(count):
        weight = np.exp(step * work.floats[work.energy + i] - top)
        total += weight
        squares += weight * weight
    return total * total / (count * squares)


@inner
def _next_step(work, count, most):
    """The largest step, up to `most`, that leaves enough effective particles."""
    if _effective(work, count, most) >= KEPT:
        return most
    low, high = 0.0, most
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _effective(work, count, middle) >= KEPT:
            low = middle
        else:
            high = middle
    return high if low == 0.0 else low


@inner
def _weigh(work, count, step):
    """Fills in the normalised weights exp(step · energy); the logarithm of their mean."""
    top, total = -np.inf, 0.0
    for i in range(count):
        top = max(top, step * work.floats[work.energy + i])
    for i in range(count):
        work.floats[work.shares + i] = np.exp(step * work.floats[work.energy + i] - top)
        total += work.floats[work.shares + i]
    for i in range(count):
        work.floats[work.shares + i] /= total
    return top + np.log(total / count)


@inner
def _resample(work, states, value, part, g, p, count):
    """Systematic resampling: particles without offspring are replaced by copies of others."""
    ints, copies = work.ints, work.copies
    mark, total = uniform(work.random), 0.0
    for i in range(count):
        ints[copies + i] = 0
        total += work.floats[work.shares + i] * count
        while mark < min(total, count):
            ints[copies + i] += 1
            mark += 1.0
    free = 0
    for i in range(count):
        for _ in range(ints[copies + i] - 1):
            while ints[copies + free] > 0:
                free += 1
            for k in range(part.discrete, part.discrete_end):
                states[g, free, k] = states[g, i, k]
            value[g, p, free] = value[g, p, i]
            ints[copies + free] = 1
        ints[copies + i] = min(ints[copies + i], 1)


@part
def _toss(terms, cliques, work, part, base, states, g, count):
    """Draws all particles from the start."""
    for i in range(count):
        for k in range(part.discrete, part.discrete_end):
            v = cliques.lists[cliques.discrete + k]
            record = terms.variable[v]
            for state in range(record.num_states):
                work.weight[state] = base[record.scores + state]
            states[g, i, k] = np.int32(categorical(work.weight, record.num_states, work.random))


@part
def _stop_breaking(terms, cliques, work, base, cells, ladder, part, g, p, leads, hurries):
    """One step towards particles that break no hard table.

    On the ladder, 0 comes after the penalties.
    """
    states, count = cells.states, cells.states.shape[1]
    rung, unbroken = cells.rung[g, p], 0
    for i in range(count):
        _load(terms, cliques, work, part, states, g, i)
        work.floats[work.energy + i] = -_num_broken(terms, cliques, work, part)
        unbroken += work.floats[work.energy + i] == 0.0
    goal = 0.0
    if leads:
        goal = 0.0 if unbroken >= KEPT * count else np.inf
    elif not hurries:
        goal = ladder[p, rung]
    cells.rung[g, p] += goal > 0.0 or unbroken > 0
    if goal == 0.0 and unbroken > 0:
        if leads:
            ladder[p, rung] = 0.0
        for i in range(count):
            work.floats[work.shares + i] = (work.floats[work.energy + i] == 0.0) / unbroken
        cells.log_z[g, p] += np.log(unbroken / count)
        _resample(work, states, cells.value, part, g, p, count)
        cells.phase[g, p] = STARTING
        return
    step = goal - cells.beta[g, p]
    if leads or goal == 0.0:
        step = _next_step(work, count, PENALTY)
    cells.beta[g, p] += step
    if leads:
        ladder[p, rung] = cells.beta[g, p]
    if hurries or cells.beta[g, p] >= MOST_PENALTY:
        cells.phase[g, p] = FAILED
        return
    cells.log_z[g, p] += _weigh(work, count, step)
    _resample(work, states, cells.value, part, g, p, count)
    for i in range(count):
        _load(terms, cliques, work, part, states, g, i)
        _mend(terms, cliques, work, part, base, cells.beta[g, p])
        _store(cliques, work, part, states, g, i)


@part
def _evaluate(terms, cliques, work, base, cells, part, g, p, hurries):
    """Log-densities of all particles where they are; a real that nothing holds, or -1.

    Hurrying, of a few only: the others are dropped.
    """
    count = cells.states.shape[1]
    some = min(count, FEW) if hurries else count
    cells.log_z[g, p] += np.log(count / some)
    for i in range(some, count):
        cells.value[g, p, i] = -np.inf
    for i in range(some):
        _load(terms, cliques, work, part, cells.states, g, i)
        loose = begin(terms, cliques, work, part)
        if loose >= 0:
            return loose
        cells.value[g, p, i] = log_density(terms, cliques, work, part)
    cells.beta[g, p] = 0.0
    cells.phase[g, p] = TEMPERING
    return np.int64(-1)


@part
def _enumerate(terms, cliques, work, base, cells, probs, mixtures, part, g, p):
    """Puts a particle into each joint state, and records all of them by their probabilities."""
    top, loose = -np.inf, np.int64(-1)
    for i in range(part.num_joint):
        number = np.int64(i)
        for k in range(part.discrete, part.discrete_end):
            size = terms.variable[cliques.lists[cliques.discrete + k]].num_states
            cells.states[g, i, k] = np.int32(number % size)
            number //= size
        _load(terms, cliques, work, part, cells.states, g, i)
        cells.value[g, p, i] = -np.inf
        if _num_broken(terms, cliques, work, part) == 0:
            loose = begin(terms, cliques, work, part)
            if loose >= 0:
                return loose
            cells.value[g, p, i] = log_density(terms, cliques, work, part)
            top = max(top, cells.value[g, p, i])
    if top == -np.inf:
        cells.phase[g, p] = FAILED
        return loose
    total = 0.0
    for i in range(part.num_joint):
        total += np.exp(cells.value[g, p, i] - top)
    cells.log_z[g, p] = top + np.log(total)
    for i in range(part.num_joint):
        amount = np.exp(cells.value[g, p, i] - cells.log_z[g, p])
        if amount > 0.0:
            _load(terms, cliques, work, part, cells.states, g, i)
            sweep(terms, cliques, work, part, 1.0, base, probs, mixtures, amount, False)
    cells.beta[g, p] = 1.0
    cells.phase[g, p] = FINAL
    return loose


@part
def _temper(terms, cliques, work, base, cells, probs, mixtures, ladder, part, g, p, leads, hurries):
    """One change of temperature and one sweep; a real that nothing holds, or -1."""
    count = cells.states.shape[1]
    for i in range(count):
        _load(terms, cliques, work, part, cells.states, g, i)
        start = _start_value(terms, cliques, work, part, base)
        work.floats[work.energy + i] = cells.value[g, p, i] - start
    most, rung = 1.0 - cells.beta[g, p], cells.rung[g, p]
    if leads:
        step = _next_step(work, count, most)
        ladder[p, rung] = 1.0 if step == most else cells.beta[g, p] + step
    beta = 1.0 if hurries else ladder[p, rung]
    cells.log_z[g, p] += _weigh(work, count, beta - cells.beta[g, p])
    cells.beta[g, p] = beta
    cells.rung[g, p] += 1
    _resample(work, cells.states, cells.value, part, g, p, count)
    if cells.beta[g, p] == 1.0:
        cells.phase[g, p] = FINAL
    if hurries or (leads and beta == 1.0):
        return np.int64(-1)
    for i in range(count):
        _load(terms, cliques, work, part, cells.states, g, i)
        loose = sweep(terms, cliques, work, part, beta, base, probs, mixtures, 0.0, True)
        if loose >= 0:
            return loose
        cells.value[g, p, i] = log_density(terms, cliques, work, part)
        _store(cliques, work, part, cells.states, g, i)
    return np.int64(-1)


@part
def _finish(terms, cliques, work, base, cells, probs, mixtures, values, part, g, p, hurries):
    """A sweep at the end, recorded; a real that nothing holds, or -1."""
    count, number = cells.states.shape[1], cells.made[g, p]
    num_kept, num_stored = values.shape[1], values.shape[2]
    for i in range(part.num_joint):
        work.floats[work.energy + i] = cells.value[g, p, i]
    if part.num_joint > 0:
        _weigh(work, part.num_joint, 1.0)
    some = min(count, FEW) if hurries and number == 0 else count
    for i in range(some):
        place = i
        if part.num_joint > 0:
            if i >= num_kept or number >= num_stored:
                continue
            left, place = uniform(work.random), -1
            for j in range(part.num_joint):
                if work.floats[work.shares + j] > 0.0 and left >= 0.0:
                    place = j
                    left -= work.floats[work.shares + j]
            _load(terms, cliques, work, part, cells.states, g, place)
            begin(terms, cliques, work, part)
        else:
            _load(terms, cliques, work, part, cells.states, g, i)
            loose = sweep(terms, cliques, work, part, 1.0, base, probs, mixtures, 1.0, True)
            if loose >= 0:
                return loose
            cells.value[g, p, i] = log_density(terms, cliques, work, part)
            _store(cliques, work, part, cells.states, g, i)
        if i < num_kept and number < num_stored:
            draw_reals(cliques, work, part.cliques, part.cliques_end)
            for k in range(part.variables, part.variables_end):
                v = cliques.lists[cliques.variables + k]
                values[g, i, number, v] = work.x[v]
    for i in range(some, num_kept if number < num_stored else some):
        for k in range(part.variables, part.variables_end):
            v = cliques.lists[cliques.variables + k]
            values[g, i, number, v] = values[g, i % some, number, v]
    cells.made[g, p] += 1
    if hurries or cells.made[g, p] == cells.num_final:
        cells.phase[g, p] = DONE
    return np.int64(-1)


@entry
def advance(
    terms, cliques, work, base, cells, probs, mixtures, values, ladder, g, first, last, most, leads,
    hurries,
):  # fmt: skip
    """So many steps of the parts from first to last, in a group of particles.

    values: (group, stored particle, stored sweep, variable). ladder: (part, rung), penalties and
    then inverse temperatures; a group that leads finds them, and ends there. hurries: jump to the
    end at once. Returns a real that nothing holds, or -1.
    """
    for p in range(first, last):
        part = cliques.part[p]
        work.random[0] = cells.random[g, p]
        for _ in range(most):
            phase, loose = cells.phase[g, p], np.int64(-1)
            if phase >= (FINAL if leads else DONE):
                break
            if part.num_joint > 0 and phase < FINAL:
                loose = _enumerate(terms, cliques, work, base, cells, probs, mixtures, part, g, p)
            elif phase == BREAKING:
                if cells.made[g, p] == 0:
                    _toss(terms, cliques, work, part, base, cells.states, g, cells.states.shape[1])
                    cells.made[g, p] = 1
                if part.is_hard:
                    _stop_breaking(
                        terms, cliques, work, base, cells, ladder, part, g, p, leads, hurries
                    )
                else:
                    cells.phase[g, p] = STARTING
            elif phase == STARTING:
                cells.made[g, p] = 0
                loose = _evaluate(terms, cliques, work, base, cells, part, g, p, hurries)
            elif phase == TEMPERING:
                loose = _temper(
                    terms, cliques, work, base, cells, probs, mixtures, ladder, part, g, p, leads,
                    hurries,
                )  # fmt: skip
            else:
                loose = _finish(
                    terms, cliques, work, base, cells, probs, mixtures, values, part, g, p, hurries
                )
            if loose >= 0:
                return loose
        cells.random[g, p] = work.random[0]
    return np.int64(-1)
