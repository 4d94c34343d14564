"""Discrete variables of single factors are summed out, and can be restored."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
import oracle
from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, categorical, real
from hylift.graph.factors import merge_groups
from hylift.inference.prepared import Prepared
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.counting.leaves import eliminate_discrete_leaves, restated
from rewrite.counting.enumeration import expectations, random_tables

SMOKERS = """
    person = {a, b, c}
    Smokes(person)
    Cancer(person)
    Friends(person, person)
    1.4 !Smokes(x)
    2.3 !Cancer(x)
    4.6 !Friends(x, y)
    1.5 Smokes(x) => Cancer(x)
    1.1 Friends(x, y) ^ Smokes(x) => Smokes(y)
"""


def smokers() -> FactorGraph:
    """Three people, known not to be friends of themselves."""
    known = {f"Friends({who},{who})": False for who in "abc"}
    return Prepared.of(hl.ground(hl.parse(SMOKERS), known)).ground


def random_graph(seed: int) -> FactorGraph:
    """Variables 0 and 1 tied; leaves 2 to 6 beside them, two of them in one factor."""
    rng = np.random.default_rng(seed)
    num_states = [2, 3, 2, 3, 2, 2, 3]
    scopes = [[0, 1], [2, 0, 1], [1, 3], [4, 0, 5], [0, 6], [2], [3], [3], [4], [6], [0]]
    groups = random_tables(rng, num_states, scopes, hard=0.1)
    power = groups[2]
    groups[2] = FactorGroup(power.potential, power.scope, power.row, np.array([2.0]))
    variables = Variables.of([categorical(size) for size in num_states], Names.numbered(7))
    return FactorGraph(variables, merge_groups(groups))


def test_only_people_who_smoke_are_left_of_the_smokers():
    graph = smokers()

    small = eliminate_discrete_leaves(graph)

    assert list(small.graph.variables.names) == ["Smokes(a)", "Smokes(b)", "Smokes(c)"]
    whole, left = oracle.solve(graph), oracle.solve(small.graph)
    assert left.log_z == pytest.approx(whole.log_z, abs=1e-10)
    assert left.probs[0] == pytest.approx(whole.probs[0], abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_sums_and_probabilities_are_those_of_the_whole_graph(seed):
    graph = random_graph(seed)
    expected = oracle.solve(graph)

    small = eliminate_discrete_leaves(graph)

    assert small.kept.tolist() == [0, 1]
    found = oracle.solve(small.graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
    assert found.probs[1] == pytest.approx(expected.probs[1], abs=1e-10)
    for leaves in small.eliminated:
        for slot in leaves.slots:
            for state, table in enumerate(np.moveaxis(leaves.probs(slot), -1, 0)):
                scope = leaves.group.scope[:, leaves.others]
                group = FactorGroup(Table(table), scope, leaves.group.row)
                found_probs = expectations(small.graph, group)
                for variable, prob in zip(leaves.group.scope[:, slot], found_probs, strict=True):
                    assert prob == pytest.approx(expected.probs[int(variable)][state], abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_states_of_leaves_complete_the_best_assignment(seed):
    graph = random_graph(seed)
    best = -oracle.solve(graph).map_energy

    small = eliminate_discrete_leaves(graph, maximise=True)
    values = max(np.ndindex(2, 3), key=lambda v: small.graph.log_density(np.array(v, dtype=float)))

    assert small.graph.log_density(np.array(values, dtype=float)) == pytest.approx(best, abs=1e-10)
    restored = small.restored(np.array(values, dtype=float))
    assert graph.log_density(restored) == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("scope", [[2], [2, 1], [4, 5], [5, 0], [2, 3], [6, 4, 1]])
def test_statistics_of_leaves_have_the_same_expectations(scope):
    graph = random_graph(1)
    rng = np.random.default_rng(5)
    (group,) = random_tables(rng, graph.variables.num_states.tolist(), [scope])

    small = eliminate_discrete_leaves(graph)
    (found,) = restated(small, group)

    expected = expectations(graph, group)
    assert expectations(small.graph, found) == pytest.approx(expected, abs=1e-10)


def test_what_has_reals_or_several_tables_stays():
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean, "d": boolean, "x": real},
        [
            (Table.shared([[0.0, 1.0], [0.5, 0.0]]), [["a", "b"], ["b", "c"], ["c", "a"]]),
            (ConditionalQuadratic.gaussian([[0.0], [1.0]], [[[1.0]], [[2.0]]]), ["d", "x"]),
        ],
    )

    assert eliminate_discrete_leaves(graph).graph is graph


def test_a_variable_to_keep_is_kept():
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[0.0, 1.0], [0.5, 0.0]]), ["a", "b"])]
    )

    assert eliminate_discrete_leaves(graph).graph.num_variables == 0
    small = eliminate_discrete_leaves(graph, np.array([False, True]))
    assert list(small.graph.variables.names) == ["b"]


def test_a_leaf_may_have_more_states_than_any_with_a_table_of_its_own():
    graph = FactorGraph.build(
        {"a": categorical(3), "b": boolean, "c": boolean},
        [
            (Table.shared(np.arange(6.0).reshape(3, 2) / 3), ["a", "b"]),
            (Table.shared([[0.0, 1.0], [0.5, 0.0]]), ["b", "c"]),
            (Table.shared([0.0, 0.7]), ["c"]),
        ],
    )

    small = eliminate_discrete_leaves(graph)

    assert list(small.graph.variables.names) == ["b"]
    assert oracle.solve(small.graph).log_z == pytest.approx(oracle.solve(graph).log_z, abs=1e-12)
