"""Quadratics taken apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.potentials import ConditionalQuadratic
from hylift.rewrite.kinds import decouple

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(0, 2), st.integers(1, 4), st.integers(1, 4))
def test_the_pieces_of_a_quadratic_sum_to_the_whole(
    seed: int, num_discrete: int, num_reals: int, num_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    states = rng.integers(1, 4, num_discrete)
    shape = (num_rows, *states)
    A = rng.normal(size=(*shape, num_reals, num_reals))
    A *= rng.random((num_rows, *np.ones_like(states), num_reals, num_reals)) < 0.4
    b = rng.normal(size=(*shape, num_reals)) * (rng.random(num_reals) < 0.5)
    c = rng.normal(size=shape) * (rng.random() < 0.7)
    if rng.random() < 0.3:
        c.flat[0] = -np.inf
    whole = ConditionalQuadratic(A, b, c)

    pieces = decouple(whole)

    point = [rng.integers(0, size) for size in states] + list(rng.normal(size=num_reals))
    for row in range(num_rows):
        total = 0.0
        for piece in pieces:
            own = np.flatnonzero(piece.rows == row)
            inside = [np.array([point[slot]]) for slot in piece.slots]
            total += sum(piece.potential.log_value(np.array([r]), inside)[0] for r in own)
        expected = whole.log_value(np.array([row]), [np.array([value]) for value in point])[0]
        assert total == pytest.approx(expected, abs=1e-10)


def test_pieces_keep_only_the_slots_they_depend_on() -> None:
    """-(x - 1)² where d, -(y + z)² always, and a constant that depends on e."""
    A = np.zeros((1, 2, 2, 4, 4))
    A[:, 1, :, 0, 0] = -1.0
    A[..., 1:3, 1:3] = -1.0
    b = np.zeros((1, 2, 2, 4))
    b[:, 1, :, 0] = 2.0
    c = np.zeros((1, 2, 2)) + np.array([0.0, 3.0])

    pieces = decouple(ConditionalQuadratic(A, b, c))

    assert sorted(piece.slots for piece in pieces) == [(0, 2), (1,), (3, 4)]


def test_rows_that_depend_on_different_slots_are_taken_apart_separately() -> None:
    A = np.full((2, 2, 1, 1), -1.0)
    A[1, 1] = -2.0

    pieces = decouple(ConditionalQuadratic(A, np.zeros((2, 2, 1)), np.zeros((2, 2))))

    assert {(piece.slots, *piece.rows.tolist()) for piece in pieces} == {((1,), 0), ((0, 1), 1)}
