"""Chains that a check can afford, by the size of the graph: the same on every machine."""

from __future__ import annotations

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.sampling import Gibbs

PER_STATE, PER_FACTOR, PER_FUNCTION = 1e-7, 3e-7, 7e-6
"""Seconds that a chain of Gibbs spends on a state, a factor or a function at each sweep."""
FEWEST_DRAWS = 200
"""Draws of each chain below which Gibbs is no check."""


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
