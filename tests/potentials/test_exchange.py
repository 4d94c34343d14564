"""Rows in one line, and slots that may be swapped."""

import itertools

import numpy as np
import pytest

from hylift.errors import ModelError
from hylift.potentials import (
    REAL,
    ConditionalQuadratic,
    Function,
    Potential,
    Table,
)

EXCHANGEABLE = {
    "equal tables": (Table, (3, 3, 3)),
    "unequal tables": (Table, (2, 3, 2)),
    "quadratics": (ConditionalQuadratic, (2, 3, 2, 0, 0, 0)),
    "quadratics of reals": (ConditionalQuadratic, (0, 0)),
    "quadratics of one real": (ConditionalQuadratic, (3, 3, 0)),
}


def random_rows(
    family: type[Table] | type[ConditionalQuadratic],
    slot_states: tuple[int, ...],
    num_rows: int,
    rng: np.random.Generator,
) -> Potential:
    """A potential of these slots, some entries of which are impossible."""
    states = tuple(size for size in slot_states if size != REAL)
    log_table = rng.normal(size=(num_rows, *states))
    log_table[rng.random(log_table.shape) < 0.2] = -np.inf
    if family is Table:
        return Table(log_table)
    num_reals = slot_states.count(REAL)
    A = rng.normal(size=(num_rows, *states, num_reals, num_reals))
    return ConditionalQuadratic(A, rng.normal(size=A.shape[:-1]), log_table)


def random_points(potential: Potential, rng: np.random.Generator) -> list[np.ndarray]:
    """Per slot: a value for each row."""
    return [
        rng.integers(0, size, potential.num_rows) if size else rng.normal(size=potential.num_rows)
        for size in potential.slot_states
    ]


@pytest.mark.parametrize("kind", EXCHANGEABLE)
def test_swapping_entries_is_swapping_slots(kind: str) -> None:
    rng = np.random.default_rng(1)
    family, slot_states = EXCHANGEABLE[kind]
    potential, row = random_rows(family, slot_states, 200, rng), np.arange(200)
    values = random_points(potential, rng)

    for i, j in itertools.product(range(len(slot_states)), repeat=2):
        order = potential.exchange(i, j)

        if slot_states[i] != slot_states[j]:
            assert order is None
            continue
        swapped = list(values)
        swapped[i], swapped[j] = values[j], values[i]
        exchanged = potential.with_flat(potential.flat[:, order])
        np.testing.assert_allclose(
            exchanged.log_value(row, values), potential.log_value(row, swapped), atol=1e-10
        )
        assert order[order].tolist() == list(range(potential.flat.shape[1]))


@pytest.mark.parametrize("kind", EXCHANGEABLE)
@pytest.mark.parametrize("num_rows", [0, 1, 5])
def test_a_potential_is_rebuilt_from_its_flat_rows(kind: str, num_rows: int) -> None:
    potential = random_rows(*EXCHANGEABLE[kind], num_rows, np.random.default_rng(2))

    rebuilt = potential.with_flat(potential.flat)

    assert potential.flat.shape[0] == num_rows
    assert rebuilt.signature == potential.signature
    for name in ("log_table",) if isinstance(potential, Table) else ("A", "b", "c"):
        np.testing.assert_array_equal(getattr(rebuilt, name), getattr(potential, name))
        assert getattr(rebuilt, name).flags.c_contiguous


def test_the_flat_rows_of_a_table_are_no_copy() -> None:
    table = Table(np.zeros((3, 2, 2)))

    assert np.shares_memory(table.flat, table.log_table)
    assert Table(np.zeros(4)).flat.shape == (4, 1)


@pytest.mark.parametrize("kind", EXCHANGEABLE)
def test_averaged_rows_have_averaged_log_values(kind: str) -> None:
    rng = np.random.default_rng(3)
    potential = random_rows(*EXCHANGEABLE[kind], 4, rng)
    slots = [np.broadcast_to(values[0], 4) for values in random_points(potential, rng)]

    average = potential.with_flat(potential.flat.mean(axis=0, keepdims=True))

    assert potential.averages
    expected = potential.log_value(np.arange(4), slots).mean()
    actual = average.log_value(np.array([0]), [slot[:1] for slot in slots])
    np.testing.assert_allclose(actual, [expected], atol=1e-10)


@pytest.mark.parametrize(
    "potential", [Table(np.zeros((2, 3))), ConditionalQuadratic.square(1.0), Function(np.sin, 0, 1)]
)
def test_rows_of_another_length_are_refused(potential: Potential) -> None:
    num_entries = potential.flat.shape[1]

    with pytest.raises(ModelError) as refusal:
        potential.with_flat(np.zeros((2, num_entries + 1)))

    assert str(refusal.value) == (
        f"rows of this potential have {num_entries} entries each, so `flat` is an array "
        f"(row, {num_entries}), not one of shape (2, {num_entries + 1})"
    )


# Symmetric functions


def distance(d: np.ndarray, x: np.ndarray, y: np.ndarray, height: np.ndarray) -> np.ndarray:
    return d + height * np.hypot(x, y)


def symmetric_function(num_rows: int = 3) -> Function:
    """Symmetric in its two states, and in its three reals."""
    return Function(
        lambda a, b, x, y, z, h: h * a * b - np.abs(x + y + z),
        2,
        3,
        np.arange(1.0, 1.0 + num_rows)[:, None],
        symmetric=((4, 2, 3), (0, 1)),
    )


def exchangeable(potential: Potential) -> set[tuple[int, int]]:
    pairs = itertools.combinations(range(len(potential.slot_states)), 2)
    return {pair for pair in pairs if potential.exchange(*pair) is not None}


def test_the_arguments_of_a_function_are_exchanged_where_it_says_so() -> None:
    potential = symmetric_function()

    assert exchangeable(potential) == {(0, 1), (2, 3), (2, 4), (3, 4)}
    assert potential.exchange(3, 2).tolist() == [0]
    assert potential.exchange(1, 1).tolist() == [0]
    assert exchangeable(Function(np.hypot, 0, 2)) == set()
    assert not potential.averages


def test_other_rows_of_a_function_have_the_same_symmetry() -> None:
    potential = symmetric_function()

    for other in (
        potential.take(np.array([2, 0])),
        potential.stack([potential]),
        potential.with_flat(np.array([[7.0]])),
    ):
        assert other.symmetric == ((0, 1), (2, 3, 4))
        assert other.signature == potential.signature


def test_observed_arguments_leave_their_symmetric_group() -> None:
    potential = symmetric_function()
    row = np.arange(3, dtype=np.int32)

    without_real, _ = potential.reduce(row, (3,), np.zeros((3, 1)))
    without_state, _ = without_real.reduce(row, (0,), np.zeros((3, 1)))

    assert without_real.symmetric_slots() == [[0, 1], [2, 3]]
    assert exchangeable(without_real) == {(0, 1), (2, 3)}
    assert without_state.symmetric_slots() == [[0], [1, 2]]
    assert exchangeable(without_state) == {(1, 2)}
    assert without_state.exchange(1, 2).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "slots", [s for n in range(1, 5) for s in itertools.combinations(range(5), n)], ids=str
)
def test_whichever_of_symmetric_arguments_is_observed_values_stay(slots: tuple[int, ...]) -> None:
    potential = Function(
        lambda a, b, x, y, z, p: np.cos(a * b + a + b) + x * z * (y + 1) + (x + z) * p,
        num_discrete=2,
        num_reals=3,
        parameters=np.array([[0.5], [0.7]]),
        symmetric=((0, 1), (2, 4)),
    )
    row, point = np.arange(2), np.array([1.0, 2.0, 0.3, 0.4, 0.9])
    left = [slot for slot in range(5) if slot not in slots]

    reduced, new_row = potential.reduce(row, slots, np.tile(point[list(slots)], (2, 1)))

    expected = potential.log_value(row, [np.full(2, value) for value in point])
    actual = reduced.log_value(new_row, [np.full(2, point[slot]) for slot in left])
    np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_a_symmetry_is_part_of_the_signature() -> None:
    plain, symmetric = Function(np.hypot, 0, 2), Function(np.hypot, 0, 2, symmetric=((0, 1),))

    assert plain.signature != symmetric.signature
    assert symmetric.signature == Function(np.hypot, 0, 2, symmetric=[[1, 0]]).signature
    assert plain.signature == Function(np.hypot, 0, 2, symmetric=((0,), ())).signature


@pytest.mark.parametrize(
    ("symmetric", "text"),
    [
        ((0, 1), "symmetric arguments are groups of positions, such as [(0, 1)], not (0, 1)"),
        ("01", "symmetric arguments are groups of positions, such as [(0, 1)], not '01'"),
        (
            ((0, 3),),
            "argument 3 cannot be symmetric: the potential 'distance' has the arguments 0 to ",
        ),
        (((-1, 1),), "argument -1 cannot be symmetric"),
        (((1, 2), (2, 1)), "argument 1 stands more than once among the symmetric ones"),
        (((1, 1),), "argument 1 stands more than once among the symmetric ones"),
        (((0, 1),), "the arguments (0, 1) cannot be symmetric: the first 1 are discrete, the oth"),
        (((1.0, 2.0),), "symmetric arguments are groups of positions, such as [(0, 1)]"),
    ],
)
def test_arguments_that_cannot_be_symmetric_are_refused(symmetric, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        Function(distance, 1, 2, [[1.0]], symmetric=symmetric)

    assert text in str(refusal.value)
