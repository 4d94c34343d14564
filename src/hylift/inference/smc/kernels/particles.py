"""Sweeps of particles that have values of their reals: the draws of a chain for each."""

from hylift.inference.local.kernels import entry_with_views, joint_state, term_value
from hylift.inference.sampling.kernels.reals import draw_reals
from hylift.inference.sampling.kernels.records import note_reals
from hylift.inference.sampling.kernels.sweep import draw_groups, draw_states, note_states
from hylift.inference.sampling.state import STALE

UNNOTED, PLACES, WHOLE = 0, 1, 2
"""Records of a sweep: none, where reals with bounds are, or all."""


@entry_with_views
def sweep_particles(terms, blocks, groups, chain, record, x, in_groups, noted):
    """Draws all variables but those of functions in x (particle, variable), once each.

    chain: room for one particle. in_groups: draw states together first. Returns a variable that
    nothing holds, or -1.
    """
    for i in range(len(x)):
        for v in range(len(chain.x)):
            chain.x[v] = x[i, v]
            if terms.variable[v].num_states == 0 and terms.variable[v].movable == 0:
                chain.origin[v] = x[i, v]
        for t in range(len(terms.term)):
            chain.joint[t] = joint_state(terms, chain.x, t)
        for c in range(len(chain.known)):
            chain.known[c] = STALE
        if in_groups:
            draw_groups(terms, blocks.of_term, groups, chain)
        draw_states(terms, blocks.of_term, groups.is_collapsed, chain, record.probs, noted == WHOLE)
        loose = draw_reals(terms, blocks, chain)
        if loose >= 0:
            return loose
        if noted != UNNOTED:
            note_reals(terms, blocks, chain, record, noted == WHOLE)
        if noted == WHOLE:
            note_states(terms, groups, chain, record.probs)
        for v in range(len(chain.x)):
            x[i, v] = chain.x[v]
    return -1


@entry_with_views
def add_values(terms, x, joint, share, owner, total):
    """Adds the log-values of terms, times a share (term,), to totals (particle, owner); joint:
    (particle, term); owner: (term,)."""
    for i in range(len(x)):
        for t in range(len(terms.term)):
            if share[t] != 0.0:
                total[i, owner[t]] += share[t] * term_value(terms, x[i], t, joint[i, t])
