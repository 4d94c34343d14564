"""Traversal of expressions: parts, atoms, variables, substitution, and chains of one operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any

from hylift.language.syntax import (
    LOGIC,
    Atom,
    Binary,
    BinaryOp,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Model,
    Normal,
    Place,
    Power,
    Quantified,
    Rule,
    Term,
    Truth,
    Unary,
    Variable,
)

MAX_DEPTH = 100
"""Maximum depth of an expression, because traversal is recursive."""

TOO_DEEP = f"the expression has more than {MAX_DEPTH} levels; split it into several rules"


_PART_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(f.name for f in fields(kind) if re.search(r"\b(Expr|Atom)\b", str(f.type)))
    for kind in Expr.__subclasses__()
}
"""The fields of each node that hold expressions: one, None, or tuples of them."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression is made of; not the arguments of an atom."""
    found: list[Expr] = []
    for name in _PART_FIELDS[type(expr)]:
        part = getattr(expr, name)
        if isinstance(part, Expr):
            found.append(part)
        elif part is not None:
            found += _flat(part)
    return tuple(found)


def _flat(parts: Iterable[Any]) -> Iterator[Expr]:
    for part in parts:
        if isinstance(part, tuple):
            yield from part
        else:
            yield part


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each of its children."""

    def changed(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(changed, part))
        return None if part is None else change(part)

    names = _PART_FIELDS[type(expr)]
    return (
        replace(expr, **{name: changed(getattr(expr, name)) for name in names}) if names else expr
    )


def nodes(*exprs: Expr) -> Iterator[Expr]:
    """The expressions and all their parts, from left to right, each before its parts."""
    for expr in exprs:
        yield expr
        yield from nodes(*children(expr))


def depth(expr: Expr) -> int:
    """The number of levels; an expression without parts has one."""
    levels, level = 0, [expr]
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels


def atoms(*exprs: Expr) -> list[Atom]:
    """The distinct atoms, in order of appearance."""
    return list(dict.fromkeys(node for node in nodes(*exprs) if isinstance(node, Atom)))


def used_predicates(model: Model) -> set[str]:
    """The predicates that occur in rules."""
    return {atom.predicate for rule in model.rules for atom in atoms(*rule.expressions)}


def logical_comparisons(*exprs: Expr) -> list[Comparison]:
    """The distinct comparisons between logical terms, in order of appearance."""
    compared = (node for node in nodes(*exprs) if isinstance(node, Comparison) and node.is_logical)
    return list(dict.fromkeys(compared))


def terms(*exprs: Expr) -> Iterator[Term]:
    """The logical terms: arguments of atoms, and sides of comparisons."""
    for node in nodes(*exprs):
        if isinstance(node, Atom):
            yield from node.arguments
        elif isinstance(node, Term):
            yield node


# Truth values and numbers.


def is_truth(model: Model, expr: Expr) -> bool:
    """True if an expression is a truth value, False if it is a number."""
    return _is_truth(expr, model.real_predicates)


def _is_truth(expr: Expr, reals: Set[str]) -> bool:
    match expr:
        case Atom(predicate=name):
            return name not in reals
        case Truth() | Quantified():
            return True
        case Unary(op=op):
            return op == "!"
        case Binary(op=op):
            return op in LOGIC
        case Comparison():
            return expr.is_logical
    return False


def numeric_predicates(rules: Iterable[Rule], undecided: Set[str], reals: Set[str]) -> set[str]:
    """The predicates, among those declared without a domain, whose atoms must be numbers.

    They are compared with a number, raised to a power, or the values of a Gaussian or normal
    density. reals: the predicates that are declared real.
    """
    parts = [node for rule in rules for node in nodes(*rule.expressions)]
    found = {e.predicate for part in parts for e in _numeric(part) if isinstance(e, Atom)}
    found &= undecided
    sides = [(part.left, part.right) for part in parts if isinstance(part, Comparison)]
    sides += [(right, left) for left, right in sides]
    num_before = -1
    while len(found) > num_before:
        num_before, known = len(found), reals | found
        found |= undecided & {
            one.predicate
            for one, other in sides
            if isinstance(one, Atom)
            if not isinstance(other, Term) and not _is_truth(other, known)
        }
    return found


def _numeric(expr: Expr) -> tuple[Expr, ...]:
    """The parts of an expression that must be numbers, whatever other rules say."""
    match expr:
        case Power(base=base):
            return (base,)
        case Gaussian(values=values):
            return values
        case Normal(value=value):
            return (value,)
    return ()


# Variables.


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A logical variable at one position of an expression."""

    variable: Variable
    atom: Atom | None
    """The atom it is an argument of; None for a side of a comparison."""
    position: int
    """Its position among the arguments of the atom."""
    binder: Quantified | None
    """The quantifier that binds it; None for a free variable."""

    @property
    def identity(self) -> tuple[str, int]:
        """Equal for occurrences of the same variable: name and binder."""
        return self.variable.name, id(self.binder)


def occurrences(
    *exprs: Expr, binders: Mapping[str, Quantified] | None = None
) -> Iterator[Occurrence]:
    """All occurrences of logical variables, from left to right."""
    binders = binders or {}
    for expr in exprs:
        inside = binders
        if isinstance(expr, Quantified):
            inside = {**binders, **dict.fromkeys(expr.variables, expr)}
        elif isinstance(expr, Variable):
            yield Occurrence(expr, None, 0, binders.get(expr.name))
        elif isinstance(expr, Atom):
            for position, term in enumerate(expr.arguments):
                if isinstance(term, Variable):
                    yield Occurrence(term, expr, position, binders.get(term.name))
        yield from occurrences(*children(expr), binders=inside)


def free_variables(*exprs: Expr) -> list[str]:
    """The names of the variables that no quantifier binds, in order of appearance."""
    free = (found.variable.name for found in occurrences(*exprs) if found.binder is None)
    return list(dict.fromkeys(free))


def substitute(expr: Expr, known: Mapping[str, Constant]) -> Expr:
    """The expression with constants in place of some of its free variables, none shifted."""
    if not known:
        return expr
    if isinstance(expr, Quantified):
        known = {name: value for name, value in known.items() if name not in expr.variables}
    if isinstance(expr, Variable):
        return known.get(expr.name, expr)
    if isinstance(expr, Atom):
        arguments = (
            known.get(term.name, term) if isinstance(term, Variable) else term
            for term in expr.arguments
        )
        return replace(expr, arguments=tuple(arguments))
    return rebuild(expr, lambda child: substitute(child, known))


# Chains of one operator, `a + b + c + …`. A chain of at most `LONGEST_SPINE` operands leans to the
# left, as it is parsed; a longer one is a balanced tree, so that recursion does not go down one
# level per operand.

ASSOCIATIVE: frozenset[BinaryOp] = frozenset({"+", "v", "^"})
"""The operators whose chains may be regrouped."""

LONGEST_SPINE = 50
"""Maximum number of operands of a chain that leans to the left."""

LONGEST_CHAIN = 1000
"""Maximum number of operands of a chain."""


def is_long(num_operands: int) -> bool:
    """True if a chain is to be balanced; checks reject chains that are too long."""
    return LONGEST_SPINE < num_operands <= LONGEST_CHAIN


def num_levels(num_operands: int) -> int:
    """The depth of a balanced chain without its operands."""
    return (num_operands - 1).bit_length()


def balanced(op: BinaryOp, operands: Sequence[Expr], place: Place | None = None) -> Expr:
    """The operands joined in a balanced tree, from left to right."""
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    left, right = operands[:half], operands[half:]
    return Binary(
        op, balanced(op, left, _span(left)), balanced(op, right, _span(right)), place=place
    )


def _span(operands: Sequence[Expr]) -> Place | None:
    """From the first operand to the last, if they are on one line."""
    first, last = operands[0].place, operands[-1].place
    if first is None or last is None or first.line != last.line:
        return first
    return replace(first, end=max(first.end, last.end))


def spine(expr: Expr) -> list[Expr]:
    """The operands of a chain that leans to the left; any other expression by itself."""
    if not isinstance(expr, Binary) or expr.op not in ASSOCIATIVE:
        return [expr]
    op, operands = expr.op, []
    while isinstance(expr, Binary) and expr.op == op:
        operands.append(expr.right)
        expr = expr.left
    return [expr, *reversed(operands)]


def balanced_operands(expr: Binary) -> list[Expr] | None:
    """The operands of a long chain that is balanced; None for anything else."""
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
    is_balanced = is_long(len(operands)) and balanced(expr.op, operands) == expr
    return operands if is_balanced else None


def with_balanced_chains(expr: Expr) -> Expr:
    """The expression with its long chains balanced; the same if it is too deep even so."""
    return _balance(expr) if _balanced_depth(expr) <= MAX_DEPTH else expr


def _balanced_depth(expr: Expr) -> int:
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


def _balance(expr: Expr) -> Expr:
    operands = spine(expr)
    if isinstance(expr, Binary) and is_long(len(operands)):
        return balanced(expr.op, [_balance(operand) for operand in operands], expr.place)
    return rebuild(expr, _balance)
