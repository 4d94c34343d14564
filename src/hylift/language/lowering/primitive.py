"""Soft comparisons and densities by simpler operations, for arrays and compiled code alike."""

from __future__ import annotations

from hylift.errors import ModelError
from hylift.language.syntax import (
    Call,
    Comparison,
    Density,
    Expr,
    Number,
    Operation,
    Power,
    Unary,
)

LOG_SIGMOID = "log_sigmoid"
"""A function that stands in no rule by itself."""


def primitive(expr: Comparison | Density) -> Expr | None:
    """An expression of the same value; None of exact comparisons, and of densities that are not of
    simpler operations."""
    match expr:
        case Comparison(is_exact=True):
            return None
        case Comparison(op="=", left=left, right=right):
            return Unary("-", Power(Operation("-", (left, right)), 2.0))
        case Comparison(op="!="):
            raise ModelError(
                "numbers cannot be compared with '!=': a soft 'not equal' has no meaning"
            )
        case Comparison(op=op, left=left, right=right, slope=slope):
            sides = (right, left) if op in ("<", "<=") else (left, right)
            difference = Operation("-", sides)
            reach = difference if slope is None else Operation("*", (slope, difference))
            return Call(LOG_SIGMOID, (reach,))
        case Density(name="bernoulli_logit", value=truth, parameters=(score,)):
            sign = Operation("-", (Operation("*", (Number(2.0), truth)), Number(1.0)))
            return Call(LOG_SIGMOID, (Operation("*", (sign, score)),))
    return None
