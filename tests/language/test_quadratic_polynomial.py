"""Arithmetic on quadratic forms is arithmetic on what they stand for."""

import numpy as np
import pytest

from hylift.language.lowering.evaluate import (
    NotQuadratic,
    QuadraticPolynomial,
    as_form,
    product,
    quotient,
)

X, Y = QuadraticPolynomial.slot(0), QuadraticPolynomial.slot(1)
GATE = np.array([False, True])


def at(form: QuadraticPolynomial, *reals: float) -> np.ndarray:
    """The value of a form, one per state."""
    terms = (c * np.prod([reals[i] for i in m]) for m, c in form.coefficients.items())
    return np.asarray(sum(terms, np.zeros(())))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (X + Y - 3.0, 2.0),
        (3.0 - X, 1.0),
        (-X * Y, -6.0),
        ((X - 2 * Y) ** 2, 16.0),
        (X * X + X * Y, 10.0),
        ((X + Y) / 2.0, 2.5),
        (1.0 / as_form(4.0), 0.25),
        (X**1, 2.0),
        (X**0, 1.0),
        (as_form(3.0) ** 3, 27.0),
    ],
)
def test_a_form_has_the_value_of_what_was_computed(
    form: QuadraticPolynomial, expected: float
) -> None:
    assert at(form, 2.0, 3.0) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(50))
def test_random_expressions_agree_with_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=2)
    arrays = rng.normal(size=(4, 2)).round(1)

    def compute(x: object, y: object) -> object:
        linear = arrays[0] * x - y * arrays[1] + 2.0  # type: ignore[operator]
        return (linear * (arrays[2] + x) - (1.0 - y) ** 2) / 4.0 * arrays[3]  # type: ignore[operator]

    form = compute(X, Y)

    assert isinstance(form, QuadraticPolynomial)
    np.testing.assert_allclose(at(form, x, y), compute(x, y), atol=1e-12)


def test_what_is_zero_in_every_state_is_not_there() -> None:
    assert (X - X).is_constant
    assert (GATE * X * ~GATE).is_constant
    assert (GATE * X**2 * (~GATE * Y)).coefficients == {}


def test_coefficients_stay_as_small_as_they_are() -> None:
    rows, states = np.ones((1000, 1)), np.arange(3.0)

    form = rows * X + states * Y

    assert form.coefficients[(0,)].shape == (1000, 1)
    assert form.coefficients[(1,)].shape == (3,)
    assert set(form.coefficients) == {(0,), (1,)}


@pytest.mark.parametrize(
    "compute",
    [
        lambda: X**2 * Y,
        lambda: X**3,
        lambda: X**0.5,
        lambda: 1.0 / X,
        lambda: X / Y,
        lambda: (GATE * X) ** 2 * X,
        lambda: X.constant,
    ],
)
def test_what_is_not_quadratic_says_so(compute: object) -> None:
    with pytest.raises(NotQuadratic):
        compute()  # type: ignore[operator]


def test_zero_times_anything_is_zero() -> None:
    with np.errstate(all="ignore"):
        values = product(np.array([0.0, 0.0, 2.0]), np.array([np.inf, np.nan, -np.inf]))
        ratio = quotient(np.array([0.0, 1.0]), np.array([0.0, 4.0]))

    assert values.tolist() == [0.0, 0.0, -np.inf]
    assert ratio.tolist() == [0.0, 0.25]
