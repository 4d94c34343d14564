"""Sweeps of a chain: all states, then all reals.

One in a few sweeps also draws groups of states together with the reals next to them.
"""

import numpy as np

from hylift.inference.local.kernels import entry
from hylift.inference.local.kernels.terms import term_value
from hylift.inference.sampling.kernels.reals import draw_reals
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.kernels.states import draw_groups, draw_states

BEST, LAST = 0, 1

IN_GROUPS = 4
"""One in so many sweeps draws states together, and with reals, which reaches further and costs
more."""


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
                draw_states(terms, blocks.of_term, chain, record.probs, recording)
            loose = draw_reals(terms, blocks, chain)
            if loose >= 0:
                return loose
            total = 0.0
            for t in range(len(terms.term)):
                value = term_value(terms, chain.x, t, chain.joint[t])
                total += terms.term[t].multiplicity * value
            chain.log_density[LAST] = total
            if total > chain.log_density[BEST]:
                chain.log_density[BEST] = total
                for v in range(len(chain.x)):
                    chain.best[v] = chain.x[v]
        note_reals(terms, blocks, chain, record, every > 0)
        place = draw % len(record.values)
        if every > 0:
            place = draw // every if draw % every == 0 else -1
        if place >= 0:
            for v in range(len(chain.x)):
                record.values[place, v] = chain.x[v]
    return np.int64(-1)
