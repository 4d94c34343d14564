"""Simplification of formulas before lowering: known truth values and quantifiers expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from hylift.language.lowering.evaluate import QuadraticPolynomial, evaluate
from hylift.language.report import fail
from hylift.language.syntax import (
    COMPARISONS,
    OPERATORS,
    Apply,
    Atom,
    BinaryOp,
    Call,
    Comparison,
    Constant,
    Expr,
    Number,
    Operation,
    Place,
    Power,
    Quantified,
    Quantifier,
    Term,
    Truth,
    Unary,
    Variable,
)
from hylift.language.walk import children, free_variables, rebuild

# Known truth values.


def fold(expr: Expr, known: Mapping[Expr, bool]) -> Expr:
    """The expression simplified, given the truth of some atoms and comparisons of logical terms.

    The result has the same value, and is a `Truth` or `Number` if nothing that is left could change
    it. A truth value may replace a number that is 0 or 1 (`A * B` is `B` if A is true), because
    truth values count as numbers; a number never replaces a truth value. Undefined values, such as
    the logarithm of -1, stay as they are, and so does a user's function of unknown atoms.
    """
    if isinstance(expr, Atom) or (isinstance(expr, Comparison) and expr.is_logical):
        return Truth(known[expr], place=expr.place) if expr in known else expr
    if isinstance(expr, Apply):
        return _constant(expr, known) if all(atom in known for atom in expr.arguments) else expr
    if isinstance(expr, Quantified):
        known = {e: v for e, v in known.items() if not _mentions(e, expr.variables)}
    expr = rebuild(expr, lambda part: fold(part, known))
    parts = children(expr)
    if parts and not isinstance(expr, Quantified) and all(map(_is_constant, parts)):
        return _constant(expr, {})
    return _simplified(expr)


def _mentions(expr: Expr, variables: Sequence[str]) -> bool:
    return any(name in variables for name in free_variables(expr))


def _is_constant(expr: Expr) -> bool:
    return isinstance(expr, Truth | Number)


def _constant(expr: Expr, known: Mapping[Expr, bool]) -> Expr:
    """The value of an expression without unknowns, unless it is undefined."""
    value = evaluate(expr, lambda node: np.asarray(known[node]))
    assert not isinstance(value, QuadraticPolynomial)  # no leaf is one
    if value.dtype == np.bool_:
        return Truth(bool(value), place=expr.place)
    return expr if np.isnan(value) else Number(float(value), place=expr.place)


def _simplified(expr: Expr) -> Expr:
    """The expression without the parts that known operands make redundant."""
    match expr:
        case Unary(op=op, operand=Unary(op=inner, operand=operand)) if op == inner:
            return operand
        case Operation(op=op) if OPERATORS[op].is_chain:
            return _simplified_chain(expr)
        case Operation():
            return _simplified_pair(expr, *expr.operands)
        case Power(exponent=0.0):
            return Number(1.0, place=expr.place)
        case Power(base=base, exponent=1.0):
            return base
        case Quantified(quantifier="EXIST", body=Truth(value=False)):
            return expr.body
        case Quantified(quantifier="SUM" | "COUNT", body=body) if _is(body, 0):
            return Number(0.0, place=expr.place)
        case Quantified(quantifier="FORALL", body=Truth(value=True)):
            return expr.body
    return expr


def _simplified_chain(expr: Operation) -> Expr:
    """A chain without its neutral operands; `true v a` is true."""
    neutral = 1 if expr.op == "^" else 0
    operands = tuple(operand for operand in expr.operands if not _is(operand, neutral))
    if expr.is_logic:
        for operand in operands:
            if isinstance(operand, Truth):
                return operand
    if len(operands) == len(expr.operands):
        return expr
    return operands[0] if len(operands) == 1 else replace(expr, operands=operands)


def _simplified_pair(expr: Operation, left: Expr, right: Expr) -> Expr:
    match expr.op:
        case "=>" if _is(left, 1) or _is(right, 1):
            return right
        case "=>" if _is(left, 0):
            return Truth(True, place=expr.place)
        case "=>" | "<=>" if _is(right, 0):
            return _simplified(Unary("!", left, place=left.place))
        case "<=>" if _is(left, 0):
            return _simplified(Unary("!", right, place=right.place))
        case "-" if _is(left, 0):
            return _simplified(Unary("-", right, place=expr.place))
        case "*" | "/" if _is(left, 0):
            return Number(0.0, place=expr.place)
        case "*" if _is(right, 0):
            return Number(0.0, place=expr.place)
        case "*" | "<=>" if _is(left, 1):
            return right
        case "*" | "/" | "<=>" if _is(right, 1):
            return left
        case "-" if _is(right, 0):
            return left
    return expr


def _is(expr: Expr, number: float) -> bool:
    return isinstance(expr, Truth | Number) and expr.value == number


# Quantifiers.


def expand(expr: Expr, constants: Mapping[str, Sequence[str]], types: Mapping[str, str]) -> Expr:
    """The expression with its quantifiers expanded over the constants of each type, in order.

    types: the type of every quantified variable. `t+1` is the next constant of its type; choices
    for which there is none are left out. A comparison between two constants of a type is decided
    by their order.
    """
    if not isinstance(expr, Quantified):
        return rebuild(expr, lambda part: expand(part, constants, types))
    orders = [_Order.of(constants[types[name]]) for name in expr.variables]
    bodies = []
    for positions in product(*(range(len(order.constants)) for order in orders)):
        chosen = dict(zip(expr.variables, zip(orders, positions, strict=True), strict=True))
        with suppress(_OffTheEndError):
            bodies.append(expand(_placed(expr.body, chosen), constants, types))
    whole = joined(expr.quantifier, tuple(bodies), expr.place)
    if whole is None:
        fail(f"{expr.quantifier} runs over nothing, and has no value", expr.place)
    return whole


_CHAINS: dict[Quantifier, BinaryOp] = {
    "EXIST": "v",
    "FORALL": "^",
    "SUM": "+",
    "AVG": "+",
    "COUNT": "+",
}


def joined(
    quantifier: Quantifier, bodies: tuple[Expr, ...], place: Place | None = None
) -> Expr | None:
    """A quantifier over these bodies, written out; None if it is of nothing and has no value."""
    if not bodies:
        of_nothing: dict[Quantifier, Expr] = {
            "EXIST": Truth(False, place=place),
            "FORALL": Truth(True, place=place),
            "SUM": Number(0.0, place=place),
            "COUNT": Number(0.0, place=place),
        }
        return of_nothing.get(quantifier)
    if quantifier in ("MIN", "MAX"):
        return bodies[0] if len(bodies) == 1 else Call(quantifier.lower(), bodies, place=place)
    whole = bodies[0]
    if len(bodies) > 1:
        whole = Operation(_CHAINS[quantifier], bodies, place=place)
    if quantifier == "AVG":
        return Operation("/", (whole, Number(float(len(bodies)))), place=place)
    return whole


@dataclass(frozen=True, slots=True)
class _Order:
    """The constants of a type and their positions."""

    constants: Sequence[str]
    position: Mapping[str, int]

    @classmethod
    def of(cls, constants: Sequence[str]) -> _Order:
        return cls(constants, {name: i for i, name in enumerate(constants)})


_Chosen = Mapping[str, tuple[_Order, int]]
"""Per variable: the order of its type, and the position of its constant."""


class _OffTheEndError(Exception):
    """A neighbour such as `t+1` that does not exist."""


def _placed(expr: Expr, chosen: _Chosen) -> Expr:
    """The expression with constants in place of the chosen variables, shifted or not."""
    if isinstance(expr, Quantified):
        chosen = {name: choice for name, choice in chosen.items() if name not in expr.variables}
    if isinstance(expr, Atom):
        return replace(expr, arguments=tuple(_placed_term(t, chosen) for t in expr.arguments))
    if isinstance(expr, Comparison):
        return _placed_comparison(expr, chosen)
    return rebuild(expr, lambda part: _placed(part, chosen))


def _placed_term(term: Term, chosen: _Chosen) -> Term:
    if isinstance(term, Constant) or term.name not in chosen:
        return term
    order, position = chosen[term.name]
    if not 0 <= position + term.shift < len(order.constants):
        raise _OffTheEndError
    return Constant(order.constants[position + term.shift], place=term.place)


def _placed_comparison(expr: Comparison, chosen: _Chosen) -> Expr:
    if not isinstance(expr.left, Term) or not isinstance(expr.right, Term):
        return rebuild(expr, lambda part: _placed(part, chosen))
    left, right = _placed_term(expr.left, chosen), _placed_term(expr.right, chosen)
    placed = replace(expr, left=left, right=right)
    if placed == expr or not (isinstance(left, Constant) and isinstance(right, Constant)):
        return placed
    sides = (side.name for side in (expr.left, expr.right) if isinstance(side, Variable))
    position = next(chosen[name][0].position for name in sides if name in chosen)
    if left.name not in position or right.name not in position:
        return placed
    holds = COMPARISONS[expr.op](position[left.name], position[right.name])
    return Truth(holds, place=expr.place)
