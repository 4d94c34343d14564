"""Sweeps of a chain: all states, then all reals."""

import numpy as np
from numba import njit

from hylift.inference.sampling.kernels.block import draw_reals, find_near_bounds
from hylift.inference.sampling.kernels.inner import inner, part
from hylift.inference.sampling.kernels.near import draw_with_reals
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.kernels.states import (
    choose,
    flip,
    log_density,
    normalise,
    value_of,
    weigh_tables,
)

BEST, LAST = 0, 1

WITH_REALS = 4
"""One in so many sweeps draws states together with reals, which reaches further and costs more."""


@njit(cache=True, nogil=True, _nrt=False)
def advance(terms, reals, chain, record, rng, start, stop, thin, every):
    """Draws number `start` to `stop`, each after `thin` sweeps; of these, every so-many-th is
    stored. While warming up, `every` is 0: stored are the last ones.

    Returns a variable that nothing holds, or -1.
    """
    for draw in range(start, stop):
        for sweep in range(thin):
            recording = every > 0 and sweep == thin - 1
            with_reals = (draw * thin + sweep) % WITH_REALS == 0
            if every > 0 or draw > 0:
                # The states of a start are random: they come first, or else its reals, which are
                # not, would pull all chains into one mode.
                _draw_states(terms, reals, chain, rng, record.probs, recording, with_reals)
            failed = draw_reals(terms, reals, chain, rng)
            if failed >= 0:
                return failed
            chain.log_density[LAST] = log_density(terms, chain)
            if chain.log_density[LAST] > chain.log_density[BEST]:
                chain.log_density[BEST] = chain.log_density[LAST]
                for v in range(len(chain.x)):
                    chain.best[v] = chain.x[v]
        place = draw % len(record.values)
        if every > 0:
            note_reals(terms, reals, chain, record)
            place = draw // every if draw % every == 0 else -1
        if place >= 0:
            for v in range(len(chain.x)):
                record.values[place, v] = chain.x[v]
    if every == 0:
        find_near_bounds(terms, reals, chain)
    return np.int64(-1)


@part
def _draw_states(terms, reals, chain, rng, probs, recording, with_reals):
    """Draws every discrete variable in turn; recording, its probabilities are added up.

    with_reals: whether variables take the reals next to them along, where they are few.
    """
    for v in range(len(terms.variable)):
        num_states = terms.variable[v].num_states
        if num_states == 0:
            continue
        is_drawn = False
        if with_reals and reals.near_ptr[v] < reals.near_ptr[v + 1]:
            is_drawn = draw_with_reals(terms, reals, chain, rng, v)
        if not is_drawn:
            _weigh(terms, chain, v, num_states)
        if recording:
            first = terms.variable[v].scores
            for state in range(num_states):
                probs[first + state] += chain.weight[state]
        if not is_drawn:
            flip(terms, reals, chain, v, choose(chain.weight, num_states, rng))


@inner
def _weigh(terms, chain, v, num_states):
    """Fills in the probabilities of the states of a variable, given all else."""
    weigh_tables(terms, chain, v, num_states)
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t, stride = np.int64(terms.incidence[k].term), np.int64(terms.incidence[k].stride)
        m, first = terms.term[t].multiplicity, chain.joint[t] - np.int64(chain.x[v]) * stride
        for state in range(num_states):
            chain.weight[state] += m * value_of(terms, chain.x, t, first + state * stride)
    normalise(chain.weight, num_states)
