"""Hard clusters: the same distribution over fewer variables, and the way back."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import random_models
from hard_models import hard_model
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, real
from hylift.inference.prepared import Prepared
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.rewrite.clusters import MOST_STATES, hard_clusters

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
@settings(max_examples=150, deadline=None)
def test_a_clustered_graph_has_the_density_of_the_ground_graph(seed: int) -> None:
    graph = Prepared.of(hard_model(np.random.default_rng(seed))).ground
    sizes = graph.variables.num_states
    states = [
        state
        for state in itertools.product(*(range(max(size, 1)) for size in sizes))
        if np.isfinite(graph.log_density(np.array(state, dtype=float)))
    ]

    try:
        found = hard_clusters(graph)
    except ImpossibleEvidenceError:
        assert not states
        return

    assert states
    if found is None:
        return
    ranges = (range(max(size, 1)) for size in found.graph.variables.num_states)
    rng = np.random.default_rng(0)
    reached = {}
    for state in itertools.product(*ranges):
        values = np.array(state, dtype=float)
        log_density = found.graph.log_density(values)
        if np.isfinite(log_density):
            before = found.back.values(values, rng)
            reached[tuple(before.astype(int).tolist())] = log_density
            assert log_density == pytest.approx(graph.log_density(before), abs=1e-10)
    assert sorted(reached) == sorted(states)


def test_exactly_one_of_many_is_one_variable_of_as_many_states() -> None:
    count = 15
    table = np.full((2,) * count, -np.inf)
    for at in range(count):
        table[tuple(int(at == place) for place in range(count))] = 0.0
    variables = Variables.uniform(boolean, count)
    graph = FactorGraph(variables, (FactorGroup(Table.shared(table), np.arange(count)[None]),))

    found = hard_clusters(graph)

    assert found is not None
    assert found.graph.variables.num_states.tolist() == [count]
    assert not found.graph.groups
    assert found.summary == "15 variables in 1 cluster of up to 15 joint states"


def test_a_long_chain_of_equal_variables_is_one_variable() -> None:
    count = 300
    equal = Table.weighted(np.inf, np.eye(2))
    pairs = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    groups = (
        FactorGroup(equal, pairs),
        FactorGroup(Table.shared([0.0, 0.01]), np.arange(count)[:, None]),
    )
    graph = FactorGraph(Variables.uniform(boolean, count), groups)

    found = hard_clusters(graph)

    assert found is not None
    assert found.graph.num_variables == 1
    ends = [found.graph.log_density(np.array([state])) for state in (0.0, 1.0)]
    np.testing.assert_allclose(ends, [0.0, 3.0], atol=1e-12)


def test_states_that_hard_rules_determine_leave_the_graph() -> None:
    implies = Table.weighted(np.inf, [[1, 1], [0, 1]])
    fact = Table.weighted(np.inf, [0, 1])
    names = {"a": boolean, "b": boolean, "c": boolean}
    soft = Table.shared([[0.0, 1.0], [2.0, 5.0]])
    graph = FactorGraph.build(names, [(fact, ["a"]), (implies, ["a", "b"]), (soft, ["b", "c"])])

    found = hard_clusters(graph)

    assert found is not None
    assert list(found.graph.variables.names) == ["c"]
    assert found.back.values(np.array([0.0]), np.random.default_rng(0)).tolist() == [1, 1, 0]
    assert found.graph.log_density(np.array([1.0])) == 5.0
    assert found.summary == "2 variables have one possible state each"


def test_rules_that_contradict_each_other_are_found_and_named() -> None:
    differ = Table.weighted(np.inf, 1 - np.eye(2))
    names = {"a": boolean, "b": boolean, "c": boolean}
    graph = FactorGraph.build(names, [(differ, [["a", "b"], ["b", "c"], ["a", "c"]])])

    with pytest.raises(ImpossibleEvidenceError, match="no joint state of 'a', 'b' and 'c' is"):
        hard_clusters(graph)


def test_what_is_too_large_and_what_is_in_a_function_stays() -> None:
    count = 2 * int(np.log2(MOST_STATES))
    either = Table.weighted(np.inf, [[0, 1], [1, 1]])
    chain = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    large = FactorGraph(Variables.uniform(boolean, count), (FactorGroup(either, chain),))
    wave = Function(lambda a, x: np.cos(a + x), 1, 1)
    names = {"a": boolean, "b": boolean, "x": real}
    function = FactorGraph.build(
        names,
        [(either, ["a", "b"]), (wave, ["a", "x"]), (ConditionalQuadratic.square(-1.0), ["x"])],
    )

    assert hard_clusters(large) is None
    assert hard_clusters(function) is None


def test_clusters_that_share_a_wide_factor_stay_apart() -> None:
    size, count = 12, 3
    either = Table.weighted(np.inf, [[0, 1], [1, 1]])
    ids = np.arange(size * count).reshape(count, size)
    chain = np.concatenate([np.stack([row[:-1], row[1:]], axis=1) for row in ids])
    soft = FactorGroup(Table.shared(np.arange(8.0).reshape(2, 2, 2)), ids[:, :1].T)
    variables = Variables.uniform(boolean, size * count)
    graph = FactorGraph(variables, (FactorGroup(either, chain), soft))

    found = hard_clusters(graph)

    assert found is not None
    entries = [np.prod(group.potential.slot_states) for group in found.graph.groups]
    assert max(entries) <= 1 << 14


def test_clusters_that_look_alike_share_their_tables() -> None:
    count = 500
    either = Table.weighted(np.inf, [[0, 1], [1, 1]])
    graph = FactorGraph(
        Variables.uniform(boolean, 2 * count),
        (
            FactorGroup(either, np.arange(2 * count).reshape(count, 2)),
            FactorGroup(Table.shared([0.0, 1.0]), np.arange(0, 2 * count, 2)[:, None]),
        ),
    )

    found = hard_clusters(graph)

    assert found is not None
    assert found.graph.num_variables == count
    assert len(found.graph.groups) == 1
    assert len(np.unique(found.graph.groups[0].row)) == 1


@given(random_models.graphs(max_discrete=4, max_reals=2))
@settings(max_examples=60, deadline=None)
def test_log_z_of_random_models_stays(graph: FactorGraph) -> None:
    ground = Prepared.of(graph).ground

    try:
        found = hard_clusters(ground)
    except ImpossibleEvidenceError:
        found = None

    if found is not None:
        expected = oracle.solve(ground).log_z
        assert oracle.solve(found.graph).log_z == pytest.approx(expected, abs=1e-8)
