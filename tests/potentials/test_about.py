"""Quadratics about points of their own: the same function, with digits that survive far from 0."""

from fractions import Fraction

import numpy as np
import pytest

import hylift as hl
from hylift.errors import ModelError
from hylift.potentials import ConditionalQuadratic, Table
from hylift.potentials.about import QuadraticAbout


def drawn(seed: int, far: float = 3.0) -> QuadraticAbout:
    """Two rows, a discrete slot of three states, two real slots."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2, 3, 2, 2))
    b, c = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    c[1, 2] = -np.inf
    return QuadraticAbout(far * rng.normal(size=b.shape), A, b, c)


def exact_value(potential: QuadraticAbout, row: int, state: int, x: list[float]) -> float:
    """The log-value in rational numbers."""
    at = row, state
    z = [Fraction(value) - Fraction(o) for value, o in zip(x, potential.origin[at], strict=True)]
    total = Fraction(potential.c[at])
    for i, own in enumerate(z):
        total += Fraction(potential.b[at][i]) * own
        total += sum(Fraction(potential.A[at][i, j]) * own * other for j, other in enumerate(z))
    return float(total)


@pytest.mark.parametrize("seed", range(5))
def test_its_form_about_zero_has_the_same_values(seed: int) -> None:
    potential, x = drawn(seed), np.random.default_rng(seed).normal(size=(2, 7))

    about_zero = ConditionalQuadratic.of_form(potential.quadratic(), (3,))

    for row in range(2):
        for state in range(3):
            slots = [np.full(7, state), *x]
            rows = np.full(7, row)
            expected = about_zero.log_value(rows, slots)
            np.testing.assert_allclose(potential.log_value(rows, slots), expected, rtol=1e-10)


@pytest.mark.parametrize("known", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_known_slots_leave_the_same_values(known: tuple[int, ...]) -> None:
    potential, row = drawn(1), np.array([0, 1, 1])
    values = np.array([[0.0, 0.3, -2.0], [1.0, -1.5, 4.0], [2.0, 0.7, 0.1]])
    slots = [values[:, 0].astype(int), values[:, 1], values[:, 2]]
    left = [slot for slot in range(3) if slot not in known]

    rest, rows = potential.reduce(row, known, values[:, list(known)])

    found = rest.log_value(rows, [slots[slot] for slot in left])
    np.testing.assert_allclose(found, potential.log_value(row, slots), rtol=1e-10)
    assert isinstance(rest, Table if set(known) >= {1, 2} else QuadraticAbout)


def test_observed_values_near_a_far_origin_keep_their_digits() -> None:
    potential = drawn(2, far=1e12)
    x = potential.origin[0, 1] + np.array([1.0, -2.0])

    rest, rows = potential.reduce(np.array([0]), (1, 2), x[None])

    expected = exact_value(potential, 0, 1, x.tolist())
    assert rest.log_value(rows, [np.array([1])])[0] == pytest.approx(expected, abs=1e-10)


def test_exchanged_slots_exchange_their_origins() -> None:
    potential = drawn(3)
    rows, slots = np.array([0, 1]), [np.array([1, 0]), np.array([0.5, 2.0]), np.array([3.0, -1.0])]

    exchange = potential.exchange(1, 2)

    assert exchange is not None
    swapped = potential.with_flat(potential.flat[:, exchange])
    found = swapped.log_value(rows, [slots[0], slots[2], slots[1]])
    np.testing.assert_allclose(found, potential.log_value(rows, slots), rtol=1e-12)


def test_a_constant_added_to_its_constants_is_added_to_all_values() -> None:
    potential = drawn(4)
    flat = potential.flat.copy()
    flat[:, potential.constants] += 2.5
    rows, slots = np.array([0, 1]), [np.array([1, 0]), np.array([0.5, 2.0]), np.array([3.0, -1.0])]

    found = potential.with_flat(flat).log_value(rows, slots)

    np.testing.assert_allclose(found, potential.log_value(rows, slots) + 2.5, rtol=1e-12)


def test_an_origin_of_another_shape_is_refused() -> None:
    with pytest.raises(ModelError, match=r"origin per real slot, of the shape \(1, 2\) of b"):
        QuadraticAbout(np.zeros((1, 3)), -np.eye(2)[None], np.zeros((1, 2)), np.zeros(1))


@pytest.mark.parametrize("offset", [1e8, 1.7e9, 1e12])
def test_rules_with_far_means_are_written_about_them(offset: float) -> None:
    model = hl.parse(f"P(x)\nr(x): real\nnormal(r(x) | {offset!r} + P(x), 1)")

    graph = hl.ground(model, {"r": [(1, offset + 1)]}).condition()

    (table,) = (group.potential for group in graph.groups)
    odds = np.diff(table.log_value(np.zeros(2, dtype=int), [np.arange(2)]))
    assert odds == pytest.approx(0.5, abs=1e-12)
