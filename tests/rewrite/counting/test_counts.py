"""Twins are found and counted, and the answers are those of the graph before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hylift as hl
import oracle
from hylift.graph import FactorGraph, FactorGroup, Names, Variables, categorical
from hylift.graph.factors import merge_groups
from hylift.inference.prepared import Prepared
from hylift.potentials import Table
from hylift.rewrite.counting import counts
from hylift.rewrite.counting.counts import Counted, compositions, drawn, find_classes
from hylift.rewrite.counting.leaves import eliminate_discrete_leaves
from hylift.rewrite.counting.twins import twins
from rewrite.counting.enumeration import expectations, random_tables
from rewrite.counting.test_discrete_leaves import smokers


def count_twins(graph: FactorGraph, *, maximise: bool = False) -> Counted:
    return counts.count_twins(graph, find_classes(graph), maximise=maximise)


def group(table: np.ndarray, scopes: object) -> FactorGroup:
    return FactorGroup(Table.shared(table), np.array(list(scopes), dtype=np.int32))


def graph_of(num_states: list[int], groups: list[FactorGroup]) -> FactorGraph:
    domains = [categorical(size) for size in num_states]
    variables = Variables.of(domains, Names.numbered(len(domains)))
    return FactorGraph(variables, merge_groups(groups))


def probs_of_members(counted: Counted, found: oracle.Answer) -> dict[int, np.ndarray]:
    """Probabilities of the states of all variables that were counted."""
    first = len(counted.kept)
    of_classes = [found.probs[first + number] for number in range(len(counted.classes))]
    return {
        int(member): of_classes[number] @ counts.drawn(n, k, 1)
        for n, k, some in counted.classes.shapes()
        for number in some.tolist()
        for member in np.flatnonzero(counted.classes.number == number)
    }


def two_classes(seed: int, *, hard: bool = False) -> FactorGraph:
    """Booleans 0 to 3 tied in pairs, in both orders; 4 to 6 of three states, each tied to all of
    them, to each other, and with two of the first class to the variable 7; and 8 beside 7."""
    rng = np.random.default_rng(seed)
    within, across = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
    threes = rng.normal(size=(3, 3))
    if hard:
        across[1, 2] = -np.inf
    groups = [
        group(within, itertools.permutations(range(4), 2)),
        group(across, itertools.product(range(4), range(4, 7))),
        group(threes + threes.T, itertools.combinations(range(4, 7), 2)),
        group(rng.normal(size=(3, 2, 2)), [[four, 8, 7] for four in range(4, 7)]),
        group(rng.normal(size=2), [[0], [1], [2], [3], [7]]),
        group(rng.normal(size=(2, 2)), [[7, 8]]),
    ]
    return graph_of([2, 2, 2, 2, 3, 3, 3, 2, 2], groups)


def test_twins_are_those_that_may_be_exchanged():
    number = twins(two_classes(0), 3)

    assert len(set(number[:4])) == len(set(number[4:7])) == 1
    assert number[0] != number[4]
    assert number[7:].tolist() == [-1, -1]


def test_a_pair_less_leaves_two_who_are_tied_to_all_others():
    pairs = [pair for pair in itertools.combinations(range(6), 2) if pair != (1, 4)]
    graph = graph_of([2] * 6, [group(np.diag([0.0, 1.0]), pairs)])

    number = twins(graph, 2)

    assert number[1] == number[4] != number[0]
    assert len(set(number[[0, 2, 3, 5]])) == 1


def test_copies_of_a_clique_are_classes_of_their_own():
    cliques = [itertools.combinations(range(start, start + 4), 2) for start in (0, 4)]
    pairs = [pair for clique in cliques for pair in clique]
    hub = group(np.diag([0.5, 0.0]), [[member, 8] for member in range(8)])
    graph = graph_of([2] * 9, [group(np.diag([0.0, 1.0]), pairs), hub])

    number = twins(graph, 3)

    assert len(set(number[:4])) == len(set(number[4:8])) == 1
    assert number[0] != number[4]


def test_an_order_of_the_members_makes_them_differ():
    pairs = list(itertools.combinations(range(5), 2))
    graph = graph_of([2] * 5, [group(np.array([[0.0, 1.0], [0.0, 0.0]]), pairs)])

    assert (twins(graph, 2) == -1).all()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sums_and_probabilities_are_those_of_the_whole_graph(seed, hard):
    graph = two_classes(seed, hard=hard)
    expected = oracle.solve(graph)

    counted = count_twins(graph)

    assert counted.graph.variables.num_states.tolist() == [2, 2, 5, 10]
    found = oracle.solve(counted.graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
    for place, kept in enumerate(counted.kept):
        assert found.probs[place] == pytest.approx(expected.probs[kept], abs=1e-10)
    assert sorted(probs_of_members(counted, found)) == list(range(7))
    for variable, probs in probs_of_members(counted, found).items():
        assert probs == pytest.approx(expected.probs[variable], abs=1e-10)


@pytest.mark.parametrize("scope", [[0], [7, 1], [2, 0], [4, 5], [3, 1, 6], [0, 8, 1], [0, 1, 2]])
def test_members_are_drawn_without_replacement(scope):
    graph = two_classes(2)
    (statistic,) = random_tables(np.random.default_rng(1), [2] * 4 + [3] * 3 + [2] * 2, [scope])

    counted = count_twins(graph)
    ((restated, factors),) = counted.restated(statistic)

    assert factors.tolist() == [0]
    expected = expectations(graph, statistic)
    assert expectations(counted.graph, restated) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_count_gives_a_best_assignment(seed):
    graph = two_classes(seed)
    best = -oracle.solve(graph).map_energy

    counted = count_twins(graph, maximise=True)
    states = itertools.product(*(range(size) for size in counted.graph.variables.num_states))
    values = max(np.array(list(states), dtype=float), key=counted.graph.log_density)

    assert counted.graph.log_density(values) == pytest.approx(best, abs=1e-10)
    assert graph.log_density(counted.restored(values)) == pytest.approx(best, abs=1e-10)


def test_smokers_are_one_count():
    graph = smokers()

    counted = count_twins(eliminate_discrete_leaves(graph).graph)

    assert list(counted.graph.variables.names) == ["count of atoms like Smokes(a)"]
    assert oracle.solve(counted.graph).log_z == pytest.approx(oracle.solve(graph).log_z, abs=1e-10)


def test_two_classes_tied_to_each_other_are_a_table_of_two_counts():
    model = hl.parse("d = {0, ..., 19}\nR(d)\nS(d)\n2 R(x) v S(y)")

    counted = count_twins(Prepared.of(hl.ground(model)).ground)

    assert counted.graph.variables.num_states.tolist() == [21, 21]
    found = oracle.solve(counted.graph)
    probs = probs_of_members(counted, found)
    assert len(probs) == 40
    assert np.array(list(probs.values()))[:, 1] == pytest.approx(0.75, abs=1e-4)


def test_repulsive_twins_are_counted_like_attractive_ones():
    graph = graph_of([2] * 7, [group(np.diag([-1.0, -2.0]), itertools.combinations(range(7), 2))])

    counted = count_twins(graph)

    found = oracle.solve(counted.graph)
    expected = oracle.solve(graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
    probs = probs_of_members(counted, found)
    assert probs[0] == pytest.approx(expected.probs[0], abs=1e-12)


def test_classes_whose_tables_would_be_too_large_are_not_counted(monkeypatch):
    graph = two_classes(0)
    monkeypatch.setattr("hylift.rewrite.counting.counts.MOST_ENTRIES", 20)

    counted = count_twins(graph)

    assert counted.graph.num_variables == 6  # the class of three states is kept
    assert oracle.solve(counted.graph).log_z == pytest.approx(oracle.solve(graph).log_z, abs=1e-10)


def test_compositions_are_all_ways_to_add_up():
    found = compositions(3, 3)

    assert len(np.unique(found, axis=0)) == len(found) == 10
    assert (found.sum(axis=1) == 3).all()
    assert drawn(3, 3, 2).sum(axis=(1, 2)) == pytest.approx(np.ones(10))


def test_a_graph_without_twins_stays_as_it_is():
    graph = graph_of([2, 2, 2], [group(np.diag([0.0, 1.0]), [[0, 1], [1, 2]])])

    assert count_twins(graph).graph is graph
