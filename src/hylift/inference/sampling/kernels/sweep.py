"""Sweeps of a chain: all states, then all reals."""

import numpy as np
from numba import njit

from hylift.inference.sampling.kernels.block import draw_reals
from hylift.inference.sampling.kernels.inner import inner, part
from hylift.inference.sampling.kernels.near import draw_group
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.kernels.states import (
    choose,
    flip,
    forget,
    log_density,
    normalise,
    value_of,
    weigh_tables,
)

BEST, LAST = 0, 1

IN_GROUPS = 4
"""One in so many sweeps draws states together, and with reals, which reaches further and costs
more."""


@njit(cache=True, nogil=True, _nrt=False)
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
            weight[state] += m * value_of(terms, x, t, first + state * stride)
    normalise(weight, num_states)
