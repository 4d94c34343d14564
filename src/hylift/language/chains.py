"""Long chains of one operator, `a + b + c + …`, as trees that are not deep.

A chain of at most `LONGEST_SPINE` operands leans to the left, as it is read; a longer one is cut in
halves, so that what works on expressions need not go down one level per operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hylift.language.syntax import Binary, BinaryOp, Expr, Place
from hylift.language.walk import MAX_DEPTH, children, rebuild

ASSOCIATIVE: frozenset[BinaryOp] = frozenset({"+", "v", "^"})
"""The operators whose chains mean the same however they are cut."""

LONGEST_SPINE = 50
"""Most operands of a chain that leans to the left."""

LONGEST_CHAIN = 1000
"""Most operands of a chain."""


def is_long(num_operands: int) -> bool:
    """Whether a chain is to be cut in halves; one that is too long is left for checks to refuse."""
    return LONGEST_SPINE < num_operands <= LONGEST_CHAIN


def num_levels(num_operands: int) -> int:
    """The levels between the top of a chain that is cut in halves, and its operands."""
    return (num_operands - 1).bit_length()


def halved(op: BinaryOp, operands: Sequence[Expr], place: Place | None) -> Expr:
    """The operands joined in a tree of halves, from left to right."""
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    left, right = operands[:half], operands[half:]
    return Binary(op, halved(op, left, _reach(left)), halved(op, right, _reach(right)), place=place)


def _reach(operands: Sequence[Expr]) -> Place | None:
    """From the first operand to the last, as far as they stand on one line."""
    first, last = operands[0].place, operands[-1].place
    if first is None or last is None or first.line != last.line:
        return first
    return replace(first, end=max(first.end, last.end))


def spine(expr: Expr) -> list[Expr]:
    """The operands of a chain that leans to the left; an expression that is no chain by itself."""
    if not isinstance(expr, Binary) or expr.op not in ASSOCIATIVE:
        return [expr]
    op, operands = expr.op, []
    while isinstance(expr, Binary) and expr.op == op:
        operands.append(expr.right)
        expr = expr.left
    return [expr, *reversed(operands)]


def halves(expr: Binary) -> list[Expr] | None:
    """The operands of a long chain that is cut in halves; None for anything else."""
    if expr.op not in ASSOCIATIVE:
        return None
    operands: list[Expr] = []
    waiting: list[Expr] = [expr]
    while waiting and len(operands) <= LONGEST_CHAIN:
        node = waiting.pop()
        if isinstance(node, Binary) and node.op == expr.op:
            waiting += (node.right, node.left)
        else:
            operands.append(node)
    is_cut = is_long(len(operands)) and _is_halved(expr, operands, expr.op)
    return operands if is_cut else None


def _is_halved(expr: Expr, operands: Sequence[Expr], op: BinaryOp) -> bool:
    if len(operands) == 1:
        return expr is operands[0]
    if not (isinstance(expr, Binary) and expr.op == op):
        return False
    half = len(operands) // 2
    left, right = operands[:half], operands[half:]
    return _is_halved(expr.left, left, op) and _is_halved(expr.right, right, op)


def with_halved_chains(expr: Expr) -> Expr:
    """The expression with its long chains cut in halves; the same if it stays too deep by that."""
    return _halved_chains(expr) if _depth_in_halves(expr) <= MAX_DEPTH else expr


def _depth_in_halves(expr: Expr) -> int:
    deepest = 0
    waiting = [(expr, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        operands = spine(node)
        if is_long(len(operands)):
            level += num_levels(len(operands))
            waiting += ((operand, level) for operand in operands)
        else:
            waiting += ((child, level + 1) for child in children(node))
    return deepest


def _halved_chains(expr: Expr) -> Expr:
    operands = spine(expr)
    if isinstance(expr, Binary) and is_long(len(operands)):
        return halved(expr.op, [_halved_chains(operand) for operand in operands], expr.place)
    return rebuild(expr, _halved_chains)
