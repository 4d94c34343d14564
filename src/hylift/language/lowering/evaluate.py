"""The value of an expression, in whatever algebra the values of its atoms come from."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.language.lowering.quadratic_form import NotQuadratic, QuadraticForm, product, quotient
from hylift.language.syntax import (
    Apply,
    Atom,
    Binary,
    Call,
    Comparison,
    Expr,
    Gaussian,
    Normal,
    Number,
    Parameter,
    Power,
    Truth,
    Unary,
)
from hylift.potentials.base import FloatArray

TruthArray = NDArray[np.bool_]
NumberValue = FloatArray | QuadraticForm
Value = TruthArray | NumberValue
LeafValue = Callable[[Expr], Any]


def evaluate(expr: Expr, leaf: LeafValue) -> Value:
    """The value of an expression without quantifiers: truths are Boolean arrays.

    `leaf` gives the values of atoms, parameters and comparisons between logical terms: arrays that
    broadcast together (Boolean for truths), or quadratic forms. What is not a quadratic form
    although some atom is one raises `NotQuadratic`. What is not defined, such as the logarithm of
    a negative number, is NaN; but whatever zero multiplies is zero.
    """
    with np.errstate(all="ignore"):
        return _value(expr, leaf)


def as_number(value: Value) -> NumberValue:
    """The value with truth as 1 and falsehood as 0."""
    return value if isinstance(value, QuadraticForm) else np.asarray(value, dtype=np.float64)


def _value(expr: Expr, leaf: LeafValue) -> Value:
    match expr:
        case Truth(value=truth):
            return np.asarray(truth)
        case Number(value=number):
            return np.asarray(number, dtype=np.float64)
        case Atom() | Parameter():
            return _leaf_value(leaf(expr))
        case Unary(op="!", operand=operand):
            return np.logical_not(_truth(operand, leaf))
        case Unary(op="-", operand=operand):
            return -_number(operand, leaf)
        case Binary(op="^" | "v" | "=>" | "<=>"):
            return _logic(expr, leaf)
        case Binary():
            return _arithmetic(expr, leaf)
        case Power(base=base, exponent=exponent):
            return _number(base, leaf) ** exponent
        case Comparison():
            return _leaf_value(leaf(expr)) if expr.is_logical else _comparison(expr, leaf)
        case Call(function=function, arguments=arguments):
            return _call(function, [_plain(argument, leaf) for argument in arguments])
        case Gaussian():
            return _gaussian(expr, leaf)
        case Normal():
            return _normal(expr, leaf)
        case Apply():
            return _apply(expr, leaf)
    raise TypeError(f"{type(expr).__name__} has no value by itself: expand quantifiers first")


def _leaf_value(value: Any) -> Value:
    return value if isinstance(value, QuadraticForm) else np.asarray(value)


def _number(expr: Expr, leaf: LeafValue) -> NumberValue:
    return as_number(_value(expr, leaf))


def _plain(expr: Expr, leaf: LeafValue) -> FloatArray:
    """The value of an expression that depends on no real slot, or `NotQuadratic`."""
    value = _number(expr, leaf)
    return value.constant if isinstance(value, QuadraticForm) else value


def _truth(expr: Expr, leaf: LeafValue) -> TruthArray:
    value = _value(expr, leaf)
    if isinstance(value, QuadraticForm) or value.dtype != np.bool_:
        raise TypeError(f"a number stands where a truth is needed: {expr}")
    return np.asarray(value, dtype=np.bool_)


def _logic(expr: Binary, leaf: LeafValue) -> TruthArray:
    left, right = _truth(expr.left, leaf), _truth(expr.right, leaf)
    match expr.op:
        case "^":
            return np.logical_and(left, right)
        case "v":
            return np.logical_or(left, right)
        case "=>":
            return np.logical_or(np.logical_not(left), right)
    return np.equal(left, right)


def _arithmetic(expr: Binary, leaf: LeafValue) -> NumberValue:
    left, right = _number(expr.left, leaf), _number(expr.right, leaf)
    match expr.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return _times(left, right)
    return _over(left, right)


def _times(left: NumberValue, right: NumberValue) -> NumberValue:
    if isinstance(left, QuadraticForm) or isinstance(right, QuadraticForm):
        return left * right
    return product(left, right)


def _over(left: NumberValue, right: NumberValue) -> NumberValue:
    if isinstance(left, QuadraticForm) or isinstance(right, QuadraticForm):
        return left / right
    return quotient(left, right)


def _comparison(expr: Comparison, leaf: LeafValue) -> NumberValue:
    """Soft comparison: -(a - b)², or log sigmoid(slope * difference)."""
    left, right = _number(expr.left, leaf), _number(expr.right, leaf)
    if expr.op == "=":
        return -((left - right) ** 2)
    if expr.op == "!=":
        raise ModelError("numbers cannot be compared with '!=': a soft 'not equal' has no meaning")
    difference = right - left if expr.op in ("<", "<=") else left - right
    if expr.slope is not None:
        difference = _times(_number(expr.slope, leaf), difference)
    if isinstance(difference, QuadraticForm):
        difference = difference.constant
    return np.asarray(-np.logaddexp(0.0, -difference))


def _call(function: str, arguments: list[FloatArray]) -> FloatArray:
    match function:
        case "abs":
            return np.abs(arguments[0])
        case "exp":
            return np.exp(arguments[0])
        case "log":
            return np.log(arguments[0])
        case "min":
            return reduce(np.minimum, arguments)
        case "max":
            return reduce(np.maximum, arguments)
    raise ModelError(f"unknown function '{function}'")


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
        total = total + _times(np.asarray(-0.5 * precision[i, j]), _times(z[i], z[j]))
    return total


def _normal(expr: Normal, leaf: LeafValue) -> NumberValue:
    """-(y - mean)² / 2 var - ½ log(2π var)."""
    var = _plain(expr.var, leaf)
    residual = _number(expr.value, leaf) - _number(expr.mean, leaf)
    return _over(-(residual**2), 2 * var) - 0.5 * np.log(2 * np.pi * var)


def _apply(expr: Apply, leaf: LeafValue) -> FloatArray:
    """What a user's function returns, if it fits the shapes of its arguments."""
    values = [_leaf_value(leaf(atom)) for atom in expr.arguments]
    arguments = [value for value in values if not isinstance(value, QuadraticForm)]
    if len(arguments) < len(values):
        raise NotQuadratic
    called = f"the function '{getattr(expr.function, '__name__', expr.function)}'"
    result = np.asarray(expr.function(*arguments))
    if result.dtype.kind not in "biuf":
        raise ModelError(f"{called} must return numbers, not {result.tolist()!r}")
    shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
    try:
        fits = np.broadcast_shapes(result.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ModelError(
            f"{called} returned the shape {result.shape} for arguments that broadcast to {shape}"
        )
    return result.astype(np.float64)
