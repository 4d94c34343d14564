"""Chains that a check can afford, by the size of the graph: the same on every machine."""

from __future__ import annotations

from hylift.graph import FactorGraph
from hylift.inference.attempts import Clock
from hylift.inference.sampling import Gibbs
from hylift.inference.smc import SMC
from hylift.inference.smc.cost import particle_seconds

PER_STATE, PER_FACTOR, PER_FUNCTION, ANY_FUNCTION = 1e-7, 1.2e-7, 7e-6, 2e-4
"""Seconds that a chain of Gibbs spends on a state, a factor or a function at each sweep, and if
there are functions at all."""
PER_VARIABLE, MOST_SECONDS = 0.012, 120.0
"""Of all processors, for chains on large graphs where the user has set no limit: half on two."""
FEWEST_DRAWS, DRAWS, MOST_LONGER = 200, 500, 64
"""Draws of each chain below which Gibbs is no check, its draws as a rule, and times as many that it
makes while variables are uncertain."""


CHECK_SHARE = 0.7
"""Of the time that the user allows, which is left for a check where one fits into it."""


def affords_check(graph: FactorGraph, clock: Clock) -> bool:
    """True if particles or chains fit into the time that is left for them."""
    if clock.seconds is None:
        return True
    left = Clock(clock.elapsed + CHECK_SHARE * clock.for_checks, clock.began)
    is_cheap = particle_seconds(graph, SMC()) <= left.for_checks
    return is_cheap or affordable_chains(graph, left) is not None


def affordable_chains(graph: FactorGraph, clock: Clock) -> Gibbs | None:
    """Gibbs with as many draws as there is time for, if they are enough to judge by."""
    seconds, chains = clock.for_checks, Gibbs().chains
    if clock.seconds is None:
        seconds = max(seconds, min(PER_VARIABLE * graph.num_variables, MOST_SECONDS))
    functions = sum(len(group) for group in graph.groups if group.potential.quadratic() is None)
    sweep = PER_STATE * float(graph.variables.num_states.sum())
    sweep += PER_FACTOR * graph.num_factors + PER_FUNCTION * functions
    sweep += ANY_FUNCTION if functions else 0.0
    most = int(seconds / (1.5 * chains * max(sweep, 1e-9)))
    if most < FEWEST_DRAWS:
        return None
    draws = min(most, DRAWS)
    longer = MOST_LONGER if clock.seconds is not None else min(most // draws, MOST_LONGER)
    return Gibbs(draws=draws, warm_up=draws // 2, longer=longer)
