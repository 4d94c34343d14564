"""Problems and random mixtures on which the fast objectives are tried, and the slow ones beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import slow_objective
from hylift.components.family import BETA, CATEGORICAL
from hylift.graph import Evidence, FactorGraph
from hylift.inference.variational.objective import Entropy
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.lifting import Lifting
from hylift.numerics import quadrature
from hylift.rewrite.parts import some_parts

Array = NDArray[np.float64]


def problem_of(graph: FactorGraph, *, betas: bool, lifting: Lifting | None = None) -> FitProblem:
    """A graph without evidence, of classes where there is a lifting; `betas`: reals bounded on both
    sides are Beta."""
    variables = graph.variables
    closed = np.isfinite(variables.upper - variables.lower) & (variables.num_states == 0)
    ground = None if lifting is None else (lifting.variable_to_class, lifting.ground)
    return FitProblem.of(graph, closed & betas, scopes=True, ground=ground)


@contextmanager
def nodes(number: int) -> Iterator[None]:
    """Objectives of the accuracy 'search' have this many nodes in every real slot meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(quadrature.NODES, "search", (1, *[number] * 4))
        yield


def random_mixtures(
    problem: FitProblem,
    num_starts: int,
    num_components: int,
    rng: np.random.Generator,
    *,
    zeros: bool = False,
    shapes: tuple[float, float] = (1.5, 6.0),
) -> Mixtures:
    """`zeros`: some states are impossible. `shapes`: least and most alpha and beta of Betas."""
    layout = problem.layout
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
    weights = rng.dirichlet(np.full(num_components, 3.0), (num_starts, problem.num_parts))
    return Mixtures(weights, entries)


def slow_mixture(problem: FitProblem, q: Mixtures, start: int) -> slow_objective.Mixture:
    """Of a problem with one part."""
    return slow_objective.Mixture.from_entries(
        problem.graph, problem.layout, q.weights[start, 0], q.entries[start]
    )


def part_alone(problem: FitProblem, q: Mixtures, part: int) -> tuple[FitProblem, Mixtures]:
    """One copy of a part of a problem as a problem of its own, and what mixtures say about it."""
    is_kept, copies = problem.part == part, problem.copies[part]
    graph = some_parts(problem.graph, is_kept)
    variables = replace(graph.variables, multiplicity=graph.variables.multiplicity / copies)
    groups = [replace(group, multiplicity=group.multiplicity / copies) for group in graph.groups]
    graph = FactorGraph.unchecked(variables, groups, Evidence.none(), 0.0)
    layout = problem.layout.take(np.flatnonzero(is_kept))
    alone = replace(problem, graph=graph, layout=layout)
    entries = q.entries[:, problem.layout.entries_of(np.flatnonzero(is_kept))]
    return alone, Mixtures(q.weights[:, part : part + 1], entries)


def slow_values(problem: FitProblem, q: Mixtures, entropy: Entropy, num_nodes: int) -> Array:
    """(start,): the objective term by term."""
    objective = getattr(slow_objective, entropy)
    total = np.full(q.num_starts, -problem.graph.log_constant)
    for part, copies in enumerate(problem.copies):
        alone, own = part_alone(problem, q, part)
        total += copies * np.array(
            [
                objective(alone.graph, slow_mixture(alone, own, start), num_nodes)
                for start in range(q.num_starts)
            ]
        )
    return total


def spread(
    q: Mixtures, lifted: FitProblem, ground: FitProblem, to_class: NDArray[np.integer]
) -> Mixtures:
    """The beliefs about classes as beliefs about their members."""
    width = ground.layout.size
    within = np.arange(ground.layout.num_entries) - np.repeat(ground.layout.first[:-1], width)
    source = np.repeat(lifted.layout.first[to_class], width) + within
    parts = np.zeros(ground.num_parts, dtype=np.int64)
    parts[ground.part] = lifted.part[to_class]
    weights = np.ascontiguousarray(q.weights[:, parts])
    return Mixtures(weights, np.ascontiguousarray(q.entries[:, source]))
