"""Parameters that are equal to a relative tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import oracle
from hylift.errors import ModelError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, categorical, real
from hylift.inference import MeanField, infer
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table


def alone(potential: Potential) -> FactorGraph:
    """A graph of variables with one factor each, which has a row of its own."""
    count, arity = potential.num_rows, len(potential.slot_states)
    assert arity == 1
    domain = real if potential.slot_states[0] == 0 else boolean
    group = FactorGroup(potential, np.arange(count, dtype=np.int32)[:, None])
    return FactorGraph(Variables.uniform(domain, count), (group,))


def classes(values: ArrayLike, tolerance: float) -> list[int]:
    """The classes of Booleans with these weights."""
    weight = np.asarray(values, dtype=np.float64)
    table = Table(np.stack([np.zeros_like(weight), weight], axis=1))
    return lift(alone(table), tolerance=tolerance).variable_to_class.tolist()


def test_a_difference_in_the_last_bits_is_none() -> None:
    assert classes([0.1 + 0.2, 0.3, 3 * 0.1, 0.30001], 1e-12) == [0, 0, 0, 1]


def test_a_difference_in_the_last_bit_never_separates() -> None:
    """However the values lie: no grid has an edge between two that are almost equal."""
    centre = np.random.default_rng(0).normal(size=30_000)
    values = np.concatenate([centre, np.nextafter(centre, np.inf)])

    found = np.array(classes(values, 1e-12))

    assert (found[:30_000] == found[30_000:]).all()
    assert found.max() + 1 == 30_000


def test_without_tolerance_the_last_bit_counts() -> None:
    assert classes([0.1 + 0.2, 0.3, 0.3, np.nextafter(0.3, 1)], 0.0) == [0, 1, 1, 0]


def test_zeros_have_no_sign() -> None:
    assert classes([0.0, -0.0, 1e-300, -1e-300], 1e-12) == [0, 0, 1, 2]


def test_minus_infinity_equals_only_itself() -> None:
    assert classes([-np.inf, -1e308, -np.inf, 0.0], 1e-3) == [0, 1, 0, 2]


@pytest.mark.parametrize("sign", [1, -1])
def test_there_are_no_chains_of_almost_equal_parameters(sign: int) -> None:
    tolerance = 1e-6
    values = sign * (1 + 0.8 * tolerance * np.arange(20))

    found = np.array(classes(values, tolerance))

    assert found.max() > 5
    for number in range(found.max() + 1):
        assert np.ptp(values[found == number]) <= 1.001 * tolerance * np.abs(values).max()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from([-3.0, 1.0, 7.0]), st.integers(0, 40)), min_size=1),
    st.randoms(use_true_random=False),
)
def test_equality_does_not_depend_on_the_order(
    pairs: list[tuple[float, int]], random: object
) -> None:
    tolerance = 1e-6
    values = np.array([centre * (1 + 0.1 * tolerance * step) for centre, step in pairs])
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]

    found = np.array(classes(values, tolerance))
    again = np.array(classes(values[order], tolerance))

    same = found[:, None] == found[None, :]
    assert (same[np.ix_(order, order)] == (again[:, None] == again[None, :])).all()
    apart = np.abs(values[:, None] - values[None, :])
    size = np.maximum(np.abs(values[:, None]), np.abs(values[None, :]))
    assert (apart[same] <= 1.0001 * tolerance * size[same]).all()
    assert same[apart == 0].all()


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_values_in_narrow_heaps_far_apart_are_their_heaps(
    members: list[tuple[int, int]], seed: int
) -> None:
    centre = np.random.default_rng(seed).normal(size=6)
    heap = np.array([h for h, _ in members])
    values = centre[heap] * (1 + 1e-14 * np.array([step for _, step in members]))

    found = classes(values, 1e-12)

    assert found == [list(dict.fromkeys(heap.tolist())).index(h) for h in heap.tolist()]


def test_every_parameter_of_a_row_counts() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-15], [1.0, 2.1], [1.1, 2.0], [1.0 + 1e-15, 2.0]])

    assert lift(alone(Table(rows))).variable_to_class.tolist() == [0, 0, 1, 2, 0]


def test_quadratics_are_compared_by_all_coefficients() -> None:
    A, b, c = (np.array(x) for x in ([1, 1, 2, 1, 1], [0.5, 0.5, 0.5, 1, 0.5], [0, 0, 0, 0, 3.0]))
    potential = ConditionalQuadratic(-A[:, None, None].astype(float), b[:, None], c)

    assert lift(alone(potential)).variable_to_class.tolist() == [0, 0, 1, 2, 0]


def test_functions_are_compared_by_their_parameters() -> None:
    potential = Function(
        lambda x, height: -height * x**4,
        num_reals=1,
        parameters=np.array([[0.3], [0.1 + 0.2], [1]]),
    )

    assert lift(alone(potential)).variable_to_class.tolist() == [0, 0, 1]


def test_slots_are_exchangeable_to_the_tolerance() -> None:
    table = Table.shared([[0.0, 0.1 + 0.2], [0.3, 1.0]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(table, ["a", "b"])])

    assert lift(graph).num_classes == 1
    assert lift(graph, tolerance=0.0).num_classes == 2


@pytest.mark.parametrize("other", [-1.0, 0.0, 1e308])
def test_slots_are_not_exchangeable_where_only_one_order_is_impossible(other: float) -> None:
    table = Table.shared([[0.0, -np.inf], [other, 1.0]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(table, ["a", "b"])])

    assert lift(graph).num_classes == 2


def test_slots_are_exchangeable_where_both_orders_are_impossible() -> None:
    table = Table.shared([[0.0, -np.inf], [-np.inf, 1.0]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(table, ["a", "b"])])

    assert lift(graph).num_classes == 1


def test_rows_that_differ_in_their_last_bits_lift_to_one_row_between_them() -> None:
    low, high = 0.3, 0.1 + 0.2
    table = Table(np.array([[0.0, low], [0.0, high]]))

    lifted = lift(alone(table)).graph

    (group,) = lifted.groups
    assert low <= group.potential.flat[group.row[0], 1] <= high


def test_equality_does_not_depend_on_how_factors_are_grouped() -> None:
    values = np.array([1.0, 1 + 0.8e-6, 1 + 1.6e-6, 1 + 2.4e-6])
    table = Table(np.stack([np.zeros(4), values], axis=1))
    scope = np.arange(4, dtype=np.int32)[:, None]
    variables = Variables.uniform(boolean, 4)
    one = FactorGraph(variables, (FactorGroup(table, scope),))
    several = FactorGraph(
        variables,
        tuple(FactorGroup(table.take(np.array([v])), scope[[v]]) for v in (3, 1, 0, 2)),
    )

    expected, actual = lift(one, tolerance=1e-6), lift(several, tolerance=1e-6)

    assert actual.variable_to_class.tolist() == expected.variable_to_class.tolist()


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, np.nan, np.inf])
def test_a_tolerance_lies_between_0_and_1(tolerance: float) -> None:
    graph = FactorGraph.build({"a": boolean}, [])

    with pytest.raises(ModelError, match="at least 0 and less than 1"):
        lift(graph, tolerance=tolerance)


def test_factors_that_differ_by_a_constant_are_alike_and_log_z_stays() -> None:
    steps = np.array([0.0, 5.0, -300.0, 1e-3])
    hard = Table(np.array([0.3, -np.inf, -0.9]) + steps[:, None])
    names = {f"x{at}": categorical(3) for at in range(4)}
    variables = Variables.named(names)
    graph = FactorGraph(variables, (FactorGroup(hard, np.arange(4)[:, None]),))

    lifted = lift(graph)

    assert lifted.num_classes == 1
    expected = oracle.solve(graph).log_z
    for how in ("exact", "none"):
        found = infer(graph, MeanField(), lift=how, rewrite=False).log_partition
        assert found is not None
        assert found.value == pytest.approx(expected, abs=1e-9)
