"""What is called a lower bound is one, beside exact inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import infer
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import BVI, NPVI, Exact, MeanField
from hylift.inference.prepared import is_forest
from hylift.posterior import Posterior
from hylift.potentials import REAL, ConditionalQuadratic, Function, Table
from random_models import forests, graphs
from zoo import (
    bounded_and_unbounded_reals,
    copied_factors,
    counted_factors,
    coupled_bounded_reals,
    isolated_variables,
    soft_evidence_outside_the_interval,
    truncated_gaussian,
)

ROUNDING = 1e-9
"""Of exact inference, where reals have bounds."""
NOT_FEASIBLE = "The mixture does not satisfy all hard constraints"

HYBRID = graphs(max_bounded=1, functions="of bounded reals")


def exact_log_z(graph: FactorGraph) -> float | None:
    """None where the evidence is impossible."""
    try:
        found = infer(graph, Exact(), tasks="logz").log_partition
    except ImpossibleEvidenceError:
        return None
    assert found is not None
    return found.value


def is_said(posterior: Posterior, text: str) -> bool:
    return any(note.startswith(text) for note in posterior.solution.notes)


def check_bounds(graph: FactorGraph, num_components: int) -> None:
    log_z = exact_log_z(graph)
    if log_z is None:
        return
    functions = [g for g in graph.condition().groups if g.potential.quadratic() is None and len(g)]
    # A single component is fitted by as many starts as were asked for.
    single = infer(graph, MeanField(restarts=3 if num_components == 1 else 5)).log_partition
    assert single is not None
    tight = NPVI(num_components, restarts=3, bound="tracey")
    for method in (NPVI(num_components, restarts=3), MeanField(restarts=2), tight, BVI(2)):
        posterior = infer(graph, method)
        found = posterior.log_partition

        assert found is not None
        assert found.lower <= log_z + ROUNDING * max(1.0, abs(log_z))
        if isinstance(method, BVI):
            continue
        if method is tight:
            assert found.value >= single.value - ROUNDING * max(1.0, abs(log_z))
        if found.kind == "lower bound":
            assert found.value <= log_z + ROUNDING * max(1.0, abs(log_z))
            assert not any(REAL in group.potential.slot_states for group in functions)
        else:
            leaks = is_said(posterior, "Gaussian components reach beyond")
            assert functions or leaks or is_said(posterior, NOT_FEASIBLE)


@pytest.mark.slow
@settings(max_examples=100)
@given(HYBRID, st.integers(1, 3))
def test_bounds_never_exceed_log_z(graph: FactorGraph, num_components: int) -> None:
    check_bounds(graph, num_components)


@pytest.mark.slow
@settings(max_examples=500)
@given(HYBRID, st.integers(1, 4))
def test_bounds_of_500_models_never_exceed_log_z(graph: FactorGraph, num_components: int) -> None:
    check_bounds(graph, num_components)


def check_bethe(graph: FactorGraph, num_components: int) -> None:
    log_z = exact_log_z(graph)
    assert log_z is not None
    hidden = graph.condition()
    assert is_forest(hidden)

    posterior = infer(graph, BVI(num_components, restarts=3, reals="beta"))

    found = posterior.log_partition
    assert found is not None
    assert found.value <= log_z + found.error + ROUNDING * max(1.0, abs(log_z))
    if found.kind == "lower bound":
        assert found.value <= log_z + ROUNDING * max(1.0, abs(log_z))
    if not (hidden.variables.num_states == 0).any():
        assert found.kind == "lower bound"
        assert found.error <= 1e-12


FORESTS: list[Any] = [
    pytest.param(forests("discrete", max_variables=8), id="discrete"),
    pytest.param(forests("gaussian"), id="Gaussian"),
    pytest.param(forests("hybrid"), id="hybrid"),
    pytest.param(forests("hybrid", bounded=True, max_variables=4), id="hybrid with bounds"),
]


@pytest.mark.parametrize("strategy", FORESTS)
def test_bethe_values_of_forests_never_exceed_log_z(strategy: st.SearchStrategy) -> None:
    @settings(max_examples=15)
    @given(strategy, st.integers(1, 4))
    def check(graph: FactorGraph, num_components: int) -> None:
        check_bethe(graph, num_components)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", FORESTS)
def test_bethe_values_of_200_forests_never_exceed_log_z(strategy: st.SearchStrategy) -> None:
    @settings(max_examples=50)
    @given(strategy, st.integers(1, 5))
    def check(graph: FactorGraph, num_components: int) -> None:
        check_bethe(graph, num_components)

    check()


@pytest.mark.parametrize("num_components", [2, 3, 5])
@pytest.mark.parametrize(
    "graph",
    [
        isolated_variables,
        soft_evidence_outside_the_interval,
        truncated_gaussian,
        coupled_bounded_reals,
        bounded_and_unbounded_reals,
    ],
)
def test_betas_on_forests_exceed_log_z_by_no_more_than_their_error(
    graph: Callable[[], FactorGraph], num_components: int
) -> None:
    check_bethe(graph(), num_components)


def kind_of(graph: FactorGraph, method: BVI | NPVI | MeanField) -> tuple[str, tuple[str, ...]]:
    posterior = infer(graph, method, lift="none")
    assert posterior.log_partition is not None
    return posterior.log_partition.kind, posterior.solution.notes


@pytest.mark.parametrize("method", [NPVI(2), MeanField(), BVI(1)])
def test_functions_make_the_value_an_estimate(method: BVI | NPVI | MeanField) -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1)}, [(Function(lambda x: np.cos(x), num_reals=1), ["x"])]
    )

    kind, notes = kind_of(graph, method)

    assert kind == "estimate"
    expected = "Functions of your own are integrated by quadrature, so log Z is an estimate."
    assert expected in notes


@pytest.mark.parametrize("method", [NPVI, BVI])
def test_a_gaussian_that_leaks_makes_the_value_an_estimate(method: Callable[..., Any]) -> None:
    kind, notes = kind_of(truncated_gaussian(), method(1, reals="gaussian"))

    assert kind == "estimate"
    assert any("reals='beta' keeps them inside" in note for note in notes)
    assert kind_of(truncated_gaussian(), method(1, reals="beta"))[0] == "lower bound"


def test_bethe_with_loops_is_an_estimate_and_one_component_is_a_bound() -> None:
    pair = Table.shared([[0.5, 0.0], [0.0, 0.7]])
    loop = FactorGraph.build(
        dict.fromkeys("abc", boolean), [(pair, [["a", "b"], ["b", "c"], ["c", "a"]])]
    )

    assert kind_of(loop, BVI(2))[0] == "estimate"
    assert kind_of(loop, BVI(1))[0] == "lower bound"


@pytest.mark.parametrize("graph", [counted_factors, copied_factors])
def test_a_factor_that_stands_for_several_closes_a_loop(graph: Callable[[], FactorGraph]) -> None:
    assert kind_of(graph(), BVI(2))[0] == "estimate"


Shape = Literal["forest", "loop"]


@pytest.mark.parametrize(
    ("scopes", "shape"),
    [
        ([], "forest"),
        ([["a"], ["a"], ["b"]], "forest"),
        ([["a", "b"], ["b", "c"], ["d", "e"]], "forest"),
        ([["a", "b", "c"], ["c", "d", "e"]], "forest"),
        ([["a", "b"], ["b", "a"]], "loop"),
        ([["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]], "loop"),
        ([["a", "b"], ["b", "c"], ["c", "a"]], "loop"),
        ([["a", "b", "c"], ["b", "c", "d"]], "loop"),
    ],
)
def test_forests_are_told_from_loops(scopes: list[list[str]], shape: Shape) -> None:
    factors = [(Table.shared(np.zeros((2,) * len(scope))), scope) for scope in scopes]

    graph = FactorGraph.build(dict.fromkeys("abcde", boolean), factors)

    assert is_forest(graph) == (shape == "forest")


def test_the_bound_of_a_class_is_that_of_its_members() -> None:
    """Multiplicities of variables count in a bound on the log Z of all ground variables."""
    graph = FactorGraph.build(
        {f"x{i}": real for i in range(4)},
        [
            (ConditionalQuadratic.square(-0.5), [[f"x{i}"] for i in range(4)]),
            (ConditionalQuadratic.product(0.2), [[f"x{i}", f"x{(i + 1) % 4}"] for i in range(4)]),
        ],
    )
    log_z = exact_log_z(graph)

    lifted = infer(graph, NPVI(1), lift="exact").log_partition
    ground = infer(graph, NPVI(1), lift="none").log_partition

    assert lifted is not None
    assert ground is not None
    assert log_z is not None
    assert lifted.value == pytest.approx(ground.value, rel=1e-10)
    assert lifted.value <= log_z
