"""Reduction by evidence, for random potentials of every kind."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.errors import ModelError
from hylift.potentials import (
    ConditionalQuadratic,
    Function,
    Potential,
    Table,
)

REALS_IN = {"table": (False, False, False), "quadratic": (False, True, True)}
SIZES = (2, 3, 2)
SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["table", "quadratic", "function"])


def wave(x: np.ndarray, y: np.ndarray, z: np.ndarray, height: np.ndarray) -> np.ndarray:
    return height * np.sin(x + 2 * y) - 0.1 * z * y


def random_potential(kind: str, num_rows: int, rng: np.random.Generator) -> Potential:
    """A potential of three slots; a table may have impossible entries."""
    if kind == "table":
        log_table = rng.normal(size=(num_rows, *SIZES))
        log_table[rng.random(log_table.shape) < 0.1] = -np.inf
        return Table(log_table)
    if kind == "quadratic":
        A = rng.normal(size=(num_rows, 2, 2, 2))
        return ConditionalQuadratic(
            A, rng.normal(size=(num_rows, 2, 2)), rng.normal(size=(num_rows, 2))
        )
    return Function(wave, 1, 2, rng.normal(size=(num_rows, 1)))  # fmt: skip


def random_slots(kind: str, num_factors: int, rng: np.random.Generator) -> np.ndarray:
    """(factor, slot): states or reals, as the kind wants them."""
    states = np.stack([rng.integers(0, size, num_factors) for size in SIZES], axis=1).astype(float)
    reals = rng.normal(size=(num_factors, 3))
    return np.where(REALS_IN.get(kind, (False, True, True)), reals, states)


def log_values(potential: Potential, row: np.ndarray, values: np.ndarray) -> np.ndarray:
    return potential.log_value(row, list(values.T))


@given(KINDS, SEEDS, st.integers(1, 40), st.integers(1, 3))
def test_reducing_and_then_evaluating_is_evaluating(
    kind: str, seed: int, num_factors: int, num_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    potential = random_potential(kind, num_rows, rng)
    row = rng.integers(0, num_rows, num_factors).astype(np.int32)
    values = random_slots(kind, num_factors, rng)
    expected = log_values(potential, row, values)

    for count in (1, 2, 3):
        for slots in itertools.combinations(range(3), count):
            reduced, new_row = potential.reduce(row, slots, values[:, slots])

            rest = [slot for slot in range(3) if slot not in slots]
            assert len(reduced.slot_states) == len(rest)
            assert new_row.max() < reduced.num_rows
            actual = log_values(reduced, new_row, values[:, rest])
            np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@given(KINDS, SEEDS, st.permutations(range(3)))
def test_reducing_slot_by_slot_in_any_order_is_reducing_at_once(
    kind: str, seed: int, order: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    potential, row = random_potential(kind, 4, rng), np.arange(4, dtype=np.int32)
    values = random_slots(kind, 4, rng)
    expected = log_values(potential, row, values)

    remaining = [0, 1, 2]
    for slot in order:
        place = remaining.index(slot)
        potential, row = potential.reduce(row, (place,), values[:, [slot]])
        remaining.remove(slot)
        actual = log_values(potential, row, values[:, remaining])

        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)
    assert isinstance(potential, Table)


def test_factors_that_share_a_row_share_a_reduced_row() -> None:
    table = Table.shared(np.arange(6.0).reshape(2, 3))
    states = np.array([[0.0], [1.0], [1.0], [0.0], [2.0], [2.0]])

    reduced, row = table.reduce(np.zeros(6, dtype=np.int32), (1,), states)

    assert reduced.num_rows == 3
    assert (
        reduced.log_table[row].tolist() == table.log_table[0].T[states[:, 0].astype(int)].tolist()
    )


def test_a_function_that_fails_is_told_as_an_error_of_the_model() -> None:
    potential = Function(lambda v: 1.0 if v > 50 else 0.0, num_reals=1)

    with pytest.raises(ModelError, match=r"failed with ValueError.*np\.where stands for 'if'"):
        potential.log_value(np.zeros(2, dtype=np.int64), [np.array([1.0, 60.0])])
