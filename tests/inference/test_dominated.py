"""States that another state beats, whatever the other variables are."""

import itertools

import numpy as np
import pytest
from hypothesis import given

import oracle
import random_models
import zoo
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.inference.exact.maximum.dominated import without_dominated
from hylift.potentials import ConditionalQuadratic, Function, Table

DISTANCE = ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0])


def states_left(graph: FactorGraph) -> dict[str, float]:
    """The variables that are fixed, by name."""
    reduced = without_dominated(graph)
    fixed = np.setdiff1d(np.arange(graph.num_variables), reduced.left)
    return {graph.variables.names[int(v)]: float(reduced.fixed[v]) for v in fixed}


@given(random_models.graphs(max_discrete=4))
def test_dropping_dominated_states_keeps_the_least_energy(graph: FactorGraph) -> None:
    expected = oracle.solve(graph).map_energy

    try:
        found = oracle.solve(without_dominated(graph.condition()).graph).map_energy
    except ImpossibleEvidenceError:
        found = np.inf

    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def test_a_state_that_is_never_worse_wins_and_equal_states_leave_the_lowest() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3), "free": categorical(4)},
        [(Table.shared([[0.0, 1.0, 1.0], [2.0, 3.0, 3.0]]), ["a", "b"])],
    )

    assert states_left(graph) == {"a": 1, "b": 1, "free": 0}


def test_a_loss_in_one_factor_may_be_made_up_for_in_another() -> None:
    agree = Table.shared([[0.5, 0.0], [0.0, 0.5]])
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [(agree, ["a", "b"]), (Table.shared([0.0, 0.6]), ["a"])],
    )

    assert states_left(graph) == {"a": 1, "b": 1}


def test_states_that_depend_on_each_other_stay() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[0.5, 0.0], [0.0, 0.4]]), ["a", "b"])]
    )

    assert states_left(graph) == {}


def test_a_dropped_state_no_longer_speaks_for_others() -> None:
    """State 2 of a is impossible, and only with it b would rather be false."""
    graph = FactorGraph.build(
        {"a": categorical(3), "b": boolean, "c": boolean},
        [
            (Table.shared([0.0, 0.0, -np.inf]), ["a"]),
            (Table.shared([[0.0, 1.0], [0.0, 2.0], [9.0, 0.0]]), ["a", "b"]),
            (Table.shared([[0.0, 5.0], [5.0, 0.0], [0.0, 0.0]]), ["a", "c"]),
            (Table.shared([0.0, 0.1]), ["c"]),
        ],
    )

    assert states_left(graph)["b"] == 1


def test_a_chain_of_implications_is_followed_to_its_end() -> None:
    chain = [f"b{i}" for i in range(20)]
    implies = Table.weighted(np.inf, zoo.IMPLIES)
    graph = FactorGraph.build(
        dict.fromkeys(chain, boolean),
        [
            (implies, list(itertools.pairwise(chain))),
            (Table.weighted(np.inf, [0, 1]), ["b0"]),
            (Table.weighted(-1.0, [0, 1]), [[name] for name in chain]),
        ],
    )

    assert states_left(graph) == dict.fromkeys(chain, 1)


@pytest.mark.parametrize(
    ("potential", "fixed"),
    [
        (DISTANCE.times([0, 1]), {"on": 0}),
        (DISTANCE.times([-1, 0]), {"on": 0}),
        # Three reals of one direction, with a target: the least difference is zero but for digits.
        (
            ConditionalQuadratic.squared_distance(0.7, [1.0, -2.0, -1.0], 1.1).times([0, 1]),
            {"on": 0},
        ),
        (ConditionalQuadratic.squared_distance(3.0, [3.0, 5.0], 7.0).times([0, 1]), {"on": 0}),
        # The same with coefficients whose products are rounded: nothing is flat any more.
        (ConditionalQuadratic.squared_distance(0.7, [0.1, 0.3, -0.7], 1.1).times([0, 1]), {}),
        # Better than nothing near the diagonal.
        (
            ConditionalQuadratic.switch(
                [
                    ConditionalQuadratic.shared(np.zeros((2, 2)), [0.0, 0.0]),
                    ConditionalQuadratic.shared(DISTANCE.A[0], [0.0, 0.0], 0.1),
                ]
            ),
            {},
        ),
        # A slope along which the distance is flat.
        (
            ConditionalQuadratic.switch(
                [
                    ConditionalQuadratic.shared(np.zeros((2, 2)), [0.0, 0.0]),
                    ConditionalQuadratic.shared(DISTANCE.A[0], [1e-3, 0.0], -9.0),
                ]
            ),
            {},
        ),
        # Saddles have no least value.
        (ConditionalQuadratic.product(1.0).times([0, 1]), {}),
    ],
)
def test_states_of_a_quadratic_are_compared_over_all_reals(
    potential: ConditionalQuadratic, fixed: dict[str, float]
) -> None:
    reals = [f"x{i}" for i in range(potential.num_reals)]
    graph = FactorGraph.build(
        {"on": boolean} | dict.fromkeys(reals, real), [(potential, ["on", *reals])]
    )

    assert states_left(graph) == fixed


def test_functions_keep_all_states() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3)},
        [(Function(lambda a, b: a + b, num_discrete=2), ["a", "b"])],
    )

    assert states_left(graph) == {}


def test_an_impossible_state_is_dropped_whatever_else_speaks_for_it() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.shared([0.0, 7.0]), ["a"]),
            (Table.shared([[0.0, 0.0], [-np.inf, -np.inf]]), ["a", "b"]),
        ],
    )

    assert states_left(graph) == {"a": 0, "b": 0}
