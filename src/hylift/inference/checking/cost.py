"""Predicted seconds of checks, from the sizes of graphs: rough, and the same on every machine."""

from __future__ import annotations

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.sampling import Gibbs
from hylift.inference.smc import SMC
from hylift.rewrite.parts import parts_of

STEPS = 40
"""Powers to which particles raise the distribution, as a rule."""
PER_VISIT = 2e-7
"""Seconds that a chain of Gibbs spends on a factor at each sweep."""
FEWEST_DRAWS = 200
"""Draws of each chain below which Gibbs is no check."""


def particle_seconds(graph: FactorGraph, method: SMC) -> float:
    """The time of particles, from the states that they move and the reals beside."""
    part, count = parts_of(graph)
    is_real = graph.variables.num_states == 0
    reals = np.bincount(part[is_real], minlength=count)[part[~is_real]]
    moves = STEPS * method.groups * method.particles
    return moves * float((1.5e-7 + np.where(reals > 0, 1.2e-6 + 5e-9 * reals, 0.0)).sum())


def affordable_chains(graph: FactorGraph, seconds: float) -> Gibbs | None:
    """Gibbs with as many draws as so many seconds allow, if they are enough to judge by."""
    method = Gibbs()
    sweep = method.chains * PER_VISIT * max(graph.num_factors, 1)
    draws = int(seconds / sweep / 1.5)
    if draws < FEWEST_DRAWS:
        return None
    return method if draws >= method.draws else Gibbs(draws=draws, warm_up=draws // 2)
