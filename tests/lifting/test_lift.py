"""Lifting beside the slow reference, and what must not change it."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.graph import Evidence, FactorGraph, FactorGroup, Names, Variables, boolean, real
from hylift.lifting import Lifting, lift
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table
from oracle import coarsest_equitable, exchangeable, factor_classes
from random_models import symmetric_graphs
from slow_objective import Mixture, bethe, energy, jensen
from zoo import ZOO, ZooModel

SEEDS = st.integers(0, 2**32 - 1)


def assert_is_the_reference(lifting: Lifting) -> None:
    variables = coarsest_equitable(lifting.ground)
    factors = factor_classes(lifting.ground, variables)
    offsets = np.cumsum([0, *(len(group) for group in lifting.graph.groups)])

    assert lifting.is_exact
    assert lifting.variable_to_class.tolist() == variables
    found = [c + at for c, at in zip(lifting.factor_to_class, offsets, strict=False)]
    assert np.concatenate([*found, np.zeros(0, dtype=int)]).tolist() == factors


def assert_sums_are_kept(lifting: Lifting) -> None:
    """Multiplicities of the classes are those of their members together."""
    ground, lifted = lifting.ground, lifting.graph
    sizes = np.bincount(
        lifting.variable_to_class, ground.variables.multiplicity, lifted.num_variables
    )
    assert lifted.variables.multiplicity.tolist() == sizes.tolist()
    assert len(lifted.groups) == len(ground.groups)
    columns = ground.groups, lifted.groups, lifting.factor_to_class
    for group, merged, to_class in zip(*columns, strict=True):
        assert merged.label == group.label
        counts = np.bincount(to_class, group.multiplicity, len(merged))
        assert merged.multiplicity.tolist() == counts.tolist()
        assert set(to_class.tolist()) == set(range(len(merged)))
    np.testing.assert_allclose(lifting.spread(lifted.degree), ground.degree, rtol=1e-13)


def assert_says_the_same(lifting: Lifting, rng: np.random.Generator) -> None:
    """Objectives and energies are those of the ground graph where classmates are alike."""
    lifted, ground = lifting.graph, lifting.ground
    q = Mixture.random(lifted, 2, rng, zeros=True)
    values = np.where(lifted.variables.num_states > 0, 0.0, rng.normal(size=lifted.num_variables))

    spread = q.spread(lifting.variable_to_class)
    np.testing.assert_allclose(bethe(lifted, q), bethe(ground, spread), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(jensen(lifted, q), jensen(ground, spread), rtol=1e-10, atol=1e-10)
    expected = energy(ground, lifting.spread(values))
    np.testing.assert_allclose(energy(lifted, values), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(-lifted.log_density(values), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=200)
@given(symmetric_graphs())
def test_classes_are_those_of_the_reference(graph: FactorGraph) -> None:
    lifting = lift(graph)

    assert_is_the_reference(lifting)
    assert_sums_are_kept(lifting)


@settings(max_examples=40)
@given(symmetric_graphs(max_copies=12, max_relations=3))
def test_classes_of_larger_graphs_are_those_of_the_reference(graph: FactorGraph) -> None:
    lifting = lift(graph)

    assert_is_the_reference(lifting)


@pytest.mark.slow
@settings(max_examples=5000)
@given(symmetric_graphs(max_copies=8, max_relations=7), SEEDS)
def test_thousands_of_graphs(graph: FactorGraph, seed: int) -> None:
    lifting = lift(graph)

    assert_is_the_reference(lifting)
    assert_sums_are_kept(lifting)
    if lifting.ground.num_factors < 60:
        assert_says_the_same(lifting, np.random.default_rng(seed))
    assert_is_the_reference(lift(lifting.graph))


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_zoo(model: ZooModel) -> None:
    lifting = lift(model.graph())

    assert_is_the_reference(lifting)
    assert_sums_are_kept(lifting)
    assert_says_the_same(lifting, np.random.default_rng(0))


@settings(max_examples=60)
@given(symmetric_graphs(), SEEDS)
def test_objectives_are_those_of_the_ground_graph(graph: FactorGraph, seed: int) -> None:
    lifting = lift(graph)

    assert_says_the_same(lifting, np.random.default_rng(seed))


def named_classes(lifting: Lifting) -> set[frozenset[str]]:
    names = np.array(lifting.ground.variables.names.render().to_pylist(), dtype=object)
    return {frozenset(names[lifting.members(c)]) for c in range(lifting.num_classes)}


def reordered(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """The same variables, under the same names, in another order."""
    new_id = rng.permutation(graph.num_variables)
    old_id = np.argsort(new_id)
    names = graph.variables.names.render().to_pylist()
    variables = Variables(
        graph.variables.domains[::-1],
        len(graph.variables.domains) - 1 - graph.variables.domain_id[old_id],
        Names.listed([names[old] for old in old_id]),
        graph.variables.multiplicity[old_id],
    )
    groups = [
        FactorGroup(g.potential, new_id[g.scope], g.row, g.multiplicity, g.label)
        for g in graph.groups
    ]
    evidence = graph.evidence
    moved = Evidence.of(new_id[evidence.variable], evidence.value, evidence.var)
    return FactorGraph(variables, tuple(groups), moved, graph.log_constant)


def shuffled_factors(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """The same factors in another order, in groups that are split, with rows in another order."""
    groups = []
    for group in graph.groups:
        rows = rng.permutation(group.potential.num_rows)
        potential, row = group.potential.take(rows), np.argsort(rows)[group.row]
        order = rng.permutation(len(group))
        cut = int(rng.integers(0, len(group) + 1))
        groups += [
            FactorGroup(potential, group.scope[some], row[some], group.multiplicity[some])
            for some in (order[:cut], order[cut:])
        ]
    order = rng.permutation(len(groups))
    some = tuple(groups[at] for at in order)
    return FactorGraph(graph.variables, some, graph.evidence, graph.log_constant)


def swapped_slots(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """The same factors of hidden variables, some with exchangeable slots the other way round."""
    groups, hidden = [], graph.condition()
    for group in hidden.groups:
        scope = group.scope.copy()
        for factor in np.flatnonzero(rng.random(len(group)) < 0.5):
            i, j = rng.integers(0, max(group.arity, 1), 2)
            if i != j and exchangeable(group.potential, group.row[factor], i, j):
                scope[factor, [i, j]] = scope[factor, [j, i]]
        groups.append(FactorGroup(group.potential, scope, group.row, group.multiplicity))
    return FactorGraph(hidden.variables, tuple(groups))


def copies_for_multiplicities(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """Factors of multiplicity 2 written out twice."""
    groups = [
        group.take(np.repeat(np.arange(len(group)), np.where(group.multiplicity == 2, 2, 1)))
        for group in graph.groups
    ]
    groups = [
        FactorGroup(g.potential, g.scope, g.row, np.where(g.multiplicity == 2, 1, g.multiplicity))
        for g in groups
    ]
    return FactorGraph(graph.variables, tuple(groups), graph.evidence, graph.log_constant)


@pytest.mark.parametrize(
    "change", [reordered, shuffled_factors, swapped_slots, copies_for_multiplicities]
)
@settings(max_examples=60)
@given(graph=symmetric_graphs(), seed=SEEDS)
def test_how_a_graph_is_written_down_does_not_matter(
    change: Callable[[FactorGraph, np.random.Generator], FactorGraph],
    graph: FactorGraph,
    seed: int,
) -> None:
    expected = lift(graph)

    actual = lift(change(graph, np.random.default_rng(seed)))

    assert named_classes(actual) == named_classes(expected)
    assert actual.graph.num_factors == expected.graph.num_factors


@settings(max_examples=80)
@given(symmetric_graphs())
def test_lifting_a_lifted_graph_is_the_reference_on_a_graph_with_multiplicities(
    graph: FactorGraph,
) -> None:
    once = lift(graph)

    twice = lift(once.graph)

    assert_is_the_reference(twice)
    assert_sums_are_kept(twice)
    assert twice.variable_to_class.tolist() == list(range(once.num_classes))
    assert twice.graph.num_factors == once.graph.num_factors


@settings(max_examples=20)
@given(symmetric_graphs())
def test_lifting_twice_gives_the_same_arrays_on_any_number_of_threads(graph: FactorGraph) -> None:
    first = lift(graph)

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    second = lift(graph)
    numba.set_num_threads(before)

    assert first.variable_to_class.tolist() == second.variable_to_class.tolist()
    for one, other in zip(first.graph.groups, second.graph.groups, strict=True):
        assert one.scope.tolist() == other.scope.tolist()
        assert one.row.tolist() == other.row.tolist()
        assert one.potential.flat.tobytes() == other.potential.flat.tobytes()


def test_a_graph_without_variables_has_no_classes() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 1.0]), ["a"])])

    lifting = lift(graph.observe({"a": True}))

    assert lifting.num_classes == 0
    assert lifting.graph.log_constant == 1.0
    assert lifting.spread(np.zeros(0)).tolist() == []


def test_variables_without_factors_are_classes_by_domain() -> None:
    lifting = lift(FactorGraph.build({"a": boolean, "x": real, "b": boolean, "y": real}, []))

    assert lifting.variable_to_class.tolist() == [0, 1, 0, 1]
    assert lifting.graph.variables.multiplicity.tolist() == [2, 2]
    assert lifting.graph.variables.names.render().to_pylist() == ["a", "x"]


def test_domains_that_are_listed_twice_are_one_domain() -> None:
    variables = Variables((boolean, boolean), np.array([0, 1]), Names.numbered(2), np.ones(2))

    lifting = lift(FactorGraph(variables, ()))

    assert lifting.num_classes == 1


def test_slots_of_an_asymmetric_potential_tell_variables_apart() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[0, 1], [2, 3]]), ["a", "b"])]
    )

    assert lift(graph).num_classes == 2


def test_slots_of_a_symmetric_potential_do_not() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[0, 1], [1, 3]]), ["a", "b"])]
    )

    lifting = lift(graph)

    assert lifting.num_classes == 1
    assert lifting.graph.groups[0].scope.tolist() == [[0, 0]]


@pytest.mark.parametrize(("symmetric", "num_classes"), [((), 2), (((0, 1),), 1)])
def test_a_function_is_symmetric_where_its_author_says_so(
    symmetric: tuple[tuple[int, ...], ...], num_classes: int
) -> None:
    product = Function(lambda x, y: -((x - y) ** 2), num_reals=2, symmetric=symmetric)
    graph = FactorGraph.build({"x": real, "y": real}, [(product, ["x", "y"])])

    assert lift(graph).num_classes == num_classes


@pytest.mark.parametrize(
    "distance",
    [
        ConditionalQuadratic.squared_distance(1.0, [1, -1]),
        Function(lambda x, y: -((x - y) ** 2), num_reals=2, symmetric=((0, 1),)),
    ],
    ids=["quadratic", "function"],
)
def test_it_does_not_matter_which_of_two_exchangeable_slots_is_observed(
    distance: Potential,
) -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real, "hub": real}, [(distance, [["x", "hub"], ["hub", "y"]])]
    )

    assert lift(graph.observe({"hub": 1.0})).num_classes == 1


def test_measurements_with_one_value_keep_variables_together() -> None:
    graph = FactorGraph.build(
        dict.fromkeys("xyz", real), [(ConditionalQuadratic.square(-1.0), [["x"], ["y"], ["z"]])]
    )
    evidence = Evidence.of([0, 1, 2], [0.3, 0.3, 0.3], [0.5, 0.5, 0.7])

    assert lift(graph.observe(evidence)).variable_to_class.tolist() == [0, 0, 1]


@pytest.mark.parametrize("unit", [1.0, 0.1, 1 / 3, 1e-9, 1e15, np.pi])
def test_multiplicities_of_any_size_are_summed(unit: float) -> None:
    variables = Variables.uniform(boolean, 3)
    scope, multiplicity = [[0], [0], [1], [2]], np.array([1, 1, 2, 1]) * unit
    group = FactorGroup(Table.shared([0.0, 1.0]), np.array(scope), multiplicity=multiplicity)

    lifting = lift(FactorGraph(variables, (group,)))

    assert lifting.variable_to_class.tolist() == [0, 0, 1]


def test_multiplicities_of_very_different_sizes_lose_no_difference() -> None:
    variables = Variables.uniform(boolean, 4)
    scope, multiplicity = [[0], [0], [1], [2], [2], [3], [3]], [1e18, 1, 1e18, 1e18, 1, 1e-18, 1]
    group = FactorGroup(Table.shared([0.0, 1.0]), np.array(scope), multiplicity=multiplicity)

    lifting = lift(FactorGraph(variables, (group,)))

    assert lifting.variable_to_class.tolist() == [0, 1, 0, 2]


def test_it_does_not_matter_in_which_exchangeable_slots_two_values_were_observed() -> None:
    total = Function(lambda x, y, z: -((x + y + z) ** 2), num_reals=3, symmetric=((0, 1, 2),))
    graph = FactorGraph.build(
        dict.fromkeys("abxy", real), [(total, [["a", "b", "x"], ["b", "a", "y"]])]
    )

    assert lift(graph.observe({"a": 1.0, "b": 2.0})).num_classes == 1
