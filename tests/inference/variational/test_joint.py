"""Mixtures whose components have one joint Gaussian for all reals."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from answers import infer, log_z
from hybrid_models import random_hybrid
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import EP, NPVI, Exact, MeanField
from hylift.inference.prepared import Prepared
from hylift.inference.variational.joint import JointGaussians
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.potentials import ConditionalQuadratic, Function, Table
from oracle import quadratic
from random_models import graphs
from zoo import unbounded_relational_gaussian_model

Vector = NDArray[np.float64]
JOINT = NPVI(3, bound="tracey", joint=True)


def free_energy(problem: FitProblem, q: Mixtures) -> float:
    """By enumeration and dense matrices, for a graph of one part; the reals come last."""
    graph, layout = problem.graph, problem.layout
    num_states = graph.variables.num_states
    discrete, reals = np.flatnonzero(num_states), np.flatnonzero(num_states == 0)
    energies, moments, probs = [], [], []
    for k in range(q.num_components):
        each = [q.entries[0, layout.first[v] : layout.first[v + 1], k] for v in discrete]
        J, expected = np.zeros((len(reals), len(reals))), 0.0
        mean = q.entries[0, layout.first[reals], k]
        for states in product(*(range(n) for n in num_states[discrete])):
            share = np.prod([p[s] for p, s in zip(each, states, strict=True)])

            def density(x: Vector, states: tuple[int, ...] = states) -> float:
                return graph.log_density(np.concatenate([states, x]))

            A, _, _ = quadratic(density, len(reals))
            J += share * A
            expected += share * density(mean)
        entropy = -sum((p * np.log(p)).sum() for p in each)
        entropy += 0.5 * (len(reals) * np.log(2 * np.pi) - np.linalg.slogdet(J)[1])
        energies.append(expected + entropy)
        moments.append((mean, np.linalg.inv(J)))
        probs.append(each)
    overlaps = np.zeros((len(energies), len(energies)))
    for k, j in product(range(len(energies)), repeat=2):
        (a, one), (b, other) = moments[k], moments[j]
        middle = 0.5 * (one + other)
        overlaps[k, j] = -0.125 * (a - b) @ np.linalg.solve(middle, a - b)
        volumes = [np.linalg.slogdet(matrix)[1] for matrix in (one, other, middle)]
        overlaps[k, j] += 0.25 * (volumes[0] + volumes[1]) - 0.5 * volumes[2]
        overlaps[k, j] += sum(
            np.log(np.sqrt(p * r).sum()) for p, r in zip(probs[k], probs[j], strict=True)
        )
    weights = q.weights[0, 0]
    found = weights @ (np.array(energies) - logsumexp(overlaps, b=weights, axis=1))
    return -float(found)


def problem_and_mixture(size: int, num_components: int) -> tuple[Objective, Mixtures]:
    names = [f"b{i}" for i in range(size)], [f"x{i}" for i in range(size)]
    rng = np.random.default_rng(size)
    A = np.einsum("sij,skj->sik", *2 * [rng.normal(size=(2, 2, 2))])
    switched = ConditionalQuadratic(
        -A[None] - np.eye(2), rng.normal(size=(1, 2, 2)), rng.normal(size=(1, 2))
    )
    links = [[names[0][i], *pair] for i, pair in enumerate(pairwise(names[1]))]
    graph = FactorGraph.build(
        dict.fromkeys(names[0], boolean) | dict.fromkeys(names[1], real),
        [
            (Table(rng.normal(size=(size - 1, 2, 2))), list(map(list, pairwise(names[0])))),
            (switched, links),
            (ConditionalQuadratic.square(-0.3), [[name] for name in names[1]]),
        ],
    )
    ground = Prepared.of(graph).ground
    problem = FitProblem.of(ground, np.zeros(2 * size, dtype=bool), scopes=False)
    layout = problem.layout
    entries = rng.uniform(0.1, 1.0, (1, layout.num_entries, num_components))
    layout.normalize(entries, layout.discrete)
    weights = rng.dirichlet(np.ones(num_components), (1, 1))
    joint = JointGaussians.of(problem)
    return Objective(problem, "tracey", "final", joint=joint), Mixtures(weights, entries)


@pytest.mark.parametrize("num_components", [1, 3])
def test_its_free_energy_is_that_of_dense_algebra(num_components: int) -> None:
    objective, q = problem_and_mixture(4, num_components)

    found = objective.evaluate(q).value[0]

    assert found == pytest.approx(free_energy(objective.problem, q), rel=1e-10)


@pytest.mark.parametrize("num_components", [1, 3])
def test_slopes_are_differences_of_its_free_energy(num_components: int) -> None:
    objective, q = problem_and_mixture(4, num_components)
    layout, rng = objective.problem.layout, np.random.default_rng(0)
    slope = objective.evaluate(q).of_entries
    along = rng.normal(size=slope.shape)
    at = layout.entries_of(layout.discrete).reshape(-1, 2)
    along[:, at] -= along[:, at].mean(axis=2, keepdims=True)  # probabilities still add up

    def value(step: float) -> float:
        return float(objective.evaluate(Mixtures(q.weights, q.entries + step * along)).value[0])

    expected = (value(1e-5) - value(-1e-5)) / 2e-5
    assert (slope * along).sum() == pytest.approx(expected, rel=1e-6)


@given(graphs(max_discrete=0, max_reals=5))
def test_gaussian_graphs_are_exact(graph: FactorGraph) -> None:
    found, exact = infer(graph, NPVI(1, bound="tracey", joint=True)), infer(graph, Exact())

    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-9)
    for name in graph.variables.names.render().to_pylist():
        assert found.marginal(name).mean == pytest.approx(exact.marginal(name).mean, abs=1e-9)
        assert found.marginal(name).std == pytest.approx(exact.marginal(name).std, abs=1e-9)


@settings(max_examples=40)
@given(graphs(max_discrete=4, max_reals=4), st.integers(1, 3))
def test_its_bound_is_between_mean_field_and_log_z(graph: FactorGraph, count: int) -> None:
    try:
        exact = log_z(infer(graph, Exact(), tasks="logz"))
    except ImpossibleEvidenceError:
        return
    rounding = 1e-9 * max(1.0, abs(exact))

    found = infer(graph, NPVI(count, restarts=5, bound="tracey", joint=True)).log_partition
    single = infer(graph, MeanField(), tasks="logz").log_partition

    assert found is not None
    assert single is not None
    assert found.value >= single.value - rounding
    assert found.lower <= exact + rounding


@pytest.mark.parametrize("coupling", [1.0, 3.0])
def test_it_is_tighter_and_wider_than_a_mixture_of_products(coupling: float) -> None:
    gaps, deviations = [], []
    for seed in range(8):
        graph = random_hybrid(seed, coupling)
        exact, found = infer(graph, Exact()), infer(graph, JOINT)
        products = infer(graph, NPVI(3, bound="tracey"))
        gaps.append([log_z(exact) - log_z(one) for one in (found, products)])
        deviations += [found.marginal(f"x{i}").std / exact.marginal(f"x{i}").std for i in range(9)]

    joint, by_products = np.median(gaps, axis=0)
    assert joint < 0.8 * by_products
    assert np.median(deviations) == pytest.approx(1.0, abs=0.04)


def test_draws_have_the_marginals_and_correlations_of_the_mixture() -> None:
    near = ConditionalQuadratic.squared_distance(4.0, [1.0, -1.0])
    reading = ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0]).times([0.5, 8.0])
    own = ConditionalQuadratic.squared_distance(0.5, [1.0], 2.0)
    graph = FactorGraph.build(
        {"a": boolean, "x": real, "y": real, "leaf": real},
        [
            (near, ["x", "y"]),
            (own, ["x"]),
            (reading, ["a", "y", "leaf"]),
            (Table(np.array([[0.0, 1.0]])), ["a"]),
        ],
    )
    exact = infer(graph, Exact())

    found = infer(graph, JOINT, seed=3)

    assert found.mixture is None
    assert found.draws is not None
    values = dict(zip(("a", "x", "y", "leaf"), found.draws.values.reshape(-1, 4).T, strict=True))
    for name in ("x", "y", "leaf"):
        expected = exact.marginal(name)
        assert found.marginal(name).std == pytest.approx(expected.std, rel=1e-6)
        assert values[name].mean() == pytest.approx(expected.mean, abs=0.1 * expected.std)
        assert values[name].std() == pytest.approx(expected.std, rel=0.1)
    assert values["a"].mean() == pytest.approx(exact.marginal("a").prob("true"), abs=0.05)
    correlation = 1 / np.sqrt(1 + 1 / 8)  # y is x and a little noise
    assert np.corrcoef(values["x"], values["y"])[0, 1] == pytest.approx(correlation, abs=0.03)


def test_parts_have_weights_of_their_own() -> None:
    apart = np.array([[[-8.0], [8.0]]])
    switched = ConditionalQuadratic(np.full((1, 2, 1, 1), -1.0), apart, np.zeros((1, 2)))
    names = [(f"a{i}", f"x{i}") for i in range(3)]
    graph = FactorGraph.build(
        {name: kind for pair in names for name, kind in zip(pair, (boolean, real), strict=True)},
        [(switched, names), (ConditionalQuadratic.square(-0.2), [[x] for _, x in names])],
    )

    found = infer(graph, NPVI(2, bound="tracey", joint=True), lift="none")

    exact = log_z(infer(graph, Exact(), tasks="logz"))
    assert log_z(found) == pytest.approx(exact, abs=1e-3)  # with common weights: 1.4 below


def test_lifting_helps_the_start_only() -> None:
    graph = unbounded_relational_gaussian_model()
    exact = log_z(infer(graph, Exact(), tasks="logz"))

    for lift in ("exact", "none"):
        found = infer(graph, JOINT, lift=lift, seed=1)
        assert log_z(found) <= exact + 1e-9
        assert log_z(found) >= log_z(infer(graph, MeanField(), lift=lift)) - 1e-9


def test_the_same_seed_gives_the_same_answer() -> None:
    graph = random_hybrid(2, 3.0)

    first, second = (infer(graph, JOINT, seed=7) for _ in range(2))

    assert first.draws is not None
    assert second.draws is not None
    assert np.array_equal(first.draws.values, second.draws.values)
    assert log_z(first) == log_z(second)


def test_it_says_what_it_cannot_take() -> None:
    square = ConditionalQuadratic.square(-0.01)
    narrow = FactorGraph.build({"x": interval(-1, 1), "y": real}, [(square, [["x"], ["y"]])])
    power = Function(lambda x: -(x**4), 0, 1)
    function = FactorGraph.build({"x": real}, [(power, ["x"])])

    with pytest.raises(UnsupportedError, match="'x' has bounds that matter, which a joint Gauss"):
        infer(narrow, JOINT)
    with pytest.raises(UnsupportedError, match="needs tables and conditional quadratics"):
        infer(function, JOINT)
    with pytest.raises(UnsupportedError, match=r"joint is for Gaussians.*use bound='tracey'"):
        NPVI(3, joint=True)
    with pytest.raises(UnsupportedError, match="joint must be True or False, not 1"):
        NPVI(3, bound="tracey", joint=1)  # type: ignore[arg-type]


@given(graphs(max_discrete=4, max_reals=3))
def test_a_bound_beside_the_estimate_of_ep_is_one(graph: FactorGraph) -> None:
    try:
        exact = log_z(infer(graph, Exact(), tasks="logz"))
        found = infer(graph, EP(), tasks="logz").log_partition
    except ImpossibleEvidenceError:
        return

    assert found is not None
    assert found.lower <= exact + 1e-9 * max(1.0, abs(exact))


def test_the_bound_beside_ep_is_about_as_good_as_that_of_mean_field() -> None:
    of_ep, single = [], []
    for seed in range(10):
        graph = random_hybrid(seed, 3.0)
        found = infer(graph, EP(), rewrite=False).log_partition
        assert found is not None
        assert found.at_least is not None
        of_ep.append(found.at_least)
        single.append(log_z(infer(graph, MeanField())))

    assert np.median(np.array(of_ep) - single) > 0.1
