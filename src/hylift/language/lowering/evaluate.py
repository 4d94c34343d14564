"""The value of an expression: an array, or a quadratic form in the real slots of a factor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.language.lowering.primitive import LOG_SIGMOID, primitive
from hylift.language.syntax import (
    COMPARISONS,
    DENSITIES,
    POSITIVE,
    Apply,
    Atom,
    Call,
    Categorical,
    Comparison,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Parameter,
    Power,
    Probabilities,
    Truth,
    Unary,
    Variable,
)
from hylift.language.walk import atoms
from hylift.potentials.base import FloatArray

TruthArray = NDArray[np.bool_]

Monomial = tuple[int, ...]
"""The real slots that are multiplied, in order: () is the constant, (0, 0) the square of slot 0."""

Operand: TypeAlias = "QuadraticPolynomial | NDArray[np.bool_] | FloatArray | float"


class NotQuadratic(Exception):  # noqa: N818  (an answer, which the caller acts upon)
    """The result is no polynomial of degree at most two."""


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticPolynomial:
    """Σ coefficient * monomial: coefficients broadcast together; missing ones are zero."""

    coefficients: Mapping[Monomial, FloatArray]

    # Arrays leave arithmetic with forms to the forms.
    __array_ufunc__ = None

    @classmethod
    def slot(cls, index: int) -> QuadraticPolynomial:
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

    def __add__(self, other: Operand) -> QuadraticPolynomial:
        total = dict(self.coefficients)
        for monomial, coefficient in as_form(other).coefficients.items():
            here = total.get(monomial)
            total[monomial] = coefficient if here is None else here + coefficient
        return _without_zeros(total)

    __radd__ = __add__

    def __neg__(self) -> QuadraticPolynomial:
        return QuadraticPolynomial(
            {m: -coefficient for m, coefficient in self.coefficients.items()}
        )

    def __sub__(self, other: Operand) -> QuadraticPolynomial:
        return self + -as_form(other)

    def __rsub__(self, other: Operand) -> QuadraticPolynomial:
        return as_form(other) + -self

    def __mul__(self, other: Operand) -> QuadraticPolynomial:
        total: dict[Monomial, FloatArray] = {}
        theirs = as_form(other).coefficients
        for left, ours in self.coefficients.items():
            for right, coefficient in theirs.items():
                monomial = tuple(sorted(left + right))
                term = product(ours, coefficient)
                total[monomial] = total[monomial] + term if monomial in total else term
        return _without_zeros(total)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> QuadraticPolynomial:
        divisor = as_form(other).constant
        return _without_zeros({m: quotient(c, divisor) for m, c in self.coefficients.items()})

    def __rtruediv__(self, other: Operand) -> QuadraticPolynomial:
        return as_form(other) / self

    def __pow__(self, exponent: float) -> QuadraticPolynomial:
        if self.is_constant:
            return as_form(np.power(self.constant, exponent))
        if exponent == 2:
            return self * self
        if exponent in (0, 1):
            return self if exponent else as_form(1.0)
        raise NotQuadratic


NumberValue = QuadraticPolynomial | FloatArray


def as_form(value: Operand) -> QuadraticPolynomial:
    """The value itself, or the form that is this constant."""
    if isinstance(value, QuadraticPolynomial):
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
    if isinstance(left, QuadraticPolynomial) or isinstance(right, QuadraticPolynomial):
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
    if isinstance(left, QuadraticPolynomial) or isinstance(right, QuadraticPolynomial):
        return left / right
    result = np.asarray(left / right)
    if np.isfinite(result).all():
        return result
    return np.where(left == 0, 0.0, result)


def _without_zeros(coefficients: Mapping[Monomial, FloatArray]) -> QuadraticPolynomial:
    """A form without the monomials that are zero everywhere."""
    kept = {monomial: array for monomial, array in coefficients.items() if np.any(array)}
    if any(len(monomial) > 2 for monomial in kept):
        raise NotQuadratic
    return QuadraticPolynomial(kept)


# Expressions.

Value = TruthArray | NumberValue
LeafValue = Callable[[Expr], Any]


def evaluate(
    expr: Expr, leaf: LeafValue, *, overflow: Literal["ignore", "raise"] = "ignore"
) -> Value:
    """The value of an expression without quantifiers; truth values are Boolean arrays.

    leaf: the values of atoms, parameters and comparisons between logical terms, as arrays that
    broadcast together (Boolean for truth values) or quadratic forms. Raises `NotQuadratic` if the
    value depends on a quadratic form but is none. Undefined values, such as the logarithm of a
    negative number, are NaN; but zero times anything is zero.
    overflow: 'raise' for a `FloatingPointError` where numbers are too large
    """
    with np.errstate(all="ignore", over=overflow):
        return _value(expr, leaf)


def as_number(value: Value) -> NumberValue:
    """The value with truth as 1 and falsehood as 0."""
    return value if isinstance(value, QuadraticPolynomial) else np.asarray(value, dtype=np.float64)


def _value(expr: Expr, leaf: LeafValue) -> Value:
    match expr:
        case Truth(value=truth):
            return np.asarray(truth)
        case Number(value=number):
            return np.asarray(number, dtype=np.float64)
        case Atom() | Parameter() | Variable():
            return _leaf_value(leaf(expr))
        case Unary(op="!", operand=operand):
            return np.logical_not(_truth(operand, leaf))
        case Unary(op="-", operand=operand):
            return -_number(operand, leaf)
        case Operation(op=op, operands=operands) if expr.is_logic:
            return reduce(_LOGIC[op], (_truth(operand, leaf) for operand in operands))
        case Operation(op="*", operands=(left, right)):
            return _times(left, right, leaf)
        case Operation(op=op, operands=operands):
            return reduce(_ARITHMETIC[op], (_number(operand, leaf) for operand in operands))
        case Power(base=base, exponent=exponent):
            return _number(base, leaf) ** exponent
        case Comparison() if expr.is_logical:
            return _leaf_value(leaf(expr))
        case Comparison(op=op, left=left, right=right, is_exact=True):
            return np.asarray(COMPARISONS[op](_plain(left, leaf), _plain(right, leaf)))
        case Comparison() | Density() if (simpler := primitive(expr)) is not None:
            return _value(simpler, leaf)
        case Call(function=function, arguments=arguments):
            return _call(function, [_plain(argument, leaf) for argument in arguments])
        case Gaussian():
            return _gaussian(expr, leaf)
        case Normal():
            return _normal(expr, leaf)
        case Density():
            return _density(expr, leaf)
        case Categorical(table=Probabilities(log=log)):
            states = (_plain(part, leaf).astype(np.int64) for part in expr.subjects)
            return np.asarray(log[tuple(states)])
        case Apply():
            return _apply(expr, leaf)
    raise TypeError(f"{type(expr).__name__} has no value by itself: expand quantifiers first")


def _times(left: Expr, right: Expr, leaf: LeafValue) -> NumberValue:
    """left * right, which is zero where one of them is zero, even if the other is not quadratic."""
    found = []
    for expr in (left, right):
        try:
            value = _number(expr, leaf)
        except NotQuadratic:
            continue
        if not isinstance(value, QuadraticPolynomial) and not value.any():
            return value
        found.append(value)
    if len(found) < 2:
        raise NotQuadratic
    return product(*found)


def _leaf_value(value: Any) -> Value:
    return value if isinstance(value, QuadraticPolynomial) else np.asarray(value)


def _number(expr: Expr, leaf: LeafValue) -> NumberValue:
    return as_number(_value(expr, leaf))


def _plain(expr: Expr, leaf: LeafValue) -> FloatArray:
    """The value of an expression that depends on no real slot, or `NotQuadratic`."""
    value = _number(expr, leaf)
    return value.constant if isinstance(value, QuadraticPolynomial) else value


def _truth(expr: Expr, leaf: LeafValue) -> TruthArray:
    value = np.asarray(_value(expr, leaf))
    if value.dtype != np.bool_:
        raise TypeError(f"a number stands where a truth is needed: {expr}")
    return value


_LOGIC: dict[str, Callable[[TruthArray, TruthArray], TruthArray]] = {
    "^": np.logical_and,
    "v": np.logical_or,
    "=>": np.less_equal,  # false < true
    "<=>": np.equal,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], NumberValue]] = {
    "+": operator.add,
    "-": operator.sub,
    "/": quotient,
}


def _call(function: str, arguments: list[FloatArray]) -> FloatArray:
    if function not in _FUNCTIONS:
        raise ModelError(f"unknown function '{function}'")
    return _FUNCTIONS[function](*arguments)


_FUNCTIONS: dict[str, Callable[..., FloatArray]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "min": lambda *arguments: reduce(np.minimum, arguments),
    "max": lambda *arguments: reduce(np.maximum, arguments),
    LOG_SIGMOID: lambda reach: np.asarray(-np.logaddexp(0.0, -reach)),
}


def _gaussian(expr: Gaussian, leaf: LeafValue) -> NumberValue:
    """-½ Σ P_ij z_i z_j, where P is the inverse of the covariance."""
    cov = np.array([[float(_plain(entry, leaf)) for entry in row] for row in expr.cov])
    try:
        np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise ModelError(f"cov={cov.tolist()} of gaussian is not positive definite") from None
    precision = np.linalg.inv(cov)
    z = [_number(value, leaf) for value in expr.values]
    for i, mean in enumerate(expr.mean):
        z[i] = z[i] - _plain(mean, leaf)
    total: NumberValue = np.zeros(())
    for i, j in np.ndindex(precision.shape):
        total = total + product(np.asarray(-0.5 * precision[i, j]), product(z[i], z[j]))
    return total


LEAST_VARIANCE = 1e-280
"""Below it, a variance that depends on atoms, and is positive by its form, has underflowed: all
values are impossible."""


def _normal(expr: Normal, leaf: LeafValue) -> NumberValue:
    """-(y - mean)² / 2 var - ½ log(2π var); impossible where a hidden variance is 0."""
    var = _plain(expr.var, leaf)
    residual = _number(expr.value, leaf) - _number(expr.mean, leaf)
    none = np.zeros(var.shape, bool)
    if not isinstance(expr.var, Number | Parameter) and _is_positive(expr.var, leaf):
        none = var < LEAST_VARIANCE
    if isinstance(residual, np.ndarray):
        none = none | (var == 0)
    if not none.any():
        return quotient(-(residual**2), 2 * var) - 0.5 * np.log(2 * np.pi * var)
    safe = np.where(none, 1.0, var)
    constant = np.where(none, -np.inf, -0.5 * np.log(2 * np.pi * safe))
    return product(-(residual**2), np.where(none, 0.0, 0.5 / safe)) + constant


def _is_positive(expr: Expr, leaf: LeafValue) -> bool:
    """True for a number that is positive whatever its atoms are, such as `2 * exp(x)`."""
    match expr:
        case Number() | Parameter():
            return bool(np.all(_plain(expr, leaf) > 0))
        case Call(function="exp"):
            return True
        case Power(base=base):
            return _is_positive(base, leaf)
        case Operation(op="+" | "*" | "/", operands=operands):
            return all(_is_positive(operand, leaf) for operand in operands)
    return False


def _may_vanish(expr: Expr, leaf: LeafValue) -> bool:
    """True for a parameter that is 0 at the bound of a real, or by underflow; not where truth
    values make it 0."""
    is_number = (np.asarray(leaf(atom)).dtype != np.bool_ for atom in atoms(expr))
    return any(is_number) or _is_positive(expr, leaf)


def _density(expr: Density, leaf: LeafValue) -> NumberValue:
    """Quadratic where it is a straight line; a count or a truth is never a real slot."""
    from hylift.language.lowering.densities import log_density

    parameters = [_plain(parameter, leaf) for parameter in expr.parameters]
    value = _number(expr.value, leaf)
    is_line = expr.name == "exponential" and isinstance(expr.value, Atom)  # within its support
    if isinstance(value, QuadraticPolynomial) and is_line:
        rate = np.where(parameters[0] > 0, parameters[0], np.nan)
        return np.log(rate) - product(rate, value)
    none: Any = False
    for place, name in enumerate(DENSITIES[expr.name]):
        if (
            name in POSITIVE
            and expr.name != "poisson"
            and _may_vanish(expr.parameters[place], leaf)
        ):
            zero = parameters[place] == 0  # where the density goes to 0
            none, parameters[place] = none | zero, np.where(zero, 1.0, parameters[place])
    return np.where(none, -np.inf, log_density(expr.name, _plain(expr.value, leaf), *parameters))


def _apply(expr: Apply, leaf: LeafValue) -> FloatArray:
    """The result of a user's function, if it fits the shapes of its arguments."""
    values = [_leaf_value(leaf(atom)) for atom in expr.arguments]
    arguments = [value for value in values if not isinstance(value, QuadraticPolynomial)]
    if len(arguments) < len(values):
        raise NotQuadratic
    called = f"the function '{getattr(expr.function, '__name__', expr.function)}'"
    result = np.asarray(expr.function(*arguments))
    if result.dtype.kind not in "biuf":
        raise ModelError(f"{called} must return numbers, not {result.tolist()!r}")
    shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
    if result.ndim > len(shape) or any(
        size not in (1, whole) for size, whole in zip(result.shape[::-1], shape[::-1], strict=False)
    ):
        raise ModelError(
            f"{called} returned the shape {result.shape} for arguments that broadcast to {shape}"
        )
    return result.astype(np.float64)
