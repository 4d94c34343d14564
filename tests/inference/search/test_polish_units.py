"""Assignments are improved in whatever units reals are measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference.search import polish
from hylift.potentials import ConditionalQuadratic, Function, Table
from random_models import graphs
from units import in_other_units, normal


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [(3e5, 1e6), (1e6, 1e6), (1e8, 1e8), (1e12, 1e12), (2e9, 1.0), (1e10, 1e5), (1e-8, 1e-8)],
)
def test_a_gaussian_is_solved_wherever_it_lies(mean, deviation):
    graph = FactorGraph.build({"x": real}, [(normal(mean, deviation), ["x"])])

    found = polish(graph, np.zeros((1, 1)))

    assert found.values == pytest.approx([mean], rel=1e-12)


@pytest.mark.parametrize("unit", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_a_flip_is_weighed_with_its_reals_in_any_units(unit):
    """A gain of 1 is one however large the curvature is."""
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [(normal([-unit, unit], unit), ["on", "x"]), (Table.shared([0.0, 1.0]), ["on"])],
    )

    found = polish(graph, np.array([[0.0, -unit]]))

    assert found.values == pytest.approx([1.0, unit], rel=1e-9)


@pytest.mark.parametrize("unit", [1e-10, 1.0, 1e10])
def test_coupled_reals_follow_a_flip_together_in_any_units(unit):
    here, there = (
        ConditionalQuadratic.squared_distance(unit**-2, [1.0, 1.0], at * unit)
        for at in (0.0, 200.0)
    )
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real},
        [
            (ConditionalQuadratic.switch([here, there]), ["on", "x", "y"]),
            (ConditionalQuadratic.squared_distance(50.0 * unit**-2, [1.0, -1.0]), ["x", "y"]),
            (Table.shared([0.0, 1.0]), ["on"]),
        ],
    )

    found = polish(graph, np.zeros((1, 3)))

    assert found.values == pytest.approx([1.0, 100.0 * unit, 100.0 * unit])


def test_a_bound_that_is_far_is_reached():
    slope = ConditionalQuadratic.shared([[0.0]], [-1e-9])
    graph = FactorGraph.build({"x": interval(-1e12, np.inf)}, [(slope, ["x"])])

    found = polish(graph, np.zeros((1, 1)))

    assert found.values.tolist() == [-1e12]


def test_reals_that_slide_away_stay_finite():
    """Each is held by itself, and runs away with the other by a factor of a million."""
    runaway = ConditionalQuadratic.shared([[-1.0, 1e6], [1e6, -1.0]], [1.0, 0.0])
    graph = FactorGraph.build({"x": real, "y": real}, [(runaway, ["x", "y"])])

    found = polish(graph, np.ones((1, 2)))

    assert np.isfinite(found.values).all()
    assert np.isfinite(found.log_density)


def test_a_function_is_climbed_far_away():
    """Its real has no bounds: rounds of moves reach ever further."""
    hill = Function(lambda x: -np.abs(x / 1e8 - 3.0), num_reals=1)
    graph = FactorGraph.build({"x": real}, [(hill, ["x"])])

    found = polish(graph, np.zeros((1, 1)))

    assert found.values == pytest.approx([3e8], rel=1e-6)


@settings(max_examples=40)
@given(
    graphs(max_discrete=4, max_reals=3, max_bounded=2),
    st.sampled_from([2.0**-40, 2.0**40]),
    st.integers(0, 1000),
)
def test_units_make_no_difference(observed, unit, seed):
    """Powers of two, so that there is no rounding: the answer is the same to the last digit."""
    try:
        graph = observed.condition()
    except ImpossibleEvidenceError:
        assume(False)
    variables, rng = graph.variables, np.random.default_rng(seed)
    is_real = variables.num_states == 0
    start = np.where(
        is_real, np.clip(rng.normal(size=len(variables)), variables.lower, variables.upper), 0.0
    )[None]

    plain = polish(graph, start)
    scaled = polish(in_other_units(graph, unit, 0.0), np.where(is_real, unit * start, start))

    assert scaled.values.tolist() == np.where(is_real, unit * plain.values, plain.values).tolist()
    assert scaled.log_density == plain.log_density
