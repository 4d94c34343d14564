"""Gradients beside finite differences of an evaluation with many nodes.

Score-form gradients are exact where the quadrature is: the number of nodes is high, the shapes of
Betas are at least 4, and the components of Gaussians overlap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.components.family import CATEGORICAL, GAUSSIAN
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, categorical, interval, real
from hylift.inference.variational.objective import Entropy, Objective
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Function, Table
from inference.variational.candidates import nodes, problem_of, random_mixtures
from random_models import graphs
from zoo import ZOO, ZooModel, toy_hybrid_mln

Array = np.ndarray
STEP = 1e-3
OFFSETS = np.array([-2.0, -1.0, 1.0, 2.0])
FORMULA = np.array([1.0, -8.0, 8.0, -1.0]) / 12  # of fourth order


def moved(problem: FitProblem, q: Mixtures, row: int, component: int, by: float) -> Mixtures:
    """One coordinate of one start moved: the first rows are weights of parts, then come entries.

    Means move as they are, all else by its logarithm; probabilities stay normalised.
    """
    layout = problem.layout
    weights, entries = q.weights.copy(), q.entries.copy()
    if row < problem.num_parts:
        weights[0, row, component] *= np.exp(by)
        return Mixtures(weights / weights.sum(axis=2, keepdims=True), entries)
    entry = row - problem.num_parts
    variable = int(np.searchsorted(layout.first, entry, side="right")) - 1
    begin, end = layout.first[variable : variable + 2]
    if layout.family[variable] == GAUSSIAN and entry == begin:
        entries[0, entry, component] += by
        return Mixtures(weights, entries)
    entries[0, entry, component] *= np.exp(by)
    if layout.family[variable] == CATEGORICAL:
        entries[0, begin:end, component] /= entries[0, begin:end, component].sum()
    return Mixtures(weights, entries)


def finite_differences(objective: Objective, q: Mixtures) -> Array:
    """(weight or entry, component), all of them evaluated as starts of one call."""
    rows, size = q.weights.shape[1] + q.entries.shape[1], q.num_components
    points = [
        moved(objective.problem, q, row, component, STEP * offset)
        for row in range(rows)
        for component in range(size)
        for offset in OFFSETS
    ]
    together = Mixtures(
        np.concatenate([p.weights for p in points]), np.concatenate([p.entries for p in points])
    )
    values = objective.evaluate(together).value.reshape(rows, size, len(OFFSETS))
    return values @ FORMULA / STEP


def analytic(objective: Objective, q: Mixtures) -> Array:
    """The gradient in the same coordinates."""
    layout, at = objective.problem.layout, objective.evaluate(q)
    num_parts = objective.problem.num_parts
    found = np.empty((num_parts + layout.num_entries, q.num_components))
    weights, of_weights = q.weights[0], at.of_weights[0]
    mean = (weights * of_weights).sum(axis=1, keepdims=True)
    found[:num_parts] = weights * (of_weights - mean)
    for variable, family in enumerate(layout.family):
        begin, end = layout.first[variable : variable + 2]
        own, slope = q.entries[0, begin:end], at.of_entries[0, begin:end]
        if family == CATEGORICAL:
            found[num_parts:][begin:end] = own * (slope - (own * slope).sum(axis=0))
        elif family == GAUSSIAN:
            found[num_parts:][begin:end] = slope[0], own[1] * slope[1]
        else:
            found[num_parts:][begin:end] = own * slope
    return found


def check_gradient(
    problem: FitProblem,
    entropy: Entropy,
    num_components: int,
    seed: int,
    *,
    num_nodes: int = 45,
    hard: float = np.inf,
) -> None:
    rng = np.random.default_rng(seed)
    q = random_mixtures(problem, 1, num_components, rng, shapes=(4.0, 8.0))
    with nodes(num_nodes):
        objective = Objective(problem, entropy, "search", hard)

        actual, expected = analytic(objective, q), finite_differences(objective, q)

    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8 * scale)


def ripple(*arguments: Array) -> Array:
    total = sum((place + 1) * np.asarray(slot) for place, slot in enumerate(arguments))
    return np.cos(0.7 * total) - 0.1 * total**2


def table() -> FactorGraph:
    rng = np.random.default_rng(1)
    return FactorGraph.build(
        {"a": boolean, "b": categorical(3), "c": categorical(4)},
        [
            (Table.shared(rng.normal(size=(2, 3, 4))), ["a", "b", "c"]),
            (Table.shared(rng.normal(size=(3, 4))), ["b", "c"]),
            (Table.shared(rng.normal(size=2)), ["a"]),
        ],
    )


def quadratic_of_gaussians() -> FactorGraph:
    return _quadratic(real, real)


def quadratic_of_betas() -> FactorGraph:
    return _quadratic(interval(-1.0, 2.0), interval(0.0, 3.0))


def quadratic_of_both() -> FactorGraph:
    return _quadratic(interval(-1.0, 2.0), real)


def _quadratic(first: object, second: object) -> FactorGraph:
    rng = np.random.default_rng(2)
    A, b, c = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2)), rng.normal(size=3)
    A = -A @ np.swapaxes(A, -1, -2)
    variables = Variables.named({"s": categorical(3), "x": first, "y": second})
    return FactorGraph(
        variables,
        (
            FactorGroup(ConditionalQuadratic.shared(A, b, c), np.array([[0, 1, 2]])),
            FactorGroup(
                ConditionalQuadratic.square(-0.4),
                np.array([[1], [2]]),
                multiplicity=np.array([1.0, 2.5]),
            ),
        ),
    )


def function_of_gaussians() -> FactorGraph:
    return _function(real, real)


def function_of_betas() -> FactorGraph:
    return _function(interval(-1.0, 2.0), interval(0.0, 3.0))


def function_of_a_gaussian_and_a_beta() -> FactorGraph:
    return _function(real, interval(0.0, 3.0))


def _function(first: object, second: object) -> FactorGraph:
    return FactorGraph.build(
        {"s": categorical(3), "x": first, "y": second},
        [(Function(ripple, 1, 2), ["s", "x", "y"]), (Function(ripple, 0, 1), [["x"], ["y"]])],
    )


def function_of_states() -> FactorGraph:
    return FactorGraph.build(
        {"s": categorical(3), "t": boolean}, [(Function(ripple, 2, 0), ["s", "t"])]
    )


MODELS = [
    table,
    quadratic_of_gaussians,
    quadratic_of_betas,
    quadratic_of_both,
    function_of_gaussians,
    function_of_betas,
    function_of_a_gaussian_and_a_beta,
    function_of_states,
]


@pytest.mark.parametrize("num_components", [1, 2, 3])
@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_gradients_are_finite_differences(
    model: Callable[[], FactorGraph], entropy: Entropy, num_components: int
) -> None:
    problem = problem_of(model(), betas=True)

    check_gradient(problem, entropy, num_components, seed=num_components)


@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
@pytest.mark.parametrize("betas", [False, True])
def test_gradients_of_classes_count_their_members(entropy: Entropy, betas: bool) -> None:
    """Lifted: a class of several variables, several times in one factor."""
    problem = problem_of(lift(toy_hybrid_mln()).graph, betas=betas)

    check_gradient(problem, entropy, 2, seed=7)


@settings(max_examples=25)
@given(
    graphs(max_discrete=2, max_reals=2),
    st.sampled_from(["bethe", "jensen", "tracey"]),
    st.integers(1, 3),
)
def test_gradients_of_random_graphs_are_finite_differences(
    graph: FactorGraph, entropy: Entropy, num_components: int
) -> None:
    """What is impossible counts with a finite price."""
    try:
        problem = problem_of(graph.condition(), betas=True)
    except ImpossibleEvidenceError:
        return

    check_gradient(problem, entropy, num_components, seed=1, hard=20.0)


@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
@pytest.mark.parametrize("model", [m for m in ZOO if "discrete" in m.tags], ids=str)
def test_gradients_of_discrete_models_are_finite_differences(
    model: ZooModel, entropy: Entropy
) -> None:
    problem = problem_of(model.graph().condition(), betas=True)

    check_gradient(problem, entropy, 2, seed=4, hard=20.0)
