"""Connected parts that look alike: equal under a renaming, and not only in color."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, categorical
from hylift.potentials import Table
from hylift.rewrite.parts import alike_parts, parts_by_copies

SOFT = Table.shared([[1.0, 0.0], [0.0, 1.0]])


def ring(ids: list[int]) -> list[list[int]]:
    return [[ids[at], ids[(at + 1) % len(ids)]] for at in range(len(ids))]


def graph_of(num_variables: int, pairs: list[list[int]]) -> FactorGraph:
    variables = Variables.uniform(boolean, num_variables)
    return FactorGraph(variables, (FactorGroup(SOFT, np.array(pairs)),))


def test_triangles_look_alike_and_a_hexagon_does_not() -> None:
    triangles = graph_of(6, ring([0, 1, 2]) + ring([3, 4, 5]))
    mixed = graph_of(12, ring([0, 1, 2]) + ring([3, 4, 5]) + ring(list(range(6, 12))))

    found, both = alike_parts(triangles), alike_parts(mixed)

    assert found is not None
    assert found.graph.num_variables == 3
    assert found.copies is not None
    assert found.copies.tolist() == [2, 2, 2]
    assert found.summary == "2 parts, of which 1 differ"
    assert both is not None
    assert both.graph.num_variables == 9
    assert oracle.solve(both.graph).log_z < oracle.solve(mixed).log_z


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_log_z_is_the_sum_over_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [
        (Table(rng.normal(size=(1, 2, 3))), Table(rng.integers(0, 2, (2, 2)).astype(float)))
        for _ in range(2)
    ]
    count = int(rng.integers(3, 7))
    place = rng.permutation(2 * count).reshape(count, 2)
    domains = np.empty(2 * count, dtype=object)
    domains[place[:, 0]], domains[place[:, 1]] = boolean, categorical(3)
    variables = Variables.of(domains.tolist(), Names.numbered(2 * count))
    chosen = rng.integers(0, 2, count)
    groups = []
    for number, (pair, own) in enumerate(kinds):
        some = place[chosen == number]
        if len(some):
            row = rng.integers(0, 2, len(some)).astype(np.int32)
            groups += [FactorGroup(pair, some), FactorGroup(own, some[:, :1], row)]
    graph = FactorGraph(variables, tuple(groups), log_constant=0.5)

    found = alike_parts(graph)

    expected = oracle.solve(graph)
    if found is None:
        return
    assert found.copies is not None
    pieces = parts_by_copies(found.graph, found.copies)
    total = 0.5 + sum(weight * oracle.solve(piece).log_z for weight, piece in pieces)
    assert total == pytest.approx(expected.log_z, abs=1e-9)
    alone = oracle.solve(found.graph)
    for variable, probs in expected.probs.items():
        np.testing.assert_allclose(alone.probs[int(found.back.variable[variable])], probs)


def test_variables_without_factors_are_parts_of_their_own() -> None:
    variables = Variables.uniform(boolean, 5)
    graph = FactorGraph(variables, (FactorGroup(Table.shared([0.0, 1.0]), np.array([[0], [3]])),))

    found = alike_parts(graph)

    assert found is not None
    assert found.copies is not None
    assert sorted(found.copies.tolist()) == [2, 3]
    assert found.back.variable.tolist() == [0, 1, 1, 0, 1]


def test_many_different_numbers_of_copies_take_few_graphs() -> None:
    sizes = np.repeat(np.arange(1, 40), np.arange(1, 40))
    table = Table(np.stack([np.zeros(40), np.arange(40.0)], axis=1))
    graph = FactorGraph(
        Variables.uniform(boolean, len(sizes)),
        (FactorGroup(table, np.arange(len(sizes))[:, None], sizes.astype(np.int32)),),
    )

    found = alike_parts(graph)

    assert found is not None
    assert found.copies is not None
    pieces = parts_by_copies(found.graph, found.copies)
    assert len(pieces) == 6
    assert sum(weight * piece.num_variables for weight, piece in pieces) == len(sizes)


def test_factors_across_parts_cannot_be_asked_about() -> None:
    found = alike_parts(graph_of(6, ring([0, 1, 2]) + ring([3, 4, 5])))

    assert found is not None
    with pytest.raises(UnsupportedError, match="variables that the model leaves unconnected"):
        found.back.in_other([FactorGroup(SOFT, np.array([[0, 3]]))], np.full(3, 2, dtype=np.int32))


def test_different_parts_are_left_alone() -> None:
    variables = Variables.uniform(boolean, 3)
    table = Table(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]))
    graph = FactorGraph(variables, (FactorGroup(table, np.arange(3)[:, None]),))

    assert alike_parts(graph) is None
