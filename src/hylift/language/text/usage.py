"""What the rules tell about predicates that are declared without a domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

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
    Rule,
    Unary,
)
from hylift.language.walk import nodes


def numeric_predicates(rules: Iterable[Rule], undecided: Set[str], reals: Set[str]) -> set[str]:
    """The predicates, among those without a domain, whose atoms must be numbers.

    They are compared with what surely is a number, stand under a power, or are what a Gaussian or
    normal density is about. reals: the predicates that are declared real.
    """
    expressions = [expr for rule in rules for expr in (rule.formula, *rule.where)]
    parts = [node for expr in expressions for node in nodes(expr)]
    comparisons = [part for part in parts if isinstance(part, Comparison)]
    found = {atom.predicate for part in parts for atom in _numbers(part)} & undecided
    num_before = -1
    while len(found) > num_before:
        num_before, known = len(found), reals | found
        found |= {a.predicate for c in comparisons for a in _compared(c, known)} & undecided
    return found


def _numbers(expr: Expr) -> Iterator[Atom]:
    """The atoms that an expression needs to be numbers, whatever other rules say."""
    values: tuple[Expr, ...] = ()
    match expr:
        case Power(base=base):
            values = (base,)
        case Gaussian(values=given):
            values = given
        case Normal(value=value):
            values = (value,)
    yield from (value for value in values if isinstance(value, Atom))


def _compared(comparison: Comparison, reals: Set[str]) -> Iterator[Atom]:
    """The atoms that a comparison has on one side, with a number on the other."""
    left, right = comparison.left, comparison.right
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Atom) and _is_number(other, reals):
            yield side


def _is_number(expr: Expr, reals: Set[str]) -> bool:
    match expr:
        case Atom(predicate=name):
            return name in reals
        case Unary(op=op) | Binary(op=op):
            return op in ("-", "+", "*", "/")
        case Comparison():
            return not expr.is_logical
    return isinstance(expr, Number | Parameter | Power | Call | Gaussian | Normal | Apply)
