"""Assignments improved by local search: never worse, locally best, within bounds, repeatable."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zoo
from experiments.instances import papers, robot
from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import infer
from hylift.inference.search import polish
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Function, Table
from random_models import graphs, symmetric_graphs

KINDS = {"max_discrete": 5, "max_reals": 4, "max_bounded": 2}


def random_starts(graph: FactorGraph, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    variables = graph.variables
    num_states, size = variables.num_states, (count, len(variables))
    lower, upper = np.maximum(variables.lower, -3.0), np.minimum(variables.upper, 3.0)
    states = rng.integers(0, np.maximum(num_states, 1), size)
    return np.where(num_states > 0, states, rng.uniform(lower, upper, size))


def assert_no_flip_gains(graph: FactorGraph, values: np.ndarray) -> None:
    """By brute force, the reals staying where they are."""
    best = graph.log_density(values)
    for variable, size in enumerate(graph.variables.num_states):
        for state in range(size):
            flipped = values.copy()
            flipped[variable] = state
            assert graph.log_density(flipped) <= best + 1e-7


def conditioned(graph: FactorGraph) -> FactorGraph:
    try:
        return graph.condition()
    except ImpossibleEvidenceError:
        assume(False)
        raise


# Any graph


@given(graphs(**KINDS), st.integers(0, 1000))
def test_the_answer_is_never_worse_than_a_start_and_its_density_is_the_true_one(observed, seed):
    graph = conditioned(observed)
    starts = random_starts(graph, 3, seed)

    found = polish(graph, starts)

    assert found.log_density == graph.log_density(found.values)
    assert found.log_density >= max(graph.log_density(start) for start in starts)


@given(graphs(**KINDS), st.integers(0, 1000))
def test_no_single_flip_improves_the_answer(observed, seed):
    graph = conditioned(observed)

    found = polish(graph, random_starts(graph, 1, seed))

    assert found.finished
    if found.log_density > -np.inf:
        assert_no_flip_gains(graph, found.values)


@given(graphs(**KINDS), st.integers(0, 1000))
def test_bounds_are_respected(observed, seed):
    graph = conditioned(observed)

    values = polish(graph, random_starts(graph, 1, seed)).values

    is_real = graph.variables.num_states == 0
    assert (values >= graph.variables.lower)[is_real].all()
    assert (values <= graph.variables.upper)[is_real].all()


@given(graphs(max_discrete=0, max_reals=4))
def test_reals_alone_are_solved_for(observed):
    graph = conditioned(observed)

    found = polish(graph, random_starts(graph, 1))

    assert -found.log_density == pytest.approx(infer(graph, tasks="map").map().energy, abs=1e-8)


@given(graphs(functions="anywhere", **KINDS), st.integers(0, 1000))
def test_functions_are_improved_on_as_well(observed, seed):
    graph = conditioned(observed)
    starts = random_starts(graph, 2, seed)

    found = polish(graph, starts)

    assert found.log_density >= max(graph.log_density(start) for start in starts)
    if found.log_density > -np.inf:
        assert_no_flip_gains(graph, found.values)


@settings(max_examples=20)
@given(graphs(functions="anywhere", **KINDS))
def test_the_same_question_has_the_same_answer(observed):
    graph = conditioned(observed)
    starts = random_starts(graph, 3)

    first, second = (polish(graph, starts) for _ in range(2))

    assert first.values.tobytes() == second.values.tobytes()


@given(symmetric_graphs(), st.integers(0, 1000))
def test_classes_of_lifted_graphs_move_as_one(observed, seed):
    """Reals of these graphs may slide away for ever: they stay finite."""
    graph = conditioned(observed)
    starts = random_starts(graph, 2, seed)

    found = polish(graph, starts)

    assert np.isfinite(found.values).all()
    assert found.log_density >= max(graph.log_density(start) for start in starts)


def trees() -> list[FactorGraph]:
    """Random trees of variables of two or three states."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 4, 9)
        parents = [(int(rng.integers(child)), child) for child in range(1, 9)]
        factors = [
            (Table.shared(rng.normal(size=(sizes[a], sizes[b]))), [f"v{a}", f"v{b}"])
            for a, b in parents
        ]
        domains = {f"v{i}": categorical(int(size)) for i, size in enumerate(sizes)}
        found.append(FactorGraph.build(domains, factors))
    return found


def test_most_small_trees_are_solved_exactly_from_a_few_starts():
    graphs = trees()

    energies = [-polish(graph, random_starts(graph, 5)).log_density for graph in graphs]

    exact = [infer(graph, tasks="map").map().energy for graph in graphs]
    assert np.count_nonzero(np.isclose(energies, exact, atol=1e-9)) >= 19


# The zoo


@pytest.mark.parametrize("model", zoo.ZOO, ids=str)
def test_every_model_of_the_zoo_reaches_a_possible_state(model):
    graph = model.graph().condition()

    found = polish(graph, random_starts(graph, 3))

    assert np.isfinite(found.log_density)
    assert_no_flip_gains(graph, found.values)


def test_an_infeasible_start_is_repaired():
    """Eight queens: no two in a row, a column or on a diagonal."""
    size = 8
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    rows = np.arange(size)
    apart = [
        (rows[:, None] != rows) & (np.abs(rows[:, None] - rows) != second - first)
        for first, second in pairs
    ]
    potential = Table(np.where(np.array(apart), 0.0, -np.inf))
    variables = Variables.uniform(categorical(size), size)
    graph = FactorGraph(variables, (FactorGroup(potential, pairs),))

    found = polish(graph, np.zeros((1, size)))

    assert found.log_density == 0.0


def test_a_contradiction_has_no_answer_but_the_least_broken_one():
    graph = FactorGraph.build(
        {"a": boolean},
        [
            (Table.weighted(np.inf, [0, 1]), [["a"], ["a"]]),
            (Table.weighted(np.inf, [1, 0]), ["a"]),
        ],
    )

    found = polish(graph, np.array([[0.0]]))

    assert found.log_density == -np.inf
    assert found.values.tolist() == [1.0]


# Moves


def test_two_flips_that_gain_only_together_are_taken():
    agree = Table.shared([[1.0, 0.0], [0.0, 2.0]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(agree, ["a", "b"])])

    assert polish(graph, np.zeros((1, 2))).values.tolist() == [1.0, 1.0]


def test_a_large_neighbourhood_is_left_as_a_whole():
    """Each of 30 pays for being the first to leave, and all gain when all have left."""
    size = 30
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    alike = Table.shared([[1.0, 0.0], [0.0, 1.01]])
    graph = FactorGraph(Variables.uniform(boolean, size), (FactorGroup(alike, pairs),))

    found = polish(graph, np.zeros((1, size)))

    assert found.values.tolist() == [1.0] * size


def test_flips_are_weighed_with_the_reals_at_their_new_optimum():
    """At x = -5 the state 'right' looks bad; its own optimum is better."""
    sides = ConditionalQuadratic.gaussian([[-5.0], [5.0]], [[[1.0]], [[0.5]]])
    graph = FactorGraph.build({"side": boolean, "x": real}, [(sides, ["side", "x"])])

    found = polish(graph, np.array([[0.0, -5.0]]))

    assert found.values == pytest.approx([1.0, 5.0])


def test_coupled_reals_follow_a_flip_together():
    """Each real alone would not leave the other."""
    here, there = (ConditionalQuadratic.squared_distance(1.0, [1.0, 1.0], t) for t in (0.0, 200.0))
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real},
        [
            (ConditionalQuadratic.switch([here, there]), ["on", "x", "y"]),
            (ConditionalQuadratic.squared_distance(50.0, [1.0, -1.0]), ["x", "y"]),
            (Table.shared([0.0, 1.0]), ["on"]),
        ],
    )

    found = polish(graph, np.zeros((1, 3)))

    assert found.values == pytest.approx([1.0, 100.0, 100.0])


def test_bounds_hold_coupled_reals():
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": real, "z": interval(-1, 5)},
        [
            (ConditionalQuadratic.squared_distance(1.0, [1.0], 3.0), ["x"]),
            (ConditionalQuadratic.squared_distance(2.0, [1.0, -1.0]), [["x", "y"], ["y", "z"]]),
            (ConditionalQuadratic.squared_distance(0.5, [1.0], -7.0), ["z"]),
        ],
    )

    found = polish(graph, np.zeros((1, 3)))

    assert found.values == pytest.approx([1.0, 0.0, -1.0], abs=1e-9)


def test_a_real_that_nothing_holds_stays_in_place():
    slope = ConditionalQuadratic.shared([[0.0]], [1.0])
    hill = ConditionalQuadratic.square(1.0)
    graph = FactorGraph.build(
        {"x": real, "y": real, "z": real, "w": interval(-1, 2)},
        [(slope, ["x"]), (hill, [["y"], ["w"]]), (ConditionalQuadratic.square(-1.0), ["z"])],
    )

    found = polish(graph, np.array([[0.5, -0.5, 3.0, 0.0]]))

    assert found.values == pytest.approx([0.5, -0.5, 0.0, 2.0])


def test_functions_of_reals_reach_their_optimum():
    def valley(state, x):
        return np.where(state == 1, -np.abs(x - 0.7), -1.0 - x**2)

    graph = FactorGraph.build(
        {"s": boolean, "x": interval(-4, 4), "y": real},
        [
            (Function(valley, 1, 1), ["s", "x"]),
            (ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0]), ["x", "y"]),
        ],
    )

    found = polish(graph, np.array([[0.0, -3.0, 2.0]]))

    assert found.values == pytest.approx([1.0, 0.7, 0.7], abs=1e-6)


# Lifted graphs


def test_a_class_in_several_slots_is_weighed_at_equal_states():
    """Members would rather differ, but as one they cannot."""
    table = Table.shared([[0.0, 5.0], [5.0, 1.0]])
    square = ConditionalQuadratic.shared([[-1.0, 0.25], [0.25, -1.0]], [1.0, 2.0])
    multiplicity = np.full(2, 2.0)
    variables = Variables((boolean, real), np.array([0, 1]), Names.numbered(2), multiplicity)
    groups = (
        FactorGroup(table, np.zeros((1, 2), dtype=np.int32), multiplicity=[2.0]),
        FactorGroup(square, np.ones((1, 2), dtype=np.int32), multiplicity=[2.0]),
    )
    graph = FactorGraph(variables, groups)

    found = polish(graph, np.zeros((1, 2)))

    assert found.values == pytest.approx([1.0, 1.0])
    assert found.log_density == pytest.approx(2.0 + 2.0 * 1.5)


def test_lifted_and_ground_agree_where_the_best_state_is_symmetric():
    ground = zoo.toy_hybrid_mln()
    lifted = lift(ground)
    start = np.zeros((1, lifted.graph.num_variables))

    on_classes = polish(lifted.graph, start)
    on_ground = polish(ground, np.zeros((1, ground.num_variables)))

    assert on_classes.log_density == pytest.approx(on_ground.log_density, abs=1e-8)


# The paper's large models


@pytest.mark.parametrize("seed", range(5))
def test_papers_is_solved_from_any_start(data_dir, seed):
    graph = papers.published(data_dir, 0, "paper").graph.condition()

    found = polish(graph, random_starts(graph, 1, seed))

    assert -found.log_density == pytest.approx(7425.860899, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 100])
def test_robot_is_solved_from_any_start(data_dir, seed):
    graph = robot.published(data_dir, "paper").graph.condition()

    found = polish(graph, random_starts(graph, 1, seed))

    assert -found.log_density == pytest.approx(-5020.526558, abs=1e-6)


# What is asked


def test_time_that_runs_out_is_said_and_the_best_so_far_returned():
    graph = zoo.friends_and_smokers(6)
    starts = random_starts(graph, 4)

    found = polish(graph, starts, seconds=0.0)

    assert not found.finished
    assert found.log_density >= graph.log_density(starts[0])


def test_progress_is_told():
    graph = zoo.hard_clause()
    told = []

    polish(graph, random_starts(graph, 2), progress=lambda share, what: told.append((share, what)))

    assert told[-1] == (1.0, "polishing")
    assert [share for share, _ in told] == sorted(share for share, _ in told)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (np.zeros(2), r"an array \(start, 2\) with at least one row, not one of shape \(2,\)"),
        (np.zeros((0, 2)), r"not one of shape \(0, 2\)"),
        (np.array([[0.0, 2.0]]), "start 0: 'S' takes a state from 0 to 1, not 2"),
        (np.array([[0.0, 0.0], [0.5, 0.0]]), "start 1: 'H' takes a state from 0 to 1, not 0.5"),
    ],
)
def test_a_start_that_is_none_is_refused(starts, message):
    with pytest.raises(ModelError, match=message):
        polish(zoo.hard_clause(), starts)


def test_evidence_is_to_be_absorbed_first():
    graph = zoo.hard_clause().observe({"H": True})

    with pytest.raises(ModelError, match=r"give graph\.condition\(\)"):
        polish(graph, np.zeros((1, 2)))
