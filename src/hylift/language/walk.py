"""Traversal of expressions: their parts, atoms and variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    OF_TRUTHS,
    Atom,
    Categorical,
    Comparison,
    Density,
    Expr,
    Gaussian,
    Normal,
    Operation,
    Power,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
)

MAX_DEPTH = 100
"""Maximum depth of an expression, because traversal is recursive."""

LONGEST_CHAIN = 1000
"""Maximum number of operands of one operation."""

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
    names = _PART_FIELDS[type(expr)]
    if not names:
        return expr
    parts: dict[str, Any] = {}
    for name in names:  # no comprehension: formulas are deep, and frames few
        parts[name] = _changed(change, getattr(expr, name))
    return replace(expr, **parts)


def _changed(change: Callable[[Expr], Expr], part: Any) -> Any:
    # Not a closure of itself, which would keep a database open until garbage is collected.
    if isinstance(part, tuple):
        return tuple(map(partial(_changed, change), part))
    return None if part is None else change(part)


def renamed(expr: Expr, names: Mapping[str, str]) -> Any:
    """The expression with other names of logical variables; it has no quantifiers."""
    if isinstance(expr, Variable):
        return replace(expr, name=names.get(expr.name, expr.name))
    if isinstance(expr, Atom):
        return replace(expr, arguments=tuple(renamed(term, names) for term in expr.arguments))
    return rebuild(expr, lambda part: renamed(part, names))


def nodes(*exprs: Expr) -> list[Expr]:
    """The expressions and all their parts, from left to right, each before its parts."""
    return [node for node, _ in with_parents(*exprs)]


def with_parents(*exprs: Expr) -> list[tuple[Expr, Expr | None]]:
    """As `nodes`, each with the expression that it is a part of."""
    found: list[tuple[Expr, Expr | None]] = []
    waiting: list[tuple[Expr, Expr | None]] = [(expr, None) for expr in reversed(exprs)]
    while waiting:
        found.append(pair := waiting.pop())
        waiting += [(child, pair[0]) for child in reversed(children(pair[0]))]
    return found


def depth(expr: Expr) -> int:
    """The number of levels; an expression without parts has one."""
    levels, level = 0, [expr]
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels


def size_fault(expr: Expr) -> str | None:
    """The error about an expression that is too deep to traverse, or has too long a chain."""
    if depth(expr) > MAX_DEPTH:
        return TOO_DEEP
    chains = (node for node in nodes(expr) if isinstance(node, Operation))
    return next((chain_fault(n.op) for n in chains if len(n.operands) > LONGEST_CHAIN), None)


def chain_fault(op: str) -> str:
    """The error about a chain of too many operands."""
    return f"more than {LONGEST_CHAIN:,} operands of '{op}' in a row; split them into several rules"


def atoms(*exprs: Expr) -> list[Atom]:
    """The distinct atoms, in order of appearance."""
    return list(dict.fromkeys(node for node in nodes(*exprs) if isinstance(node, Atom)))


def categoricals(*exprs: Expr) -> list[Categorical]:
    """The lookups in tables of probabilities."""
    return [node for node in nodes(*exprs) if isinstance(node, Categorical)]


def conditioning_variables(*exprs: Expr) -> list[Variable]:
    """The distinct logical variables whose constants are looked up in tables."""
    found = (part for node in categoricals(*exprs) for part in node.conditions)
    return list(dict.fromkeys(part for part in found if isinstance(part, Variable)))


def used_predicates(model: Model) -> set[str]:
    """The predicates that occur in rules."""
    return {atom.predicate for rule in model.rules for atom in atoms(*rule.expressions)}


def with_exact_comparisons(model: Model) -> Model:
    """The model with the comparisons of numbers true or false where truth values stand."""
    rules = tuple(
        replace(
            rule,
            formula=_exact(rule.formula, False),
            where=tuple(_exact(condition, True) for condition in rule.where),
        )
        if any(isinstance(node, Comparison) for node in nodes(*rule.expressions))
        else rule
        for rule in model.rules
    )
    return replace(model, rules=rules)


def _exact(expr: Expr, is_truth: bool) -> Expr:
    if isinstance(expr, Comparison) and is_truth and not expr.is_logical and expr.slope is None:
        expr = replace(expr, is_exact=True)
    takes_truths = (
        (isinstance(expr, Operation) and expr.is_logic)
        or (isinstance(expr, Unary) and expr.op == "!")
        or (isinstance(expr, Quantified) and (expr.is_truth or expr.quantifier == "COUNT"))
    )
    return rebuild(expr, partial(_exact, is_truth=takes_truths))


def logical_comparisons(*exprs: Expr) -> list[Comparison]:
    """The distinct comparisons between logical terms, in order of appearance."""
    compared = (node for node in nodes(*exprs) if isinstance(node, Comparison) and node.is_logical)
    return list(dict.fromkeys(compared))


def terms(*exprs: Expr) -> list[Term]:
    """The logical terms: arguments of atoms, and sides of comparisons."""
    return [
        term
        for node in nodes(*exprs)
        for term in (node.arguments if isinstance(node, Atom) else (node,))
        if isinstance(term, Term)
    ]


# Truth values and numbers.


def is_truth(model: Model, expr: Expr) -> bool:
    """True if an expression is a truth value, False if it is a number."""
    return _is_truth(expr, model.real_predicates)


def _is_truth(expr: Expr, reals: Set[str]) -> bool:
    match expr:
        case Atom(predicate=name):
            return name not in reals
        case Truth():
            return True
        case Quantified():
            return expr.is_truth
        case Unary(op=op):
            return op == "!"
        case Operation():
            return expr.is_logic
        case Comparison():
            return expr.is_logical or expr.is_exact
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
        case Density(name=name, value=value) if name not in OF_TRUTHS:
            return (value,)
    return ()


def conjuncts(expr: Expr, truth: bool) -> Iterator[tuple[Expr, bool]]:
    """Parts, and the truth that each must have for the expression to have `truth`."""
    match expr:
        case Unary(op="!", operand=operand):
            yield from conjuncts(operand, not truth)
        case Operation(op="=>", operands=(left, right)) if not truth:
            yield from conjuncts(left, True)
            yield from conjuncts(right, False)
        case Operation(op="^" | "v" as op, operands=operands) if truth == (op == "^"):
            for operand in operands:
                yield from conjuncts(operand, truth)
        case _:
            yield expr, truth


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


def occurrences(*exprs: Expr) -> list[Occurrence]:
    """All occurrences of logical variables, from left to right."""
    found: list[Occurrence] = []
    waiting: list[tuple[Expr, dict[str, Quantified]]] = [(expr, {}) for expr in reversed(exprs)]
    while waiting:
        expr, binders = waiting.pop()
        if isinstance(expr, Quantified):
            binders = {**binders, **dict.fromkeys(expr.variables, expr)}
        atom = expr if isinstance(expr, Atom) else None
        for position, term in enumerate(atom.arguments if atom else (expr,)):
            if isinstance(term, Variable):
                found.append(Occurrence(term, atom, position, binders.get(term.name)))
        waiting += [(child, binders) for child in reversed(children(expr))]
    return found


def free_variables(*exprs: Expr) -> list[str]:
    """The names of the variables that no quantifier binds, in order of appearance."""
    free = (found.variable.name for found in occurrences(*exprs) if found.binder is None)
    return list(dict.fromkeys(free))
