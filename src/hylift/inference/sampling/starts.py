"""Where chains begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.inference.search import polish


def random_starts(
    graph: FactorGraph, rngs: list[np.random.Generator], *, seconds: float | None
) -> NDArray[np.float64]:
    """(chain, variable): random assignments, led to where no hard constraint is broken.

    Reals without two bounds begin at 0, or at their bound: they are drawn soon, given the states.
    """
    variables = graph.variables
    lower, upper, num_states = variables.lower, variables.upper, variables.num_states
    is_closed = np.isfinite(lower) & np.isfinite(upper)
    low = np.where(is_closed, lower, np.clip(0.0, lower, upper))
    width = np.where(is_closed, upper - lower, 0.0)
    starts = np.empty((len(rngs), len(variables)))
    for chain, rng in enumerate(rngs):
        share = rng.random(len(variables))
        start = np.where(num_states > 0, np.floor(share * num_states), low + share * width)
        if graph.log_density(start) == -np.inf:
            left = None if seconds is None else seconds / len(rngs)
            found = polish(graph, start[None], seconds=left)
            if found.log_density == -np.inf:
                raise ImpossibleEvidenceError(
                    "Gibbs begins where no hard constraint is broken, and local search found no "
                    "such assignment: the evidence may contradict the hard constraints, or they "
                    "are too hard a puzzle for it. Exact() can tell where it is feasible."
                )
            start = found.values
        starts[chain] = start
    return starts
