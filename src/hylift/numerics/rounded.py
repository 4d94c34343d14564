"""Numbers with bounds on their rounding errors, and certain minima of quadratics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Flags = NDArray[np.bool_]

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)

SPLIT = 2.0**27 + 1
"""Factor that splits a float into two halves, whose products are exact."""

UNDERFLOW = 1e-200
"""Products this small may have lost digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """Numbers, and how far at most the true ones are from them."""

    value: FloatArray
    error: FloatArray

    @property
    def is_zero(self) -> Flags:
        """True where the exact number is certainly 0."""
        return (self.value == 0) & (self.error == 0)

    def at(self, *index: int | slice) -> Rounded:
        """Entries along the last axes."""
        return Rounded(self.value[..., *index], self.error[..., *index])


def difference(x: FloatArray, y: FloatArray) -> Rounded:
    """x - y, with the very error of its rounding."""
    value = x - y
    taken = value - x
    return Rounded(value, np.abs((x - (value - taken)) - (y + taken)))


def least_value(A: Rounded, b: Rounded, c: Rounded) -> FloatArray:
    """(...): a lower bound on xᵀAx + bᵀx + c over all reals, tight up to rounding, or -inf.

    The quadratic is half of (x, 1)ᵀ M (x, 1), M = [[2A, b], [bᵀ, 2c]]. Minimising over the first
    real leaves M's Schur complement, and in the end twice the least value. Each real has to be
    curved (its diagonal entry certainly positive) or flat (its row exactly zero), otherwise the
    answer is -inf. Errors are bounded throughout, so that an almost flat direction never counts as
    flat: along it even the smallest slope changes the log-density by any amount. Entries that
    cancel are found by exact products, so that (x - y)² is flat along one direction.

    A: (..., real, real), symmetric; b: (..., real); c: (...), finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # Neither counts as curved or flat.
        form = Rounded(_form(A.value, b.value, c.value), _form(A.error, b.error, c.error))
        endless = np.zeros(c.value.shape, dtype=bool)
        while form.value.shape[-1] > 1:
            pivot, row = form.at(0, 0), form.at(0, slice(1, None))
            curved = pivot.value > pivot.error
            endless |= ~(curved | (pivot.is_zero & row.is_zero.all(axis=-1)))
            form = _minimised(form, curved)
        least = 0.5 * (form.value - form.error)[..., 0, 0]
    return np.where(endless | np.isnan(least), -np.inf, least)


def _form(A: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """The matrix [[2A, b], [bᵀ, 2c]]."""
    above = np.concatenate([2 * A, b[..., None]], axis=-1)
    below = np.concatenate([b, 2 * c[..., None]], axis=-1)
    return np.concatenate([above, below[..., None, :]], axis=-2)


def _minimised(form: Rounded, curved: Flags) -> Rounded:
    """The form of the other reals, at the least over the first where it is curved."""
    pivot = np.where(curved, form.value[..., 0, 0], 1.0)[..., None, None]
    least_pivot = pivot - np.where(curved, form.error[..., 0, 0], 0.0)[..., None, None]
    row = np.where(curved[..., None], form.value[..., 0, 1:], 0.0)
    size = np.abs(row) + np.where(curved[..., None], form.error[..., 0, 1:], 0.0)
    rest = form.at(slice(1, None), slice(1, None))

    left, right = row[..., :, None], row[..., None, :]
    taken = left / pivot * right
    value = rest.value - taken
    # Of a product and quotient, the value with all errors at their worst exceeds that without any
    # by more than any other; then come the roundings just made, of `most` itself too.
    most = size[..., :, None] * size[..., None, :] / least_pivot
    error = rest.error + (most - np.abs(taken)) + 8 * EPS * (most + np.abs(value)) + TINY
    untouched = (size[..., :, None] == 0) | (size[..., None, :] == 0)
    error = np.where(untouched, rest.error, error)

    exact = (form.error[..., :1, :] == 0).all(axis=-1)[..., None] & (rest.error == 0)
    cancels = exact & ~untouched & _same_products(pivot, rest.value, left, right)
    return Rounded(np.where(cancels, 0.0, value), np.where(cancels, 0.0, error))


def _same_products(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> Flags:
    """True where ab = cd exactly; False where that is unknown."""
    first, first_rest = _product(a, b)
    second, second_rest = _product(c, d)
    return (first == second) & (first_rest == second_rest) & (np.abs(first) > UNDERFLOW)


def _product(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """xy rounded, and what rounding took away (Dekker's product)."""
    product = x * y
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, rest


def _halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    scaled = SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high
