"""Predicted seconds of checks, from the sizes of graphs: rough, and the same on every machine."""

from __future__ import annotations

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.sampling import Gibbs
from hylift.inference.smc import SMC
from hylift.rewrite.parts import parts_of

STEPS = 30
"""Powers to which particles raise the distribution, as a rule."""
PER_STATE, PER_UPDATE, PER_REAL = 1e-7, 4e-7, 3e-9
"""Seconds for a state of a variable of a particle; in a part with reals; and for each of these."""
PER_FACTOR, PER_FUNCTION = 3e-7, 7e-6
"""Seconds that a chain of Gibbs spends on a factor, or a function of reals, at each sweep."""
FEWEST_DRAWS = 200
"""Draws of each chain below which Gibbs is no check."""


def particle_seconds(graph: FactorGraph, method: SMC) -> float:
    """The time of particles, from the states that they move and the reals beside."""
    part, count = parts_of(graph)
    num_states = graph.variables.num_states
    reals = np.bincount(part[num_states == 0], minlength=count)[part]
    each = PER_STATE + np.where(reals > 0, PER_UPDATE + PER_REAL * reals, 0.0)
    return STEPS * method.groups * method.particles * float(num_states @ each)


def affordable_chains(graph: FactorGraph, seconds: float) -> Gibbs | None:
    """Gibbs with as many draws as so many seconds allow, if they are enough to judge by."""
    method = Gibbs()
    functions = sum(len(group) for group in graph.groups if group.potential.quadratic() is None)
    sweep = PER_STATE * float(graph.variables.num_states.sum())
    sweep += PER_FACTOR * graph.num_factors + PER_FUNCTION * functions
    draws = int(seconds / (1.5 * method.chains * max(sweep, 1e-9)))
    if draws < FEWEST_DRAWS:
        return None
    longer = int(np.clip(draws / method.draws, 1, method.longer))
    draws = min(draws, method.draws)
    return Gibbs(draws=draws, warm_up=draws // 2, longer=longer)
