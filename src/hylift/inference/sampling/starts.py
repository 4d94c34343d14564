"""Where chains begin."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.inference.sampling.kernels.hard import wander
from hylift.inference.search import polish
from hylift.inference.search.kernels.arrays import Terms

FloatArray = NDArray[np.float64]

MOST_FLIPS, PER_VARIABLE = 10_000, 100
"""Flips of a walk to where no hard table is broken, and those per variable on top of them."""

AT_ONCE = 20_000
"""Flips between two looks at the clock."""


def random_starts(
    graph: FactorGraph, terms: Terms, rngs: list[np.random.Generator], *, seconds: float | None
) -> FloatArray:
    """(chain, variable): random assignments, led to where no hard constraint is broken.

    They are led by random walks that nothing else attracts, so that chains begin far apart. Reals
    without two bounds begin at 0, or at their bound: they are drawn soon, given the states.
    """
    variables = graph.variables
    lower, upper, num_states = variables.lower, variables.upper, variables.num_states
    is_closed = np.isfinite(lower) & np.isfinite(upper)
    low = np.where(is_closed, lower, np.clip(0.0, lower, upper))
    with np.errstate(invalid="ignore"):
        width = np.where(is_closed, upper - lower, 0.0)
    starts = np.empty((len(rngs), len(variables)))
    for chain, rng in enumerate(rngs):
        share = rng.random(len(variables))
        start = np.where(num_states > 0, np.floor(share * num_states), low + share * width)
        left = None if seconds is None else seconds / len(rngs)
        if graph.log_density(start) == -np.inf:
            start = _led(graph, terms, start, rng, left)
        starts[chain] = start
    return starts


def joint_states(terms: Terms, start: FloatArray) -> NDArray[np.int64]:
    """(term,): the number of its joint state in an assignment."""
    states = terms.entry["stride"] * start[terms.entry["variable"]]
    if not len(terms.term):
        return np.zeros(0, dtype=np.int64)
    return np.add.reduceat(states, terms.term["first"]).astype(np.int64)


def _led(
    graph: FactorGraph,
    terms: Terms,
    start: FloatArray,
    rng: np.random.Generator,
    seconds: float | None,
) -> FloatArray:
    """An assignment that breaks no hard constraint, by a random walk; or, where constraints are
    too hard a puzzle for that, by local search."""
    began = time.monotonic()
    found, joint = start.copy(), joint_states(terms, start)
    room = np.empty((2, terms.num_tables), dtype=np.int64)
    left = MOST_FLIPS + PER_VARIABLE * len(start)
    while left > 0:
        if wander(terms, found, joint, room, rng, min(left, AT_ONCE)):
            return found
        left -= AT_ONCE
        if seconds is not None and time.monotonic() - began > seconds / 2:
            break
    if seconds is not None:
        seconds = max(seconds - (time.monotonic() - began), 0.0)
    polished = polish(graph, start[None], seconds=seconds)
    if polished.log_density == -np.inf:
        raise ImpossibleEvidenceError(
            "Gibbs begins where no hard constraint is broken, and local search found no "
            "such assignment: the evidence may contradict the hard constraints, or they "
            "are too hard a puzzle for it. Exact() can tell where it is feasible."
        )
    return polished.values
