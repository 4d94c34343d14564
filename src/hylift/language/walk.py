"""Ways through an expression: its parts, its atoms, its variables, and what may replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hylift.language.syntax import (
    Apply,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Model,
    Normal,
    Power,
    Quantified,
    Term,
    Unary,
    Variable,
)

MAX_DEPTH = 100
"""Most levels of an expression: what works on models goes down them one call at a time."""

TOO_DEEP = f"the expression has more than {MAX_DEPTH} levels; split it into several rules"


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions an expression is made of; the arguments of an atom are not among them."""
    match expr:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Comparison(left=left, right=right, slope=slope):
            return (left, right) if slope is None else (left, right, slope)
        case Power(base=base):
            return (base,)
        case Quantified(body=body):
            return (body,)
        case Call(arguments=arguments) | Apply(arguments=arguments):
            return arguments
        case Gaussian(values=values, mean=mean, cov=cov):
            return (*values, *mean, *(entry for row in cov for entry in row))
        case Normal(value=value, mean=mean, var=var):
            return (value, mean, var)
    return ()


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each of its children."""
    match expr:
        case Unary(operand=operand):
            return replace(expr, operand=change(operand))
        case Binary(left=left, right=right):
            return replace(expr, left=change(left), right=change(right))
        case Comparison(left=left, right=right, slope=slope):
            slope = None if slope is None else change(slope)
            return replace(expr, left=change(left), right=change(right), slope=slope)
        case Power(base=base):
            return replace(expr, base=change(base))
        case Quantified(body=body):
            return replace(expr, body=change(body))
        case Call(arguments=arguments):
            return replace(expr, arguments=tuple(map(change, arguments)))
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(map(change, arguments)))  # type: ignore[arg-type]
        case Gaussian(values=values, mean=mean, cov=cov):
            return replace(
                expr,
                values=tuple(map(change, values)),
                mean=tuple(map(change, mean)),
                cov=tuple(tuple(map(change, row)) for row in cov),
            )
        case Normal(value=value, mean=mean, var=var):
            return replace(expr, value=change(value), mean=change(mean), var=change(var))
    return expr


def nodes(expr: Expr) -> Iterator[Expr]:
    """The expression and all it is made of, from left to right, each before its parts."""
    yield expr
    for child in children(expr):
        yield from nodes(child)


def depth(expr: Expr) -> int:
    """The levels of an expression, one that has no parts being one level by itself."""
    levels, level = 0, [expr]
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels


def atoms(expr: Expr) -> list[Atom]:
    """The distinct atoms of an expression, in order of appearance."""
    return list(dict.fromkeys(node for node in nodes(expr) if isinstance(node, Atom)))


def used_predicates(model: Model) -> set[str]:
    """The predicates that some rule mentions."""
    expressions = (expr for rule in model.rules for expr in (rule.formula, *rule.where))
    return {atom.predicate for expr in expressions for atom in atoms(expr)}


def logical_comparisons(expr: Expr) -> list[Comparison]:
    """The distinct comparisons between logical terms, in order of appearance."""
    found = (node for node in nodes(expr) if isinstance(node, Comparison) and node.is_logical)
    return list(dict.fromkeys(found))


def terms(expr: Expr) -> Iterator[Term]:
    """The logical terms in an expression: arguments of atoms, and sides of comparisons."""
    for node in nodes(expr):
        if isinstance(node, Atom):
            yield from node.arguments
        elif isinstance(node, Term):
            yield node


def free_variables(expr: Expr) -> list[str]:
    """The names of the variables that no quantifier binds, in order of appearance."""
    if isinstance(expr, Quantified):
        return [name for name in free_variables(expr.body) if name not in expr.variables]
    own: list[str] = []
    if isinstance(expr, Atom):
        own = [term.name for term in expr.arguments if isinstance(term, Variable)]
    elif isinstance(expr, Variable):
        own = [expr.name]
    below = (name for child in children(expr) for name in free_variables(child))
    return list(dict.fromkeys([*own, *below]))


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
