"""Graphs with next to nothing in them, and measurements with error: no crash, right answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from answers import infer, log_z
from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Soft,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import BVI, NPVI, Exact, MeanField
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table

METHODS = [MeanField(), BVI(1), BVI(2), NPVI(2), NPVI(3)]
SQUARE = ConditionalQuadratic.square(-0.5)
ONE_REAL = 0.5 * np.log(2 * np.pi)
"""log Z of a real with SQUARE."""

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
every_lift = pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])


def assert_log_z(posterior: Posterior, expected: float, tolerance: float) -> None:
    """Jensen's bound is below it even for a Gaussian, by ½ (1 - log 2) for each."""
    if posterior.solution.method.startswith("NPVI"):
        assert expected - 0.4 <= log_z(posterior) <= expected + 1e-9
    else:
        assert log_z(posterior) == pytest.approx(expected, abs=tolerance)


@every_lift
@every_method
def test_a_graph_without_variables_is_a_constant(method: Any, lift: Any) -> None:
    graph = FactorGraph(Variables.named({}), (), log_constant=1.5)

    posterior = infer(graph, method, lift=lift, tasks=["marginals", "logz", "map"])

    assert log_z(posterior) == 1.5
    assert posterior.marginals().num_rows == 0
    assert posterior.map().energy == -1.5


@every_lift
@every_method
def test_a_graph_without_hidden_variables_is_its_density(method: Any, lift: Any) -> None:
    graph = FactorGraph.build(
        {"a": boolean, "x": real},
        [(ConditionalQuadratic.gaussian([[0.0], [1.0]], [[1.0]]), ["a", "x"])],
    ).observe({"a": True, "x": 3.0})

    posterior = infer(graph, method, lift=lift)

    assert log_z(posterior) == pytest.approx(-2.0 - ONE_REAL, rel=1e-12)
    assert posterior.solution.result == "converged"
    assert posterior.marginal("x").mean == 3.0
    assert posterior.marginal("a").prob("true") == 1.0
    assert posterior.map().energy == pytest.approx(2.0 + ONE_REAL)


@every_lift
@every_method
def test_a_graph_without_factors_is_uniform(method: Any, lift: Any) -> None:
    domains = {"a": boolean, "b": categorical(5), "u": interval(-1, 3), "d": boolean}
    graph = FactorGraph.build(domains, [])

    posterior = infer(graph, method, lift=lift)

    assert log_z(posterior) == pytest.approx(np.log(2 * 5 * 4 * 2), abs=3e-3)
    np.testing.assert_allclose(posterior.marginal("b").probs, 0.2, atol=1e-3)
    assert posterior.marginal("u").mean == pytest.approx(1.0, abs=0.01)
    assert posterior.marginal("u").var == pytest.approx(16 / 12, rel=0.02)


@pytest.mark.parametrize(
    "potential",
    [None, ConditionalQuadratic.shared([[0.0]], [1.0]), ConditionalQuadratic.square(0.5)],
    ids=["nothing", "a slope", "a valley"],
)
@every_method
def test_a_real_alone_may_be_held_by_its_bounds(
    method: Any, potential: ConditionalQuadratic | None
) -> None:
    graph = FactorGraph.build({"u": interval(-1, 2)}, [(potential, ["u"])] if potential else [])
    exact = infer(graph, Exact())

    posterior = infer(graph, method)

    assert_log_z(posterior, log_z(exact), 0.1)
    # Jensen's bound prefers narrow components, and a single one has no two modes.
    tolerance = 0.2 if isinstance(method, NPVI) else 0.1
    assert posterior.marginal("u").mean == pytest.approx(exact.marginal("u").mean, abs=tolerance)


@every_method
def test_coupled_reals_may_be_held_by_their_bounds(method: Any) -> None:
    graph = FactorGraph.build(
        {"u": interval(-1, 2), "v": interval(0, 1)},
        [(ConditionalQuadratic.product(0.5), ["u", "v"])],
    )
    exact = infer(graph, Exact())

    posterior = infer(graph, method)

    assert_log_z(posterior, log_z(exact), 0.1)
    # Jensen's bound prefers narrow components, and a single one has no two modes.
    tolerance = 0.2 if isinstance(method, NPVI) else 0.1
    assert posterior.marginal("u").mean == pytest.approx(exact.marginal("u").mean, abs=tolerance)


@every_lift
@every_method
def test_a_single_real_is_its_gaussian(method: Any, lift: Any) -> None:
    graph = FactorGraph.build({"x": real}, [(SQUARE, ["x"])])

    posterior = infer(graph, method, lift=lift)

    assert_log_z(posterior, ONE_REAL, 1e-4)
    assert posterior.marginal("x").mean == pytest.approx(0.0, abs=1e-9)
    assert posterior.marginal("x").var == pytest.approx(1.0, rel=1e-2)


@every_lift
@every_method
def test_reals_without_links_do_not_care_for_each_other(method: Any, lift: Any) -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [(SQUARE, ["x"]), (ConditionalQuadratic.gaussian([3.0], [[2.0]]), ["y"])],
    )

    posterior = infer(graph, method, lift=lift)

    assert_log_z(posterior, ONE_REAL, 0.02)
    assert posterior.marginal("y").mean == pytest.approx(3.0, abs=1e-6)


@every_method
def test_a_categorical_of_one_state_is_certain(method: Any) -> None:
    graph = FactorGraph.build(
        {"only": categorical(1), "other": categorical(1)},
        [(Table.shared([[0.7]]), ["only", "other"])],
    )

    posterior = infer(graph, method)

    assert log_z(posterior) == pytest.approx(0.7, rel=1e-12)
    assert posterior.marginal("only").probs.tolist() == [1.0]


@every_lift
@every_method
def test_empty_groups_say_nothing(method: Any, lift: Any) -> None:
    variables = Variables.named({"a": boolean, "x": interval(0, 1)})
    empty_table = FactorGroup(Table.shared([0.0, 5.0]), np.zeros((0, 1), dtype=np.int32))
    empty_square = FactorGroup(SQUARE, np.zeros((0, 1), dtype=np.int32))
    empty_function = FactorGroup(
        Function(lambda x: np.exp(x), num_reals=1), np.zeros((0, 1), dtype=np.int32)
    )
    constant = FactorGroup(Table.shared(2.0), np.zeros((3, 0), dtype=np.int32))
    graph = FactorGraph(variables, (empty_table, empty_square, constant, empty_function))

    posterior = infer(graph, method, lift=lift)

    assert log_z(posterior) == pytest.approx(np.log(2) + 6.0, abs=3e-3)
    np.testing.assert_allclose(posterior.marginal("a").probs, 0.5, atol=1e-3)


@every_method
def test_measurements_with_error_pull(method: Any) -> None:
    graph = FactorGraph.build({"x": real, "y": real}, [(SQUARE, [["x"], ["y"]])])

    posterior = infer(graph.observe({"x": Soft(3.0, 0.5)}), method)

    assert posterior.marginal("x").mean == pytest.approx(2.0, abs=1e-6)
    assert posterior.marginal("x").var == pytest.approx(1 / 3, rel=1e-2)
    assert posterior.marginal("y").mean == pytest.approx(0.0, abs=1e-6)


@every_method
def test_measurements_with_error_of_states_do_not_stop_other_methods(method: Any) -> None:
    """Hybrid: the measured real tells which state holds."""
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [(ConditionalQuadratic.gaussian([[-3.0], [3.0]], [[1.0]]), ["on", "x"])],
    ).observe({"x": Soft(2.5, 0.1)})
    exact = infer(graph, Exact())

    posterior = infer(graph, method)

    assert posterior.marginal("on").prob("true") == pytest.approx(
        exact.marginal("on").prob("true"), abs=1e-3
    )
    assert posterior.marginal("x").mean == pytest.approx(exact.marginal("x").mean, abs=1e-2)


@every_lift
@every_method
def test_one_factor_over_everything(method: Any, lift: Any) -> None:
    table = np.random.default_rng(1).normal(size=(2, 2, 2, 2))
    graph = FactorGraph.build(dict.fromkeys("abcd", boolean), [(Table.shared(table), list("abcd"))])

    posterior = infer(graph, method, lift=lift)

    expected = float(np.log(np.exp(table).sum()))
    assert expected - 1.0 < log_z(posterior) <= expected + 1e-9


@every_method
def test_very_large_and_very_small_weights_do_not_overflow(method: Any) -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real},
        [
            (Table.shared([[0.0, 800.0], [-800.0, 0.0]]), ["a", "b"]),
            (ConditionalQuadratic.squared_distance(1e8, [1.0], 1e3), ["x"]),
        ],
    )

    posterior = infer(graph, method)

    assert posterior.marginal("a").prob("false") == pytest.approx(1.0, abs=1e-6)
    assert posterior.marginal("x").mean == pytest.approx(1e3, abs=1e-5)
    assert np.isfinite(log_z(posterior))


@pytest.mark.parametrize(
    ("bounds", "place"), [((0.0, np.inf), 50.0), ((-np.inf, 0.0), -50.0)], ids=["below", "above"]
)
@every_method
def test_a_single_bound_far_away_does_not_matter(
    method: Any, bounds: tuple[float, float], place: float
) -> None:
    near = ConditionalQuadratic.squared_distance(0.5, [1.0], place)
    graph = FactorGraph.build({"x": interval(*bounds)}, [(near, ["x"])])

    posterior = infer(graph, method)

    assert_log_z(posterior, ONE_REAL, 1e-4)
    assert posterior.marginal("x").mean == pytest.approx(place, abs=1e-6)


def test_a_variable_of_many_states_may_stand_in_no_factor() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "many": categorical(5000)}, [(Table.shared([0.0, 1.0]), ["a"])]
    )

    posterior = infer(graph, MeanField())

    assert posterior.marginal("many").probs == pytest.approx(np.full(5000, 1 / 5000))
    assert posterior.log_partition.value == pytest.approx(np.log(5000) + np.log(1 + np.e))
