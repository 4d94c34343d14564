"""Expectation propagation where all factors are tables and quadratics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import log_z
from hybrid_models import random_hybrid
from hylift.errors import HyliftError, UnsupportedError
from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.inference import BP, EP, Exact, infer
from hylift.posterior import Categorical, Posterior
from hylift.potentials import ConditionalQuadratic, Table
from random_models import graphs


def errors(exact: Posterior, found: Posterior) -> tuple[float, list[float]]:
    """The largest error of a probability, and ratios of standard deviations."""
    of_states, ratios = [0.0], []
    for name in exact.variables.names.render().to_pylist():
        expected, actual = exact.marginal(name), found.marginal(name)
        if isinstance(expected, Categorical):
            of_states.append(float(np.abs(expected.probs - actual.probs).max()))
        else:
            ratios.append(actual.std / expected.std)
    return max(of_states), ratios


@given(graphs(max_discrete=5, max_reals=0, hard=False), st.booleans())
def test_on_discrete_graphs_it_is_belief_propagation(graph: FactorGraph, merge: bool) -> None:
    found = infer(graph, EP(merge_factors=merge, tolerance=1e-11), lift="none", rewrite=False)
    expected = infer(graph, BP(merge_factors=merge, tolerance=1e-11), lift="none", rewrite=False)

    if expected.solution.result == found.solution.result == "converged":
        assert expected.compare(found).max_l1 <= 1e-8
        assert log_z(found) == pytest.approx(log_z(expected), abs=1e-8)


@given(graphs(max_discrete=0, max_reals=5))
def test_gaussian_graphs_are_exact(graph: FactorGraph) -> None:
    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert found.solution.result == "converged"
    assert found.log_partition is not None
    assert found.log_partition.kind == "exact"
    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-10)
    for name in graph.variables.names.render().to_pylist():
        assert found.marginal(name).mean == pytest.approx(exact.marginal(name).mean, abs=1e-10)
        assert found.marginal(name).std == pytest.approx(exact.marginal(name).std, abs=1e-10)


@pytest.mark.parametrize("coupling", [1.0, 3.0])
def test_it_is_near_on_random_hybrid_models(coupling: float) -> None:
    found_errors, ratios, of_log_z = [], [], []

    for seed in range(12):
        graph = random_hybrid(seed, coupling)
        found, exact = infer(graph, EP(), rewrite=False), infer(graph, Exact())
        assert found.solution.result == "converged"
        error, of_reals = errors(exact, found)
        found_errors.append(error)
        ratios += of_reals
        of_log_z.append(abs(log_z(found) - log_z(exact)))

    assert np.median(found_errors) <= 0.04
    assert np.median(of_log_z) <= 0.05
    assert np.median(np.abs(np.array(ratios) - 1)) <= 0.05


def test_one_factor_of_states_and_reals_is_exact_and_keeps_its_modes() -> None:
    mixture = ConditionalQuadratic.gaussian(
        [[-3.0, 0.0], [0.0, 1.0], [4.0, 2.0]], [np.eye(2), 0.5 * np.eye(2), [[1, 0.6], [0.6, 1]]]
    )
    graph = FactorGraph.build(
        {"s": categorical(3), "x": real, "y": real},
        [
            (mixture, ["s", "x", "y"]),
            (Table.shared([0.0, 1.0, 0.5]), ["s"]),
            (ConditionalQuadratic.product(0.1), ["x", "y"]),
        ],
    )

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-10)
    assert exact.compare(found).max_l1 <= 1e-8
    assert found.marginal("x").pdf(-3.0) == pytest.approx(exact.marginal("x").pdf(-3.0), abs=1e-8)


def test_coordinates_of_which_a_factor_depends_on_one_combination_only() -> None:
    """An outlier flag per row of a regression with four coefficients."""
    rng = np.random.default_rng(3)
    names = [f"b{i}" for i in range(4)]
    flags = [f"o{i}" for i in range(6)]
    rows, seen = rng.normal(size=(6, 4)), rng.normal(size=6)
    near = ConditionalQuadratic.squared_distance(0.5, rows, seen)
    far = ConditionalQuadratic.squared_distance(0.05, rows, seen)
    graph = FactorGraph.build(
        dict.fromkeys(flags, boolean) | dict.fromkeys(names, real),
        [
            (ConditionalQuadratic.switch([near, far]), [[flag, *names] for flag in flags]),
            (Table.shared([0.0, -1.0]), [[flag] for flag in flags]),
            (ConditionalQuadratic.square(-0.5), [[name] for name in names]),
        ],
    )

    found, exact = infer(graph, EP()), infer(graph, Exact())

    error, ratios = errors(exact, found)
    assert error <= 0.01
    assert np.abs(np.array(ratios) - 1).max() <= 0.02
    assert log_z(found) == pytest.approx(log_z(exact), abs=0.01)


def test_parts_converge_each_by_itself() -> None:
    both = random_hybrid(2, 3.0)
    alone = infer(both, EP(), rewrite=False)
    copies = FactorGraph.build(
        {f"{n}{k}": d for k in range(3) for n, d in [("s", boolean), ("x", real)]},
        [
            (
                ConditionalQuadratic.gaussian([[0.0], [2.0]], [[[1.0]], [[0.5]]]),
                [[f"s{k}", f"x{k}"] for k in range(3)],
            )
        ],
    )

    found = infer(copies, EP(), lift="none", rewrite=False)

    assert alone.solution.result == "converged"
    assert found.solution.steps <= 3
    assert log_z(found) == pytest.approx(3 * np.log(2), abs=1e-10)


def test_a_constant_changes_only_log_z() -> None:
    graph = random_hybrid(5, 1.0)
    more = FactorGraph(graph.variables, graph.groups, log_constant=2.5)

    first, second = (infer(each, EP(), rewrite=False) for each in (graph, more))

    assert log_z(second) - log_z(first) == pytest.approx(2.5, abs=1e-10)
    assert first.compare(second).max_l1 <= 1e-12


def test_it_says_where_it_did_not_converge() -> None:
    found = infer(random_hybrid(1, 3.0), EP(max_steps=3), rewrite=False)

    assert found.solution.result == "max_steps"
    assert any("EP did not converge in" in note for note in found.solution.notes)


def test_what_is_impossible_or_lifted_is_refused() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real},
        [
            (Table.shared([[0.0, -np.inf], [-np.inf, 0.0]]), ["a", "b"]),
            (Table.shared([[-np.inf, 0.0], [0.0, -np.inf]]), ["b", "a"]),
            (ConditionalQuadratic.square(-1.0).times([1.0, 2.0]), ["a", "x"]),
        ],
    )

    with pytest.raises(HyliftError, match=r"contradict|hard constraint"):
        infer(graph, EP(), rewrite=False)
    with pytest.raises(UnsupportedError, match="coarse-to-fine"):
        infer(random_hybrid(0, 1.0), EP(), lift="coarse-to-fine")
