"""The value of an expression as steps of a program, for compiled code."""

from __future__ import annotations

from collections.abc import Callable

from hylift.language.lowering.primitive import LOG_SIGMOID as SIGMOID
from hylift.language.lowering.primitive import primitive
from hylift.language.syntax import (
    Atom,
    Call,
    Comparison,
    Density,
    Expr,
    Normal,
    Number,
    Operation,
    Parameter,
    Power,
    Truth,
    Unary,
)
from hylift.numerics.kernels.programs import (
    ABS,
    ADD,
    AT_MOST,
    EQUAL,
    EXP,
    LEAST,
    LOG,
    LOG_SIGMOID,
    MOST,
    NEGATE,
    NORMAL,
    NOT,
    NUMBER,
    OVER,
    POWER,
    SQUARE,
    SUBTRACT,
    TIMES,
)

Steps = list[tuple[int, float]]

JOINS = {
    "+": ADD,
    "-": SUBTRACT,
    "*": TIMES,
    "/": OVER,
    "^": LEAST,
    "v": MOST,
    "=>": AT_MOST,
    "<=>": EQUAL,
}
CALLS = {
    "abs": ABS,
    "exp": EXP,
    "log": LOG,
    "min": LEAST,
    "max": MOST,
    SIGMOID: LOG_SIGMOID,
}


def steps_of(expr: Expr, leaf: Callable[[Expr], Steps]) -> Steps | None:
    """Steps whose value is that of `evaluate`, with truth as 1 and falsehood as 0; None where there
    are none, as for a user's function.

    leaf: the steps of atoms, parameters and comparisons between logical terms.
    """
    match expr:
        case Truth() | Number():
            return [(NUMBER, float(expr.value))]
        case Atom() | Parameter():
            return leaf(expr)
        case Comparison() if expr.is_logical:
            return leaf(expr)
        case Comparison() | Density():
            simpler = primitive(expr)
            return None if simpler is None else steps_of(simpler, leaf)
        case Unary(op=op, operand=operand):
            return _joined([operand], leaf, (NOT if op == "!" else NEGATE, 0))
        case Operation(op=op, operands=operands):
            return _joined(operands, leaf, (JOINS[op], 0))
        case Power(base=base, exponent=exponent):
            return _joined([base], leaf, (SQUARE, 0) if exponent == 2 else (POWER, exponent))
        case Call(function=function, arguments=arguments) if function in CALLS:
            return _joined(arguments, leaf, (CALLS[function], 0))
        case Normal(value=value, mean=mean, var=var):
            parts = [steps_of(part, leaf) for part in (value, mean, var)]
            known = [step for part in parts if part is not None for step in part]
            return None if None in parts else [*known, (NORMAL, 0)]
    return None


def _joined(
    operands: tuple[Expr, ...] | list[Expr], leaf: Callable[[Expr], Steps], step: tuple[int, float]
) -> Steps | None:
    """The steps of all operands; of two or more, a step joins each with those before, and of one,
    it changes that one, unless it is a join."""
    found: Steps = []
    for number, operand in enumerate(operands):
        steps = steps_of(operand, leaf)
        if steps is None:
            return None
        found += [*steps, step] if number else steps
    return [*found, step] if len(operands) == 1 and step[0] <= LOG_SIGMOID else found
