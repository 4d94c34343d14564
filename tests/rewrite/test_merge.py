"""Factors merged into larger ones leave the density as it was."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest
from hypothesis import given

import random_models
from experiments.instances import toy
from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, categorical, interval, real
from hylift.inference import Exact, infer
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.rewrite.merge import merge_factors
from zoo import friends_and_smokers

TIES = ["first", "shared"]

Ties = Literal["first", "shared"]


def scopes(graph: FactorGraph, *, functions: bool = False) -> list[frozenset[int]]:
    """The variables of each factor, of functions only where asked."""
    return [
        frozenset(scope)
        for group in graph.groups
        if functions or not isinstance(group.potential, Function)
        for scope in group.scope.tolist()
    ]


def nested(sets: list[frozenset[int]]) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Pairs of factors of which one has all variables of the other."""
    return [(s, t) for i, s in enumerate(sets) for j, t in enumerate(sets) if i != j and s <= t]


def is_forest(graph: FactorGraph) -> bool:
    """Whether no chain of factors, of several variables each, leads back to where it began."""
    tree = np.arange(graph.num_variables)
    for scope in scopes(graph, functions=True):
        trees = tree[list(scope)]
        if len(set(trees.tolist())) < len(scope):
            return False
        tree[np.isin(tree, trees)] = trees[0] if len(trees) else 0
    return True


def some_values(graph: FactorGraph, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    num_states = graph.variables.num_states
    states = rng.integers(0, np.maximum(num_states, 1))
    return np.where(num_states > 0, states, rng.normal(size=len(num_states)))


def log_z(graph: FactorGraph) -> float:
    log_partition = infer(graph, Exact(), tasks="logz").log_partition
    assert log_partition is not None
    return log_partition.value


def assert_same_density(first: FactorGraph, second: FactorGraph) -> None:
    for seed in range(5):
        values = some_values(first, seed)
        expected = first.log_density(values)
        assert second.log_density(values) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("ties", TIES)
@given(random_models.graphs(max_discrete=4, max_reals=4, functions="anywhere"))
def test_the_density_stays_and_no_scope_is_nested(ties: Ties, graph: FactorGraph) -> None:
    merged = merge_factors(graph, ties)

    assert_same_density(graph, merged)
    # Tables without slots that make everything impossible are left for conditioning to report.
    assert not nested([scope for scope in scopes(merged) if scope])
    assert merged.evidence is graph.evidence
    assert merged.variables is graph.variables
    kinds = [g for g in graph.groups if isinstance(g.potential, Function)]
    assert [g for g in merged.groups if isinstance(g.potential, Function)] == kinds


@pytest.mark.parametrize("ties", TIES)
@given(random_models.symmetric_graphs(multiplicities=False))
def test_the_scopes_that_remain_are_the_largest_ones(ties: Ties, graph: FactorGraph) -> None:
    before = {scope for scope in scopes(graph) if scope}

    merged = merge_factors(graph, ties)

    largest = {s for s in before if not any(s < t for t in before)}
    after = [scope for scope in scopes(merged) if scope]
    assert set(after) == largest
    assert len(after) == len(largest)
    assert_same_density(graph, merged)


@pytest.mark.parametrize("ties", TIES)
@given(random_models.graphs(max_discrete=3, max_reals=3))
def test_log_z_stays_whether_evidence_was_absorbed_before_or_is_after(
    ties: Ties, graph: FactorGraph
) -> None:
    try:
        expected = log_z(graph)
    except ImpossibleEvidenceError:
        return

    before = log_z(merge_factors(graph, ties))
    after = log_z(merge_factors(graph.condition(), ties))

    assert before == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert after == pytest.approx(expected, rel=1e-8, abs=1e-8)


@given(random_models.forests("hybrid", bounded=True, hard=True))
def test_a_forest_stays_a_forest(graph: FactorGraph) -> None:
    try:
        conditioned = graph.condition()
    except ImpossibleEvidenceError:
        return

    merged = merge_factors(conditioned)

    assert is_forest(merged)
    assert not nested(scopes(merged))


@given(random_models.graphs(max_discrete=3, max_reals=3))
def test_merging_twice_is_merging_once(graph: FactorGraph) -> None:
    once = merge_factors(graph)

    twice = merge_factors(once)

    assert twice.num_factors == once.num_factors
    assert twice.groups == once.groups


@pytest.mark.parametrize("ties", TIES)
def test_the_pair_priors_of_the_toy_model_go_into_its_pair_rules(ties: Ties) -> None:
    graph = toy.instance().graph

    merged = merge_factors(graph, ties)

    assert (graph.num_factors, merged.num_factors) == (24, 18)
    lifting = lift(merged)
    assert (lifting.num_classes, lifting.graph.num_factors) == (5, 2)
    assert_same_density(graph, merged)


def test_shared_ties_keep_the_symmetry_that_the_first_of_them_breaks() -> None:
    names = "abcdef"
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean),
        [
            (Table.shared(np.eye(2)), list(itertools.combinations(names, 2))),
            (Table.shared([0.0, 0.7]), [[name] for name in names]),
        ],
    )
    assert lift(graph).num_classes == 1

    shared = merge_factors(graph, "shared")
    first = merge_factors(graph, "first")

    assert shared.num_factors == first.num_factors == 15
    assert lift(shared).num_classes == 1
    assert lift(first).num_classes > 1


def test_products_that_mirror_each_other_are_alike_to_lifting() -> None:
    prior = Table.shared([0.0, 0.7])
    coupling = Table.shared(np.eye(2))
    graph = FactorGraph.build(
        dict.fromkeys("abcd", boolean),
        [(prior, [["a"], ["d"]]), (coupling, [["a", "b"], ["c", "d"]])],
    )

    merged = merge_factors(graph)

    assert lift(merged).num_classes == lift(graph).num_classes == 2
    assert merged.groups[0].scope.tolist() in ([[0, 1], [3, 2]], [[1, 0], [2, 3]])


def test_a_factor_goes_into_the_first_of_the_smallest_that_remain() -> None:
    pair, single = np.arange(6.0).reshape(2, 3), np.array([0.0, 5.0])
    graph = FactorGraph.build(
        {name: categorical(size) for name, size in zip("abcde", [2, 3, 4, 5, 6], strict=True)},
        [
            (Table.shared(np.zeros((2, 3, 4))), list("abc")),
            (Table.shared(pair), list("ab")),
            (Table.shared(np.zeros((5, 2))), list("da")),
            (Table.shared(np.zeros((2, 6))), list("ae")),
            (Table.shared(single), list("a")),
        ],
    )

    merged = merge_factors(graph)

    # The pair ab is as small as da for a, but does not remain.
    abc, da, ae = merged.groups
    assert (abc.label, da.label) == ("factors 0 + factors 1", "factors 2 + factors 4")
    np.testing.assert_array_equal(abc.potential.flat, np.repeat(pair, 4)[None])
    np.testing.assert_array_equal(da.potential.flat, np.tile(single, 5)[None])
    assert ae is graph.groups[3]


def test_the_smallest_factors_have_equal_shares_where_ties_are_shared() -> None:
    graph = FactorGraph.build(
        dict.fromkeys("abc", boolean),
        [
            (Table.shared(np.zeros((2, 2))), [("a", "b"), ("c", "a")]),
            (Table.shared([-np.inf, 6.0]), ["a"]),
        ],
    )

    (group,) = merge_factors(graph, "shared").groups

    # The second factor has its slots in the order that makes both rows equal.
    np.testing.assert_array_equal(group.scope, [[0, 1], [0, 2]])
    tables = group.potential.flat[group.row].reshape(2, 2, 2)
    np.testing.assert_array_equal(tables, [[[-np.inf, -np.inf], [3.0, 3.0]]] * 2)


def test_a_quadratic_goes_to_its_slots_of_a_larger_one() -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(1, 2, 3, 3, 3))
    large = ConditionalQuadratic(A + A.swapaxes(-1, -2), A[..., 0], A[..., 0, 0])
    B = rng.normal(size=(1, 3, 2, 2))
    small = ConditionalQuadratic(B + B.swapaxes(-1, -2), B[..., 0], B[..., 0, 0])
    graph = FactorGraph.build(
        {"d": boolean, "e": categorical(3), "x": real, "y": real, "z": interval(0, 1)},
        [
            (small, ["e", "z", "x"]),
            (large, ["d", "e", "x", "y", "z"]),
            (Table(rng.normal(size=(1, 3, 2))), ["e", "d"]),
        ],
    )

    merged = merge_factors(graph)

    assert merged.num_factors == 1
    assert_same_density(graph, merged)
    potential = merged.groups[0].potential
    assert isinstance(potential, ConditionalQuadratic)
    expected = large.A.copy()
    expected[..., [[2], [0]], [2, 0]] += small.A[:, None]
    order = np.argsort(merged.groups[0].scope[0, 2:])  # x, y, z
    np.testing.assert_allclose(potential.A[..., order[:, None], order], expected, rtol=1e-15)


def test_multiplicities_become_part_of_the_parameters() -> None:
    table = Table.shared([[0.0, 1.0], [-np.inf, 2.0]])
    scope = np.array([[0, 1], [1, 2]], dtype=np.int32)
    group = FactorGroup(table, scope, multiplicity=np.array([2.0, 0.5]))
    graph = FactorGraph(Variables.uniform(boolean, 3), (group,))

    (merged,) = merge_factors(graph).groups

    np.testing.assert_array_equal(merged.multiplicity, [1.0, 1.0])
    np.testing.assert_array_equal(merged.potential.flat[merged.row[0]], [0, 2, -np.inf, 4])
    np.testing.assert_array_equal(merged.potential.flat[merged.row[1]], [0, 0.5, -np.inf, 1])


def test_products_of_the_same_rows_share_a_row() -> None:
    pairs = np.arange(600, dtype=np.int32).reshape(300, 2)
    prior = np.arange(600, dtype=np.int32)[:, None]
    graph = FactorGraph(
        Variables.uniform(boolean, 600),
        (
            FactorGroup(Table(np.arange(8.0).reshape(2, 2, 2)), pairs, np.arange(300) // 150),
            FactorGroup(Table([[0.0, 1.0], [0.0, 2.0]]), prior, np.arange(600) % 2),
            FactorGroup(Table.shared([[3.0, 0.0], [0.0, 0.0]]), pairs[::3, ::-1]),
        ),
    )

    (merged,) = merge_factors(graph).groups

    assert merged.potential.num_rows == 4
    assert_same_density(graph, FactorGraph(graph.variables, (merged,)))


def test_many_factors_at_one_variable_become_one() -> None:
    rng = np.random.default_rng(0)
    tables = Table(rng.normal(size=(1001, 2)))
    graph = FactorGraph(
        Variables.uniform(boolean, 2), (FactorGroup(tables, np.zeros((1001, 1), dtype=np.int32)),)
    )

    merged = merge_factors(graph)

    assert merged.num_factors == 1
    np.testing.assert_allclose(
        merged.groups[0].potential.flat, tables.flat.sum(axis=0)[None], rtol=1e-12
    )


def test_of_wide_factors_small_parts_and_equal_scopes_are_found() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 9, 9))
    wide = ConditionalQuadratic(-root @ root.swapaxes(1, 2), root[..., 0], root[:, 0, 0])
    scope = np.stack([rng.permutation(9), rng.permutation(9)]).astype(np.int32)
    pair = ConditionalQuadratic.product(1.5)
    graph = FactorGraph(
        Variables.uniform(real, 10),
        (
            FactorGroup(pair, np.array([[8, 1], [9, 0]], dtype=np.int32)),
            FactorGroup(wide, scope),
            FactorGroup(ConditionalQuadratic.square(-1.0), np.arange(10, dtype=np.int32)[:, None]),
        ),
    )

    merged = merge_factors(graph)

    assert sorted(map(len, scopes(merged))) == [2, 9]
    assert_same_density(graph, merged)


def test_functions_stay_and_take_nothing_in() -> None:
    function = Function(np.minimum, num_reals=2)
    square = ConditionalQuadratic.square(-1.0)
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": interval(0, 1)},
        [(function, ["x", "y"]), (square, ["x"]), (ConditionalQuadratic.product(1.0), ["y", "x"])],
    )

    merged = merge_factors(graph)

    assert [type(g.potential) for g in merged.groups] == [Function, ConditionalQuadratic]
    assert merged.groups[0] is graph.groups[0]


def test_nested_scopes_that_evidence_makes_are_merged_after_conditioning() -> None:
    coupling = Table.shared(np.eye(2))
    graph = FactorGraph.build(
        dict.fromkeys("abc", boolean), [(coupling, [("a", "b"), ("b", "c")])]
    ).observe({"a": True})

    assert merge_factors(graph).num_factors == 2
    assert merge_factors(graph.condition()).num_factors == 1


def test_factors_without_slots_become_part_of_the_constant() -> None:
    nothing = np.zeros((2, 0), dtype=np.int32)
    group = FactorGroup(Table(np.array([1.0, 2.0])), nothing, multiplicity=np.array([1.0, 3.0]))
    graph = FactorGraph(Variables.uniform(real, 1), (group,), log_constant=0.5)

    merged = merge_factors(graph)

    assert merged.groups == ()
    assert merged.log_constant == 7.5


def test_a_graph_without_nested_scopes_keeps_its_groups() -> None:
    graph = FactorGraph.build(
        dict.fromkeys("abc", boolean), [(Table.shared(np.eye(2)), [("a", "b"), ("b", "c")])]
    )

    assert merge_factors(graph).groups[0] is graph.groups[0]


def test_a_lifted_graph_is_refused() -> None:
    lifted = lift(friends_and_smokers(4)).graph

    with pytest.raises(ModelError, match=r"stands for \d+ variables: .* merge them before lifting"):
        merge_factors(lifted)


def test_unknown_ties_are_refused() -> None:
    graph = FactorGraph(Variables.uniform(real, 1), ())

    with pytest.raises(ModelError, match="ties must be 'first' or 'shared', not 'all'"):
        merge_factors(graph, "all")  # type: ignore[arg-type]
