"""Formulas made smaller before they are lowered: quantifiers written out, known truths put in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from hylift.language.lowering.evaluate import evaluate
from hylift.language.lowering.quadratic_form import QuadraticForm
from hylift.language.syntax import (
    Apply,
    Atom,
    Binary,
    Comparison,
    Constant,
    Expr,
    Number,
    Power,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
)
from hylift.language.walk import balanced, children, free_variables, rebuild

# Known truths put in.


def fold(expr: Expr, known: Mapping[Expr, bool]) -> Expr:
    """The expression with some atoms and comparisons of logical terms known to be true or false.

    The result has the same value, and is a `Truth` or `Number` as soon as nothing that is left
    could change it. A truth may come to stand for a number that is 0 or 1 (`A * B` is `B` once A
    is known to be true), because truths count as numbers wherever numbers stand; a number never
    comes to stand for a truth. What has no value, such as the logarithm of -1, stays as it is, and
    so does a user's function of atoms that are not all known.
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
    """The value of an expression that depends on nothing, unless it has none."""
    value = evaluate(expr, lambda node: np.asarray(known[node]))
    assert not isinstance(value, QuadraticForm)  # no leaf is one
    if value.dtype == np.bool_:
        return Truth(bool(value), place=expr.place)
    return expr if np.isnan(value) else Number(float(value), place=expr.place)


def _simplified(expr: Expr) -> Expr:
    """The expression without the parts that known operands make superfluous."""
    match expr:
        case Unary(op=op, operand=Unary(op=inner, operand=operand)) if op == inner:
            return operand
        case Binary(op="^" | "v" | "=>" | "<=>"):
            return _simplified_logic(expr)
        case Binary():
            return _simplified_arithmetic(expr)
        case Power(exponent=0.0):
            return Number(1.0, place=expr.place)
        case Power(base=base, exponent=1.0):
            return base
        case Quantified(quantifier="EXIST", body=Truth(value=False)):
            return expr.body
        case Quantified(quantifier="FORALL", body=Truth(value=True)):
            return expr.body
    return expr


def _simplified_logic(expr: Binary) -> Expr:
    left, right = expr.left, expr.right
    match expr.op, left, right:
        case "=>", Truth(value=value), _:
            return right if value else Truth(True, place=expr.place)
        case "=>", _, Truth(value=value):
            return right if value else _not(left)
        case "<=>", Truth(value=value), other:
            return other if value else _not(other)
        case "<=>", other, Truth(value=value):
            return other if value else _not(other)
        case ("^", Truth(value=value) as truth, other) | ("^", other, Truth(value=value) as truth):
            return other if value else truth
        case ("v", Truth(value=value) as truth, other) | ("v", other, Truth(value=value) as truth):
            return truth if value else other
    return expr


def _not(expr: Expr) -> Expr:
    return _simplified(Unary("!", expr, place=expr.place))


def _simplified_arithmetic(expr: Binary) -> Expr:
    left, right = expr.left, expr.right
    match expr.op:
        case "+" if _is(left, 0):
            return right
        case "+" | "-" if _is(right, 0):
            return left
        case "-" if _is(left, 0):
            return _simplified(Unary("-", right, place=expr.place))
        case "*" if _is(left, 0) or _is(right, 0):
            return Number(0.0, place=expr.place)
        case "*" if _is(left, 1):
            return right
        case "*" | "/" if _is(right, 1):
            return left
        case "/" if _is(left, 0):
            return Number(0.0, place=expr.place)
    return expr


def _is(expr: Expr, number: float) -> bool:
    return isinstance(expr, Truth | Number) and expr.value == number


# Quantifiers written out.


def expand(expr: Expr, constants: Mapping[str, Sequence[str]], types: Mapping[str, str]) -> Expr:
    """The expression with EXIST and FORALL written out over the constants of each type, in order.

    `types` has the type of every quantified variable. `t+1` is the next constant of its type;
    where there is none, that choice of constants is left out. A comparison that comes to stand
    between two constants of a type is decided by their order in it.
    """
    if not isinstance(expr, Quantified):
        return rebuild(expr, lambda part: expand(part, constants, types))
    orders = [_Order.of(constants[types[name]]) for name in expr.variables]
    bodies = []
    for positions in product(*(range(len(order.constants)) for order in orders)):
        chosen = dict(zip(expr.variables, zip(orders, positions, strict=True), strict=True))
        with suppress(_OffTheEndError):
            bodies.append(expand(_placed(expr.body, chosen), constants, types))
    is_any = expr.quantifier == "EXIST"
    if not bodies:
        return Truth(not is_any, place=expr.place)
    return balanced("v" if is_any else "^", bodies, expr.place)


@dataclass(frozen=True, slots=True)
class _Order:
    """The constants of a type and their positions."""

    constants: Sequence[str]
    position: Mapping[str, int]

    @classmethod
    def of(cls, constants: Sequence[str]) -> _Order:
        return cls(constants, {name: i for i, name in enumerate(constants)})


_Chosen = Mapping[str, tuple[_Order, int]]
"""Per variable: its type, and the position of the constant it stands for."""


class _OffTheEndError(Exception):
    """A neighbour such as `t+1` that its type does not have."""


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
    holds = _COMPARE[expr.op](position[left.name], position[right.name])
    return Truth(holds, place=expr.place)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
