"""Polynomials of degree at most two, with arrays over a grid of states as coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from hylift.potentials.base import FloatArray

Monomial = tuple[int, ...]
"""The real slots that are multiplied, in order: () is the constant, (0, 0) the square of slot 0."""

Operand: TypeAlias = "QuadraticForm | NDArray[np.bool_] | FloatArray | float"


class NotQuadratic(Exception):  # noqa: N818  (an answer, which the caller acts upon)
    """The result is not a polynomial of degree at most two."""


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticForm:
    """Σ coefficient * monomial: coefficients broadcast together; missing ones are zero."""

    coefficients: Mapping[Monomial, FloatArray]

    # Arrays leave arithmetic with forms to the forms.
    __array_ufunc__ = None

    @classmethod
    def slot(cls, index: int) -> QuadraticForm:
        """The value of one real slot."""
        return cls({(index,): np.ones(())})

    @property
    def is_constant(self) -> bool:
        return not any(self.coefficients)

    @property
    def constant(self) -> FloatArray:
        """The value of a form that depends on no real slot."""
        if not self.is_constant:
            raise NotQuadratic
        return self.coefficients.get((), np.zeros(()))

    def __add__(self, other: Operand) -> QuadraticForm:
        total = dict(self.coefficients)
        for monomial, coefficient in as_form(other).coefficients.items():
            here = total.get(monomial)
            total[monomial] = coefficient if here is None else here + coefficient
        return _without_zeros(total)

    __radd__ = __add__

    def __neg__(self) -> QuadraticForm:
        return QuadraticForm({m: -coefficient for m, coefficient in self.coefficients.items()})

    def __sub__(self, other: Operand) -> QuadraticForm:
        return self + -as_form(other)

    def __rsub__(self, other: Operand) -> QuadraticForm:
        return as_form(other) + -self

    def __mul__(self, other: Operand) -> QuadraticForm:
        total: dict[Monomial, FloatArray] = {}
        theirs = as_form(other).coefficients
        for left, ours in self.coefficients.items():
            for right, coefficient in theirs.items():
                monomial = tuple(sorted(left + right))
                term = product(ours, coefficient)
                total[monomial] = total[monomial] + term if monomial in total else term
        return _without_zeros(total)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> QuadraticForm:
        divisor = as_form(other).constant
        return _without_zeros({m: quotient(c, divisor) for m, c in self.coefficients.items()})

    def __rtruediv__(self, other: Operand) -> QuadraticForm:
        return as_form(other) / self

    def __pow__(self, exponent: float) -> QuadraticForm:
        if self.is_constant:
            return as_form(np.power(self.constant, exponent))
        if exponent == 2:
            return self * self
        if exponent in (0, 1):
            return self if exponent else as_form(1.0)
        raise NotQuadratic


NumberValue = QuadraticForm | FloatArray


def as_form(value: Operand) -> QuadraticForm:
    """The value itself, or the form that is this constant."""
    if isinstance(value, QuadraticForm):
        return value
    return _without_zeros({(): np.asarray(value, dtype=np.float64)})


@overload
def product(left: FloatArray, right: FloatArray) -> FloatArray: ...
@overload
def product(left: NumberValue, right: NumberValue) -> NumberValue: ...
def product(left: NumberValue, right: NumberValue) -> NumberValue:
    """left * right, and zero where either is zero, even if the other is infinite or undefined.

    So a truth value that multiplies a term switches it off where it is false.
    """
    if isinstance(left, QuadraticForm) or isinstance(right, QuadraticForm):
        return left * right
    result = np.asarray(left * right)
    if np.isfinite(result).all():
        return result
    return np.where((left == 0) | (right == 0), 0.0, result)


@overload
def quotient(left: FloatArray, right: FloatArray) -> FloatArray: ...
@overload
def quotient(left: NumberValue, right: NumberValue) -> NumberValue: ...
def quotient(left: NumberValue, right: NumberValue) -> NumberValue:
    """left / right, and zero where left is zero: left * (1 / right)."""
    if isinstance(left, QuadraticForm) or isinstance(right, QuadraticForm):
        return left / right
    result = np.asarray(left / right)
    if np.isfinite(result).all():
        return result
    return np.where(left == 0, 0.0, result)


def _without_zeros(coefficients: Mapping[Monomial, FloatArray]) -> QuadraticForm:
    """A form without the monomials that are zero everywhere."""
    kept = {monomial: array for monomial, array in coefficients.items() if np.any(array)}
    if any(len(monomial) > 2 for monomial in kept):
        raise NotQuadratic
    return QuadraticForm(kept)
