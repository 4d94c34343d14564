"""Starts of chains: random assignments that break no hard constraint, far from each other."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.chains import Chains, Layout, Seeds
from hylift.inference.sampling.kernels.sweep import LAST
from hylift.inference.search.polish import polish, repair
from hylift.inference.search.walker import scattered
from hylift.words import method_call, worded

FloatArray = NDArray[np.float64]

ROUNDS, SWEEPS = 4, 24
"""Rounds of as many scouts as there are chains, and the sweeps of each."""

MOST_SHARE = 0.1
"""Of the time that scouts may take."""

LEAST_SPREAD = 1e-12
"""Of a variable, relative to its size, below which scouts do not differ in it."""


def dispersed(
    graph: FactorGraph, layout: Layout, seeds: Seeds, num_chains: int, control: Control
) -> FloatArray:
    """(chain, variable): where chains begin: the ends of short ones that are farthest apart."""
    seconds = control.request.seconds
    until = np.inf if seconds is None else control.elapsed + MOST_SHARE * seconds
    places, means, squares, worth = [], [], [], []
    for first in range(0, num_chains * ROUNDS, num_chains):
        own = seeds[first : first + num_chains]
        half = seconds and seconds / 2
        rngs = [np.random.default_rng(seed) for seed in own]
        begin = random_starts(graph, layout.terms, rngs, seconds=half)
        scouts = Chains.at(begin, own, graph, layout, control, SWEEPS)
        values = scouts.scout(SWEEPS, until)
        values = values[:, values.shape[1] // 2 :]
        places.append(values[:, -1])
        means.append(values.mean(axis=1))
        squares.append((values**2).mean(axis=(0, 1)))
        worth.append([chain.log_density[LAST] for chain in scouts.members])
        if control.elapsed > until:
            control.hurry()
            break
    mean = np.concatenate(means)
    spread = np.sqrt(np.maximum(np.mean(squares, axis=0) - mean.mean(axis=0) ** 2, 0.0))
    return _farthest(np.concatenate(places), mean, spread, np.concatenate(worth), num_chains)


def _farthest(
    place: FloatArray, mean: FloatArray, spread: FloatArray, log_density: FloatArray, count: int
) -> FloatArray:
    """(chain, variable): the places of so many scouts that are far from each other, and the most
    probable of all: chains from there see whether the modes of a model are connected.

    place, mean: (scout, variable), at the end and on average. spread: (variable,). log_density:
    (scout,).
    """
    size = LEAST_SPREAD * np.maximum(np.abs(mean).max(axis=0), 1e-290)
    apart = np.where(spread > size, mean - mean.mean(axis=0), 0.0) / np.maximum(spread, size)
    chosen = [int(np.argmax(log_density))]
    nearest = np.full(len(place), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, ((apart - apart[chosen[-1]]) ** 2).sum(axis=1))
        nearest[chosen] = -1.0
        chosen.append(int(np.argmax(nearest)))
    return place[chosen]


MOST_FLIPS, PER_VARIABLE = 10_000, 100
"""Flips of a walk to where no hard table is broken, and those per variable on top of them."""

RANDOM = 0.5
"""Probability of a random flip on this walk."""


def random_starts(
    graph: FactorGraph, terms: LocalTerms, rngs: list[np.random.Generator], *, seconds: float | None
) -> FloatArray:
    """(chain, variable): random assignments, led to where no hard constraint is broken.

    They are led by random walks that nothing else attracts, so that chains begin far apart.
    """
    starts = np.empty((len(rngs), graph.num_variables))
    for chain, rng in enumerate(rngs):
        start = scattered(graph.variables, rng)
        left = None if seconds is None else seconds / len(rngs)
        if graph.log_density(start) == -np.inf:
            start = _led(graph, terms, _within_functions(graph, start, rng), rng, left)
        starts[chain] = start
    return starts


MOST_ROUNDS = 100
"""In which the variables of broken functions are put anywhere."""


def _within_functions(
    graph: FactorGraph, start: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """A start at which fewer functions are -inf, if possible none."""
    functions = [group for group in graph.groups if group.potential.quadratic() is None]
    for _ in range(MOST_ROUNDS if functions else 0):
        broken = [group.scope[np.isneginf(group.log_values(start))].ravel() for group in functions]
        wrong = np.unique(np.concatenate(broken))
        if not len(wrong):
            break
        start[wrong] = scattered(graph.variables, rng)[wrong]
    return start


def _led(
    graph: FactorGraph,
    terms: LocalTerms,
    start: FloatArray,
    rng: np.random.Generator,
    seconds: float | None,
) -> FloatArray:
    """An assignment that breaks no hard constraint, by a random walk; or, where constraints are
    too hard for that, by local search."""
    began = time.monotonic()

    def is_late() -> bool:
        return seconds is not None and time.monotonic() - began > seconds / 2

    # Every chain walks in a random landscape of its own, so that they end in different places.
    variable = terms.variable.copy()
    variable["last"] = variable["split"]  # tables only
    theta = np.where(np.isneginf(terms.theta), -np.inf, rng.random(len(terms.theta)))
    tables = terms._replace(term=terms.term[: terms.num_tables], variable=variable, theta=theta)
    flips, seed = MOST_FLIPS + PER_VARIABLE * len(start), int(rng.integers(2**63))
    found = repair(tables, start, flips, random=RANDOM, seed=seed, is_late=is_late)
    if found is not None and graph.log_density(found) > -np.inf:
        return found
    if seconds is not None:
        seconds = max(seconds - (time.monotonic() - began), 0.0)
    polished = polish(graph, start[None], seconds=seconds)
    if polished.log_density == -np.inf:
        raise ImpossibleEvidenceError(
            "Gibbs begins where no hard constraint is broken, and local search found no "
            "such assignment: the evidence may contradict the hard constraints, or they "
            "are too hard for it.",
            worded(method_call("Exact"), " decides where it is feasible."),
        )
    return polished.values
