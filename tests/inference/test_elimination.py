"""Elimination orders: permutations whose cliques hold every edge and form a tree."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.inference.exact.elimination import (
    Elimination,
    eliminate_reals,
    eliminate_tables,
    scope_edges,
)


def cliques(elimination: Elimination) -> list[set[int]]:
    """Per step: the step and its later neighbours."""
    bounds = zip(elimination.ptr[:-1], elimination.ptr[1:], strict=True)
    return [{step, *elimination.later[a:b].tolist()} for step, (a, b) in enumerate(bounds)]


def width(elimination: Elimination) -> int:
    return max(len(clique) for clique in cliques(elimination)) - 1


@st.composite
def edges_of(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """A number of variables, and some pairs of them."""
    num_variables = draw(st.integers(1, 12))
    pairs = list(itertools.combinations(range(num_variables), 2))
    return num_variables, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@given(edges_of(), st.booleans())
def test_cliques_hold_every_edge_and_have_the_running_intersection_property(
    graph: tuple[int, list[tuple[int, int]]], for_tables: bool
) -> None:
    num_variables, edges = graph
    pairs = np.array(sorted(edges), dtype=np.int32).reshape(-1, 2)

    if for_tables:
        elimination = eliminate_tables(np.log(np.arange(num_variables) % 3 + 1.0), pairs)
    else:
        elimination = eliminate_reals(num_variables, pairs)

    assert sorted(elimination.order.tolist()) == list(range(num_variables))
    assert elimination.order[elimination.step].tolist() == list(range(num_variables))
    found = cliques(elimination)
    for a, b in elimination.step[pairs]:
        assert {a, b} <= found[min(a, b)]
    for step, clique in enumerate(found):
        later = sorted(clique - {step})
        assert all(neighbour > step for neighbour in later)
        assert elimination.parent[step] == (later[0] if later else -1)
        if later:  # what a clique passes on is in its parent's clique
            assert set(later) <= found[later[0]]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([(0, i) for i in range(1, 9)], 1),  # a star
        ([(i, i + 1) for i in range(8)], 1),  # a chain
        ([(i, (i + 1) % 9) for i in range(9)], 2),  # a loop
        ([(i, j) for i in range(9) for j in range(i)], 8),  # a complete graph
    ],
    ids=["star", "chain", "loop", "complete"],
)
def test_known_graphs_have_their_known_width(edges: list[tuple[int, int]], expected: int) -> None:
    pairs = np.array(edges, dtype=np.int32)

    for_tables, for_reals = (
        eliminate_tables(np.full(9, np.log(2.0)), pairs),
        eliminate_reals(9, pairs),
    )

    assert width(for_tables) == width(for_reals) == expected


def test_a_grid_is_eliminated_at_its_width() -> None:
    ids = np.arange(36).reshape(6, 6)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    edges = np.concatenate([across, down]).astype(np.int32)

    elimination = eliminate_tables(np.full(36, np.log(10.0)), edges)

    assert width(elimination) <= 7  # the treewidth is 6; min-fill comes close


def test_edges_of_scopes_are_unique_pairs() -> None:
    scopes = [np.array([[2, 0, 1], [0, 2, 3]]), np.array([[1, 0]]), np.array([[3]])]

    edges = scope_edges(scopes, 4)

    assert sorted(map(tuple, edges.tolist())) == [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]


def grid_edges(rows: int, columns: int) -> np.ndarray:
    ids = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    return np.concatenate([right, down]).astype(np.int32)


def test_a_long_grid_is_eliminated_across_its_short_side() -> None:
    edges = grid_edges(60, 16)

    elimination = eliminate_tables(np.full(960, np.log(2.0)), edges)

    assert np.diff(elimination.ptr).max() == 16


def test_every_component_gets_its_own_best_order() -> None:
    one = grid_edges(12, 12)
    many = np.concatenate([one + 144 * copy for copy in range(20)])

    alone = eliminate_tables(np.full(144, np.log(2.0)), one)
    together = eliminate_tables(np.full(144 * 20, np.log(2.0)), many)

    assert (2.0 ** np.diff(together.ptr)).sum() <= 20.2 * (2.0 ** np.diff(alone.ptr)).sum()


def test_a_hub_of_reals_is_eliminated_last() -> None:
    leaves = np.arange(1, 5001, dtype=np.int32)
    edges = np.stack([np.zeros_like(leaves), leaves], axis=1)

    elimination = eliminate_reals(5001, edges)

    assert elimination.order[-1] == 0
    assert np.diff(elimination.ptr).max() == 1
