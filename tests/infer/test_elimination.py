"""Elimination orders: permutations whose cliques hold every edge and form a tree."""

import numpy as np
import pytest
from hylift.infer.exact.elimination import Elimination, eliminate, scope_edges
from hypothesis import given
from hypothesis import strategies as st


def cliques(elimination: Elimination) -> list[set[int]]:
    """Per step: the step and its later neighbours."""
    bounds = zip(elimination.ptr[:-1], elimination.ptr[1:], strict=True)
    return [{step, *elimination.later[a:b].tolist()} for step, (a, b) in enumerate(bounds)]


def width(elimination: Elimination) -> int:
    return max(len(clique) for clique in cliques(elimination)) - 1


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1])),
        )
    ),
    st.booleans(),
)  # fmt: skip
def test_cliques_hold_every_edge_and_have_the_running_intersection_property(
    graph: tuple[int, set[tuple[int, int]]], with_states: bool
) -> None:
    num_variables, edges = graph
    pairs = np.array(sorted(edges), dtype=np.int32).reshape(-1, 2)
    log_states = np.log(np.arange(num_variables) % 3 + 1.0) if with_states else None

    elimination = eliminate(num_variables, pairs, log_states=log_states)

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
    elimination = eliminate(9, np.array(edges, dtype=np.int32))

    assert width(elimination) == expected


def test_a_grid_is_eliminated_at_its_width() -> None:
    ids = np.arange(36).reshape(6, 6)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    edges = np.concatenate([across, down]).astype(np.int32)

    elimination = eliminate(36, edges, log_states=np.full(36, np.log(10.0)))

    assert width(elimination) <= 7  # the treewidth is 6; min-fill comes close


def test_edges_of_scopes_are_unique_pairs() -> None:
    scopes = [np.array([[2, 0, 1], [0, 2, 3]]), np.array([[1, 0]]), np.array([[3]])]

    edges = scope_edges(scopes, 4)

    assert sorted(map(tuple, edges.tolist())) == [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]
