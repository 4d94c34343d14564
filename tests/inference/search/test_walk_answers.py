"""What a walk finds: exact optima of small models, possible states first, within bounds."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zoo
from experiments.instances import papers, robot
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import Exact, infer
from hylift.inference.search.maxwalksat import MaxWalkSAT
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table
from random_models import graphs

SHORT = MaxWalkSAT(flips=20_000)


def walked(graph: FactorGraph, method: MaxWalkSAT = SHORT, seed: int = 0) -> Posterior:
    return infer(graph, method, tasks="map", seed=seed)


def queens(size: int) -> FactorGraph:
    """A queen in each column: no two in a row or on a diagonal."""
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    rows = np.arange(size)
    apart = [
        (rows[:, None] != rows) & (np.abs(rows[:, None] - rows) != second - first)
        for first, second in pairs
    ]
    potential = Table(np.where(np.array(apart), 0.0, -np.inf))
    variables = Variables.uniform(categorical(size), size)
    return FactorGraph(variables, (FactorGroup(potential, pairs),))


# Small models


@pytest.mark.parametrize("model", zoo.ZOO, ids=str)
def test_the_most_probable_assignment_of_every_model_of_the_zoo_is_found(model):
    graph = model.graph()
    # A burst is followed by one look at functions: these take several.
    method = MaxWalkSAT(flips=200_000) if "function" in model.tags else SHORT

    found = walked(graph, method).map()

    exact = infer(graph, Exact(), tasks="map").map()
    assert found.energy == pytest.approx(exact.energy, abs=1e-6)
    assert found.kind == "estimate"


@given(graphs(max_discrete=5, max_reals=4, max_bounded=2, functions="anywhere"), st.integers(0, 99))
@settings(max_examples=40)
def test_energies_are_true_and_bounds_respected(graph, seed):
    try:
        found = walked(graph, MaxWalkSAT(flips=2000, restarts=2), seed)
    except ImpossibleEvidenceError:
        assume(False)

    assignment = found.map()
    variables, is_real = graph.variables, graph.variables.num_states == 0
    hidden = ~assignment.observed
    assert found.energy(assignment) == assignment.energy
    assert (assignment.values >= variables.lower)[is_real & hidden].all()
    assert (assignment.values <= variables.upper)[is_real & hidden].all()


def test_an_optimum_beyond_a_bound_ends_at_the_bound():
    graph = FactorGraph.build(
        {"on": boolean, "x": interval(0, 1)},
        [(ConditionalQuadratic.squared_distance(1.0, [1.0], 3.0).times([1, 2]), ["on", "x"])],
    )

    found = walked(graph).map()

    assert found["x"] == 1.0
    assert found.energy == pytest.approx(4.0, abs=1e-12)


def test_observed_variables_keep_their_values():
    graph = zoo.friends_and_smokers().observe({"Smokes(p0)": True})

    found = walked(graph).map()

    assert found["Smokes(p0)"] == "true"
    assert found.energy == pytest.approx(infer(graph, tasks="map").map().energy, abs=1e-9)


# Hard constraints


def test_hard_constraints_come_before_any_weight():
    """Both would rather be true, by far, and may not be."""
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.weighted(1000.0, [0, 1]), [["a"], ["b"]]),
            (Table.weighted(np.inf, [[1, 1], [1, 0]]), ["a", "b"]),
        ],
    )

    found = walked(graph).map()

    assert found.energy == -1000.0


def test_queens_are_placed():
    found = walked(queens(20))

    assert found.map().energy == 0.0
    assert found.solution.result == "converged"


def test_a_contradiction_is_reported_and_the_least_broken_assignment_returned():
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [
            (Table.weighted(np.inf, [[0, 1], [1, 0]]), [["a", "b"], ["b", "c"], ["a", "c"]]),
            (Table.weighted(np.inf, [0, 1]), ["a"]),
        ],
    )

    found = walked(graph)

    assert found.map().energy == np.inf
    assert found.map()["a"] == "true"
    assert found.solution.result == "max_steps"
    assert found.solution.notes[1] == (
        "No assignment was found that satisfies all hard factors: the best one breaks 1 of them. "
        "More flips or restarts may help, unless they contradict each other."
    )


def test_a_function_that_is_always_impossible_is_reported():
    never = Function(lambda a: np.full(np.shape(a), -np.inf), num_discrete=1)
    graph = FactorGraph.build({"a": boolean}, [(never, ["a"])])

    found = walked(graph)

    assert found.map().energy == np.inf
    assert "the best one breaks 1 of them" in found.solution.notes[1]


def test_impossible_evidence_is_refused():
    graph = zoo.hard_clause().observe({"H": False, "S": False})

    with pytest.raises(ImpossibleEvidenceError, match="the evidence breaks a hard constraint"):
        walked(graph)


# How it ends


def test_an_assignment_that_is_best_for_every_factor_is_proved_to_be_the_best():
    graph = zoo.hard_constraint_keeps_a_real_in_place()

    found = walked(graph)

    assert found.solution.result == "converged"
    assert found.solution.steps < SHORT.flips


def test_factors_that_disagree_leave_no_proof():
    found = walked(zoo.gaussian_chain())

    assert found.solution.result == "max_steps"


def test_a_real_that_nothing_holds_is_named():
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [(ConditionalQuadratic.square(1.0).times([0, 1]), ["on", "x"])],
    )

    found = walked(graph)

    assert found.solution.result == "diverged"
    assert found.solution.notes[1] == (
        "There is no best assignment, because the density grows without bound in 'x': give it "
        "bounds or add a rule such as '-0.01 x^2'."
    )


def test_a_graph_without_factors_has_an_answer():
    graph = FactorGraph(Variables.named({"a": boolean, "x": real}), ())

    found = walked(graph)

    assert found.map().energy == 0.0
    assert found.solution.result == "converged"


# Functions


@pytest.mark.parametrize("seed", range(5))
def test_a_short_walk_leaves_the_many_hills_of_a_function(seed):
    """Moves of one real at a time end on some hill: only a few fresh places lead to the best."""

    def hills(x, y):
        u, v = x + y - 1, x - y + 0.5
        return np.cos(5 * u) + np.cos(5 * v) - 0.1 * (u**2 + v**2)

    graph = FactorGraph.build(
        {"x": interval(-6, 6), "y": interval(-6, 6)}, [(Function(hills, num_reals=2), ["x", "y"])]
    )

    found = walked(graph, MaxWalkSAT(flips=1000), seed).map()

    assert found.energy == pytest.approx(-2.0, abs=1e-6)


# The paper's large models


@pytest.mark.parametrize("seed", range(2))
def test_papers_is_solved(data_dir: Path, seed: int):
    graph = papers.published(data_dir, 0, "paper").graph

    found = walked(graph, MaxWalkSAT(flips=200_000, restarts=1), seed)

    assert found.map().energy == pytest.approx(7425.860899, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_robot_is_solved(data_dir: Path, seed: int):
    graph = robot.published(data_dir, "paper").graph

    found = walked(graph, MaxWalkSAT(flips=500_000, restarts=2), seed)

    assert found.map().energy == pytest.approx(-5020.526558, abs=1e-6)
