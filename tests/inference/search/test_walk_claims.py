"""What a walk claims: that its answer is the best, or that there is none; in whatever units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hylift as hl
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.inference.search.maxwalksat import MaxWalkSAT
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table
from random_models import graphs
from units import in_other_units, normal

UNITS = [1e-12, 1e-6, 1.0, 1e6, 1e12]


def walked(graph: FactorGraph, flips: int = 2000, seed: int = 0) -> Posterior:
    return infer(graph, MaxWalkSAT(flips=flips), tasks="map", seed=seed)


def exact_energy(graph: FactorGraph) -> float:
    return infer(graph, Exact(), tasks="map").map().energy


# There is a best assignment


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [
        (1e5, 3e4), (5e4, 2.5e4), (1e6, 1e6), (1e8, 1e8), (3e5, 1e6), (1e4, 1e6), (1e12, 1e12),
        (1e-8, 1e-8), (-3.0, 1e-3),
    ],
)  # fmt: skip
def test_a_gaussian_is_solved_and_proved_wherever_it_lies(mean, deviation):
    graph = FactorGraph.build({"x": real}, [(normal(mean, deviation), ["x"])])

    found = walked(graph)

    assert found.map()["x"] == pytest.approx(mean, rel=1e-9)
    assert found.map().energy == pytest.approx(0.0, abs=1e-9)
    assert found.solution.result == "converged"


@pytest.mark.parametrize(("mean", "deviation"), [(2e9, 1.0), (1e10, 1e5), (1e-3, 1e-9)])
def test_where_rounding_hides_the_energy_nothing_is_claimed(mean, deviation):
    graph = FactorGraph.build({"x": real}, [(normal(mean, deviation), ["x"])])

    found = walked(graph)

    assert found.map()["x"] == pytest.approx(mean, rel=1e-12)
    assert found.solution.result == "max_steps"
    assert len(found.solution.notes) == 1


@pytest.mark.parametrize("unit", UNITS)
def test_two_salaries_are_compared_in_any_currency(unit):
    salary = normal([5e4 * unit, 9e4 * unit], 3e4 * unit)
    graph = FactorGraph.build(
        {"senior": boolean, "salary": real},
        [(salary, ["senior", "salary"]), (Table.shared([0.0, 1.0]), ["senior"])],
    )

    found = walked(graph)

    assert found.map().values == pytest.approx([1.0, 9e4 * unit], rel=1e-9)
    assert found.map().energy == pytest.approx(-1.0, abs=1e-9)
    assert found.solution.result == "converged"


def test_coupled_reals_of_different_units_are_solved_jointly():
    """A metre and a picometre: y is x times 1e-12."""
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [
            (normal(1e6, 1e6), ["x"]),
            (ConditionalQuadratic.shared([[-5e-13, 0.5], [0.5, -5e11]], [0.0, 0.0]), ["x", "y"]),
        ],
    )

    found = walked(graph)

    assert found.map().values == pytest.approx([1e6, 1e-6], rel=1e-9)
    assert found.solution.result == "converged"


def test_a_real_that_some_states_hold_far_more_tightly_is_not_lost():
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [
            (ConditionalQuadratic.squared_distance(1e8, [1.0], 1.0).times([0, 1]), ["on", "x"]),
            (normal(300.0, 1000.0), ["x"]),
            (Table.shared([10.0, 0.0]), ["on"]),
        ],
    )

    found = walked(graph)

    assert found.map().values == pytest.approx([0.0, 300.0], rel=1e-6)
    assert found.solution.result == "converged"


# There is none


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("A", "b"),
    [
        ([[0.0, 0.0], [0.0, -1.0]], [1.0, 0.0]),  # a slope
        ([[1.0, 0.0], [0.0, -1.0]], [0.1, 0.0]),  # a valley
        ([[-1.0, 2.0], [2.0, -1.0]], [0.1, 0.0]),  # a saddle, each real held by itself
        ([[-1.0, 1.0], [1.0, -1.0]], [1.0, 1.0]),  # a ridge that rises
    ],
)
def test_a_density_without_a_maximum_is_named_in_any_units(A, b, unit):
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [(ConditionalQuadratic.shared(np.array(A) / unit**2, np.array(b) / unit), ["x", "y"])],
    )

    found = walked(graph)

    assert found.solution.result == "diverged"
    assert "because the density grows without bound in '" in found.solution.notes[1]
    assert np.isfinite(found.map().values).all()


def test_a_ridge_that_is_level_has_a_maximum():
    ridge = ConditionalQuadratic.squared_distance(3.0, [1.0, -1.0], 0.3)
    graph = FactorGraph.build({"x": real, "y": real}, [(ridge, ["x", "y"])])

    found = walked(graph)

    assert found.map().energy == pytest.approx(0.0, abs=1e-9)
    assert found.solution.result == "converged"


def test_curvatures_that_cancel_hold_nothing():
    """0.1 and 0.2 differ from 0.3 by rounding."""
    graph = FactorGraph.build(
        {"x": real},
        [
            (ConditionalQuadratic.shared([[weight]], [0.1]), ["x"])
            for weight in (-0.1, -0.2, 0.3)
        ],
    )  # fmt: skip

    assert walked(graph).solution.result == "diverged"


def test_bounds_hold_what_would_grow():
    graph = FactorGraph.build(
        {"x": interval(-2, 1), "y": real},
        [(ConditionalQuadratic.shared([[1.0, 0.5], [0.5, -1.0]], [0.0, 0.0]), ["x", "y"])],
    )

    found = walked(graph)

    assert found.map().values == pytest.approx([-2.0, -1.0])
    assert found.solution.result == "max_steps"


# Proofs


@pytest.mark.parametrize("offset", [0.0, 1e8, 1e10, 1e12, -1e12])
def test_what_all_states_have_in_common_hides_no_difference(offset):
    alone, both = Table.shared([offset, offset + 5]), Table.shared([[offset, 0], [0, offset + 1]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(alone, ["a"]), (both, ["a", "b"])])

    found = walked(graph)

    assert found.map().energy == exact_energy(graph)


@pytest.mark.parametrize("large", [1e9, 1e12])
def test_a_proof_of_tables_compares_exactly(large):
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[large, 0], [0, large + 1]]), ["a", "b"])]
    )

    found = walked(graph)

    assert found.map().energy == -large - 1
    assert found.solution.result == "converged"


@pytest.mark.parametrize("far", [1e4, 1e5, 1e6])
def test_states_are_told_apart_by_evidence_that_is_far_from_all_of_them(far):
    means = np.array([0.0, 3 / far])
    near = ConditionalQuadratic(
        np.full((1, 2, 1, 1), -1.0), 2 * means[None, :, None], -(means[None] ** 2)
    )
    graph = FactorGraph.build({"on": boolean, "x": real}, [(near, ["on", "x"])])
    observed = graph.observe({"x": far})

    found = walked(observed)

    assert found.map()["on"] == "true"
    assert found.map().energy == exact_energy(observed)


@settings(max_examples=60)
@given(
    graphs(max_discrete=4, max_reals=2, max_bounded=1),
    st.sampled_from(UNITS),
    st.sampled_from([0.0, 1e6, -1e9]),
    st.integers(0, 99),
)
def test_an_answer_that_is_claimed_to_be_the_best_is_and_a_proper_model_never_diverges(
    observed, unit, offset, seed
):
    try:
        graph = in_other_units(observed.condition(), unit, offset)
    except ImpossibleEvidenceError:
        assume(False)

    found = walked(graph, seed=seed)

    assert found.solution.result in ("converged", "max_steps")
    if found.solution.result == "converged":
        assert found.map().energy == pytest.approx(exact_energy(graph), rel=1e-14, abs=1e-6)


def test_an_assignment_that_breaks_hard_rules_is_doubtful() -> None:
    source = "A\nB\nA v B.\nA => B.\nB => A.\n!A v !B.\n1 A"

    found = hl.infer(hl.ground(hl.parse(source)), hl.MaxWalkSAT(flips=200), tasks="map")

    assert found.trust.verdict == "doubtful"
    assert "breaks" in found.trust.why
