"""Problems and random mixtures on which the fast objectives are tried, and the slow ones beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

import slow_objective
from hylift.components import Layout
from hylift.components.family import BETA, CATEGORICAL
from hylift.graph import FactorGraph
from hylift.inference.variational.objective import Entropy
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.numerics import quadrature

Array = NDArray[np.float64]


def problem_of(graph: FactorGraph, *, betas: bool) -> FitProblem:
    """A graph without evidence; `betas`: reals bounded on both sides are Beta."""
    variables = graph.variables
    closed = np.isfinite(variables.upper - variables.lower) & (variables.num_states == 0)
    return FitProblem.of(graph, closed & betas, scopes=True)


@contextmanager
def nodes(number: int) -> Iterator[None]:
    """Objectives of the accuracy 'search' have this many nodes in every real slot meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(quadrature.NODES, "search", (1, *[number] * 4))
        yield


def random_mixtures(
    layout: Layout,
    num_starts: int,
    num_components: int,
    rng: np.random.Generator,
    *,
    zeros: bool = False,
    shapes: tuple[float, float] = (1.5, 6.0),
) -> Mixtures:
    """`zeros`: some states are impossible. `shapes`: least and most alpha and beta of Betas."""
    entries = np.empty((num_starts, layout.num_entries, num_components))
    for variable, family in enumerate(layout.family):
        begin, end = layout.first[variable : variable + 2]
        shape = (num_starts, end - begin, num_components)
        if family == CATEGORICAL:
            probs = rng.uniform(0.1, 1.0, shape)
            if zeros:
                probs[:, 1:] *= rng.random(probs[:, 1:].shape) < 0.7
            entries[:, begin:end] = probs / probs.sum(axis=1, keepdims=True)
        elif family == BETA:
            entries[:, begin:end] = rng.uniform(*shapes, shape)
        else:
            entries[:, begin] = 0.6 * rng.normal(size=shape)[:, 0]
            entries[:, begin + 1] = rng.uniform(0.5, 1.5, shape)[:, 0]
    weights = rng.dirichlet(np.full(num_components, 3.0), num_starts)
    return Mixtures(weights, entries)


def slow_mixture(problem: FitProblem, q: Mixtures, start: int) -> slow_objective.Mixture:
    return slow_objective.Mixture.from_entries(
        problem.graph, problem.layout, q.weights[start], q.entries[start]
    )


def slow_values(problem: FitProblem, q: Mixtures, entropy: Entropy, num_nodes: int) -> Array:
    """(start,): the objective term by term."""
    objective = getattr(slow_objective, entropy)
    found = [
        objective(problem.graph, slow_mixture(problem, q, start), num_nodes)
        for start in range(q.num_starts)
    ]
    return np.array(found)


def spread(q: Mixtures, lifted: Layout, ground: Layout, to_class: NDArray[np.integer]) -> Mixtures:
    """The beliefs about classes as beliefs about their members."""
    width = np.diff(ground.first)
    within = np.arange(ground.num_entries) - np.repeat(ground.first[:-1], width)
    source = np.repeat(lifted.first[to_class], width) + within
    return Mixtures(q.weights, np.ascontiguousarray(q.entries[:, source]))
