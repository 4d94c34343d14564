"""The slow objectives beside direct integration, on models of one or two variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from hylift.components import Layout
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.potentials import ConditionalQuadratic, Function, Table
from oracle import solve
from slow_objective import Mixture, bethe, jensen, log_overlap

LOWER, UPPER = -1.0, 3.0
WEIGHTS = np.array([0.3, 0.7])
ALPHA, BETA = np.array([4.5, 4.0]), np.array([4.0, 7.0])
MEAN, VAR = np.array([0.5, -1.0]), np.array([0.3, 0.6])
PROBS = np.array([[0.2, 0.8], [0.9, 0.1]])  # (component, state)
HIGH = 60
"""Nodes at which log q of these Betas, which has poles at the ends, is integrated to 1e-9."""


def beta_density(k: int, x: float) -> float:
    return float(stats.beta.pdf(x, ALPHA[k], BETA[k], loc=LOWER, scale=UPPER - LOWER))


def of_bounded(function: Callable[[float], float]) -> float:
    """The integral over the interval."""
    return float(integrate.quad(function, LOWER, UPPER, epsabs=1e-12, limit=200)[0])


def mixture(graph: FactorGraph, is_beta: list[bool], entries: list[NDArray[np.float64]]) -> Mixture:
    layout = Layout.of(graph.variables, np.array(is_beta))
    return Mixture.from_entries(graph, layout, WEIGHTS, np.stack(entries))


def one_beta() -> FactorGraph:
    wave = Function(lambda x: np.sin(2 * x) - 0.2 * x**2, num_reals=1)
    return FactorGraph.build({"x": interval(LOWER, UPPER)}, [(wave, ["x"])])


def test_bethe_of_one_beta_is_the_free_energy() -> None:
    graph = one_beta()
    q = mixture(graph, [True], [ALPHA, BETA])

    def integrand(x: float) -> float:
        density = sum(WEIGHTS[k] * beta_density(k, x) for k in range(2))
        return special.xlogy(density, density) - density * (np.sin(2 * x) - 0.2 * x**2)

    assert bethe(graph, q, HIGH) == pytest.approx(of_bounded(integrand), abs=1e-8)


def test_jensen_of_one_beta_bounds_entropy_by_overlaps() -> None:
    graph = one_beta()
    q = mixture(graph, [True], [ALPHA, BETA])
    expected = 0.0
    for k in range(2):
        overlap = sum(
            WEIGHTS[j] * of_bounded(lambda x, k=k, j=j: beta_density(k, x) * beta_density(j, x))
            for j in range(2)
        )
        energy = of_bounded(lambda x, k=k: -beta_density(k, x) * (np.sin(2 * x) - 0.2 * x**2))
        expected += WEIGHTS[k] * (energy + np.log(overlap))

    actual = jensen(graph, q, HIGH)

    assert actual == pytest.approx(expected, abs=1e-9)
    assert actual >= bethe(graph, q, HIGH)


def test_bethe_of_a_beta_beside_a_gaussian_is_the_free_energy() -> None:
    quadratic = ConditionalQuadratic.shared([[-0.5, 0.3], [0.3, -1.0]], [0.7, -0.2])
    domains = {"x": interval(LOWER, UPPER), "y": real}
    graph = FactorGraph.build(domains, [(quadratic, ["x", "y"])])
    q = mixture(graph, [True, False], [ALPHA, BETA, MEAN, VAR])

    y = np.linspace(-9.0, 7.0, 401)
    normal = stats.norm.pdf(y, MEAN[:, None], np.sqrt(VAR)[:, None])

    def integrand(x: float) -> float:
        density = sum(WEIGHTS[k] * beta_density(k, x) * normal[k] for k in range(2))
        log_value = -0.5 * x**2 + 0.6 * x * y - y**2 + 0.7 * x - 0.2 * y
        return float(np.trapezoid(special.xlogy(density, density) - density * log_value, y))

    assert bethe(graph, q, HIGH) == pytest.approx(of_bounded(integrand), abs=1e-6)


def test_a_beta_and_a_discrete_variable_are_integrated_state_by_state() -> None:
    A, b = np.array([[[-0.5]], [[-2.0]]]), np.array([[1.0], [-1.0]])
    both = ConditionalQuadratic.shared(A, b, [0.1, 0.4])
    domains = {"s": boolean, "x": interval(LOWER, UPPER)}
    graph = FactorGraph.build(domains, [(both, ["s", "x"]), (Table.shared([0.3, -0.6]), ["s"])])
    q = mixture(graph, [False, True], [*PROBS.T, ALPHA, BETA])
    expected = 0.0
    for s in range(2):
        c = [0.1 + 0.3, 0.4 - 0.6][s]

        def integrand(x: float, s: int = s, c: float = c) -> float:
            density = sum(WEIGHTS[k] * PROBS[k, s] * beta_density(k, x) for k in range(2))
            return special.xlogy(density, density) - density * (A[s, 0, 0] * x**2 + b[s, 0] * x + c)

        expected += of_bounded(integrand)

    assert bethe(graph, q, HIGH) == pytest.approx(expected, abs=1e-8)


def test_variables_of_one_slot_may_be_of_different_families() -> None:
    square = ConditionalQuadratic.shared([[-1.0]], [0.5])
    domains = {"x": interval(LOWER, UPPER), "y": real, "z": interval(0.0, 1.0)}
    together = FactorGraph.build(domains, [(square, [["x"], ["y"], ["z"]])])
    apart = FactorGraph.build(domains, [(square, [name]) for name in "xyz"])
    q = Mixture.random(together, 2, np.random.default_rng(4), zeros=False, betas=True)

    assert q.betas.is_beta.tolist() == [True, False, True]
    for objective in (bethe, jensen):
        assert objective(together, q) == pytest.approx(objective(apart, q), rel=1e-12)


def test_overlaps_of_classes_are_powers_of_those_of_their_members() -> None:
    graph = one_beta()
    variables = replace(graph.variables, multiplicity=np.array([3.0]))
    q = mixture(graph, [True], [ALPHA, BETA])

    alone, class_of_three = (log_overlap(g, q, 0, 1) for g in (graph, FactorGraph(variables, ())))

    overlap = of_bounded(lambda x: beta_density(0, x) * beta_density(1, x))
    assert alone == pytest.approx(np.log(overlap), abs=1e-10)
    assert class_of_three == pytest.approx(3 * alone, rel=1e-12)


def test_overlap_is_infinite_where_two_poles_meet() -> None:
    graph = one_beta()
    q = mixture(graph, [True], [np.array([0.4, 2.0]), np.array([1.0, 1.0])])

    assert log_overlap(graph, q, 0, 0) == np.inf
    assert np.isfinite(log_overlap(graph, q, 0, 1))


def test_mean_and_variance_of_a_beta_are_in_the_units_of_its_variable() -> None:
    graph = one_beta()

    q = mixture(graph, [True], [ALPHA, BETA])

    for k in range(2):
        mean = of_bounded(lambda x, k=k: beta_density(k, x) * x)
        square = of_bounded(lambda x, k=k: beta_density(k, x) * x**2)
        assert q.mean[k, 0] == pytest.approx(mean)
        assert q.var[k, 0] == pytest.approx(square - mean**2)
        belief = q.beliefs(k, np.array([[0]]), num_nodes=2)[0]
        np.testing.assert_allclose([belief.mean, belief.var], [[mean], [square - mean**2]])


def test_jensen_of_betas_is_a_bound() -> None:
    squares = ConditionalQuadratic.shared([[-1.0, 0.4], [0.4, -0.8]], [1.0, 0.3])
    domains = {"x": interval(LOWER, UPPER), "y": interval(0.0, 2.0)}
    graph = FactorGraph.build(domains, [(squares, ["x", "y"])])
    log_z = solve(graph).log_z
    rng = np.random.default_rng(0)

    bounds = [
        -jensen(graph, Mixture.random(graph, 3, rng, zeros=False, betas=True)) for _ in range(9)
    ]

    assert max(bounds) <= log_z


def test_members_of_a_class_have_its_beta() -> None:
    domains = {"x": interval(LOWER, UPPER), "y": real}
    graph = FactorGraph.build(domains, [(ConditionalQuadratic.square(-1.0), [["x"], ["y"]])])
    q = mixture(graph, [True, False], [ALPHA, BETA, MEAN, VAR])

    spread = q.spread(np.array([1, 0, 0]))

    assert spread.betas.is_beta.tolist() == [False, True, True]
    np.testing.assert_array_equal(spread.betas.alpha[:, 1:], np.stack([ALPHA, ALPHA], axis=1))
    np.testing.assert_array_equal(spread.mean, q.mean[:, [1, 0, 0]])
