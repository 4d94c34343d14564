"""The quotient by any partition says the same as the graph with classmates treated alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import (
    Domain,
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
)
from hylift.lifting import Structure, lift, quotient, stable_coloring, tie
from hylift.potentials import Table
from oracle import solve
from random_models import random_classes, symmetric_graphs
from slow_objective import Mixture, bethe, energy, jensen
from zoo import ZOO, ZooModel, copied_factors, counted_factors

SEEDS = st.integers(0, 2**32 - 1)


def random_kinds(structure: Structure, rng: np.random.Generator) -> NDArray[np.int32]:
    """Exact kinds, some of one group joined where rows may be averaged."""
    label = rng.integers(0, rng.choice([1, 2, 10]), max(structure.num_kinds, 1))
    kind = structure.kind.copy()
    for group, averages in enumerate(structure.averages):
        begin, end = structure.offsets[group : group + 2]
        if averages:
            kind[begin:end] = structure.num_kinds + group * 10 + label[kind[begin:end]]
    return np.unique(kind, return_inverse=True)[1].astype(np.int32)


def assert_says_the_same(
    ground: FactorGraph,
    lifted: FactorGraph,
    variable_to_class: NDArray[np.integer],
    rng: np.random.Generator,
    zeros: bool,
) -> None:
    q = Mixture.random(lifted, int(rng.integers(1, 4)), rng, zeros=zeros)
    num_states = lifted.variables.num_states
    states = np.floor(rng.random(len(num_states)) * num_states)
    values = np.where(num_states > 0, states, rng.normal(size=len(num_states)))
    spread = q.spread(variable_to_class)

    for objective in (bethe, jensen):
        np.testing.assert_allclose(
            objective(lifted, q), objective(ground, spread), rtol=1e-10, atol=1e-10
        )
    expected = energy(ground, values[variable_to_class])
    np.testing.assert_allclose(energy(lifted, values), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(-lifted.log_density(values), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        -ground.log_density(values[variable_to_class]), expected, rtol=1e-10, atol=1e-10
    )


def check_any_partition(graph: FactorGraph, seed: int) -> None:
    """Of variables and of parameters; then a partition of the classes once more."""
    rng = np.random.default_rng(seed)
    ground = graph.condition() if rng.random() < 0.7 else FactorGraph(
        graph.variables, graph.groups, Evidence.none(), graph.log_constant
    )  # fmt: skip
    structure = Structure.of(ground)
    kind = random_kinds(structure, rng) if rng.random() < 0.5 else None
    partition = tie(structure, random_classes(ground, rng), kind)

    lifted = quotient(ground, structure, partition)

    assert lifted.num_variables == partition.num_variable_classes
    assert lifted.num_factors == partition.num_factor_classes
    members = np.bincount(partition.variable, ground.degree * ground.variables.multiplicity)
    np.testing.assert_allclose(lifted.degree * lifted.variables.multiplicity, members, rtol=1e-12)
    assert_says_the_same(ground, lifted, partition.variable, rng, zeros=True)
    again = Structure.of(lifted)
    coarser = tie(again, random_classes(lifted, rng))
    both = coarser.variable[partition.variable]
    assert_says_the_same(ground, quotient(lifted, again, coarser), both, rng, zeros=False)


@settings(max_examples=150)
@given(symmetric_graphs(max_copies=4, max_relations=4), SEEDS)
def test_any_partition_keeps_the_objectives(graph: FactorGraph, seed: int) -> None:
    check_any_partition(graph, seed)


@pytest.mark.slow
@settings(max_examples=3000)
@given(symmetric_graphs(), SEEDS)
def test_any_of_thousands_of_partitions_keeps_the_objectives(graph: FactorGraph, seed: int) -> None:
    check_any_partition(graph, seed)


@settings(max_examples=60)
@given(symmetric_graphs(max_relations=4), SEEDS)
def test_equitable_partitions_are_ties_that_need_no_averages(graph: FactorGraph, seed: int) -> None:
    ground = graph.condition()
    structure = Structure.of(ground)
    expected = stable_coloring(structure)

    actual = tie(structure, expected.variable, structure.kind)

    assert actual.variable.tolist() == expected.variable.tolist()
    assert actual.factor.tolist() == expected.factor.tolist()
    rows = {row.tobytes() for group in ground.groups for row in group.potential.flat}
    lifted = quotient(ground, structure, actual)
    assert {row.tobytes() for group in lifted.groups for row in group.potential.flat} <= rows


@settings(max_examples=60)
@given(symmetric_graphs(), SEEDS)
def test_classes_are_numbered_by_their_first_members(graph: FactorGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ground = graph.condition()
    structure = Structure.of(ground)

    partition = tie(structure, random_classes(ground, rng) * 7 + 3)

    for classes, first in [
        (partition.variable, partition.first_variable),
        (partition.factor, partition.first_factor),
    ]:
        distinct = list(dict.fromkeys(classes.tolist()))
        assert distinct == list(range(len(first)))
        assert first.tolist() == [classes.tolist().index(c) for c in distinct]


def test_parameters_of_a_class_are_the_mean_by_multiplicity() -> None:
    table = Table(np.array([[0.0, 1.0], [4.0, 3.0]]))
    group = FactorGroup(table, np.array([[0], [1]]), multiplicity=np.array([3.0, 1.0]))
    graph = FactorGraph(Variables.uniform(boolean, 2), (group,))
    structure = Structure.of(graph)

    lifted = quotient(graph, structure, tie(structure, np.array([0, 0])))

    (merged,) = lifted.groups
    assert merged.potential.flat[merged.row].tolist() == [[1.0, 1.5]]
    assert merged.multiplicity.tolist() == [4.0]
    assert lifted.degree.tolist() == [2.0]


def test_what_is_impossible_for_a_member_is_impossible_for_the_class() -> None:
    table = Table(np.array([[0.0, 1.0], [-np.inf, 3.0]]))
    graph = FactorGraph(Variables.uniform(boolean, 2), (FactorGroup(table, np.array([[0], [1]])),))
    structure = Structure.of(graph)

    lifted = quotient(graph, structure, tie(structure, np.array([0, 0])))

    (merged,) = lifted.groups
    assert merged.potential.flat[merged.row].tolist() == [[-np.inf, 2.0]]


def test_symmetric_and_asymmetric_rows_of_one_group_are_averaged_slot_by_slot() -> None:
    symmetric, asymmetric = [[0.0, 1.0], [1.0, 2.0]], [[0.0, 5.0], [1.0, 2.0]]
    graph = FactorGraph(
        Variables.uniform(boolean, 4),
        (
            FactorGroup(
                Table(np.array([symmetric, asymmetric])),
                np.array([[1, 0], [2, 3], [3, 2], [0, 1]]),
                np.array([0, 1, 0, 1]),
            ),
        ),
    )
    structure = Structure.of(graph)
    partition = tie(structure, np.array([0, 1, 0, 1]))

    lifted = quotient(graph, structure, partition)

    rng = np.random.default_rng(0)
    assert_says_the_same(graph, lifted, partition.variable, rng, zeros=False)


def test_variables_of_different_domains_do_not_make_a_class() -> None:
    graph = FactorGraph.build({"a": boolean, "b": categorical(["false", "maybe"])}, [])
    structure = Structure.of(graph)
    partition = tie(structure, np.array([0, 0]))

    with pytest.raises(ModelError, match=r"'b' and 'a' have different domains"):
        quotient(graph, structure, partition)


def test_evidence_must_be_absorbed_first() -> None:
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [])
    structure = Structure.of(graph)
    partition = tie(structure, np.array([0, 0]))

    with pytest.raises(ModelError, match="must be conditioned before it is lifted"):
        quotient(graph.observe({"a": True}), structure, partition)


@pytest.mark.parametrize("model", [m for m in ZOO if not {"large", "bounded"} & m.tags], ids=str)
def test_the_slow_jensen_bound_is_a_bound(model: ZooModel) -> None:
    graph = model.graph().condition()
    rng = np.random.default_rng(1)

    bounds = [-jensen(graph, Mixture.random(graph, 3, rng, zeros=False)) for _ in range(5)]

    assert max(bounds) <= solve(model.graph()).log_z


def test_the_slow_bethe_objective_is_a_bound_where_one_factor_has_all_variables() -> None:
    rng = np.random.default_rng(2)
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3), "c": boolean},
        [(Table.shared(rng.normal(size=(2, 3, 2))), ["a", "b", "c"])],
    )

    bounds = [-bethe(graph, Mixture.random(graph, 2, rng, zeros=False)) for _ in range(20)]

    assert max(bounds) <= solve(graph).log_z


def test_slow_objectives_count_factors_as_if_they_were_written_out() -> None:
    counted, copied = counted_factors(), copied_factors()
    q = Mixture.random(counted, 2, np.random.default_rng(3), zeros=True)

    for objective in (bethe, jensen):
        assert objective(counted, q) == pytest.approx(objective(copied, q), rel=1e-12)


@settings(max_examples=30)
@given(symmetric_graphs(multiplicities=False), SEEDS)
def test_lifted_marginal_beliefs_are_members_beliefs(graph: FactorGraph, seed: int) -> None:
    assume(graph.num_variables > 0)
    lifting = lift(graph)
    values = np.random.default_rng(seed).normal(size=(lifting.num_classes, 2))

    spread = lifting.spread(values)

    for number in range(lifting.num_classes):
        assert (spread[lifting.members(number)] == values[number]).all()


def test_domains_that_differ_are_never_merged_even_behind_equal_ones() -> None:
    domains = (boolean, Domain(boolean.states), categorical(3))
    variables = Variables(domains, np.arange(3), Names.numbered(3), np.ones(3))
    graph = FactorGraph(variables, ())
    structure = Structure.of(graph)

    with pytest.raises(ModelError, match="'x2' and 'x0' have different domains"):
        quotient(graph, structure, tie(structure, np.zeros(3, dtype=int)))
