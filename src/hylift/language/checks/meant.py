"""Warnings about rules that are valid, but are probably meant otherwise or said better."""

from __future__ import annotations

from collections.abc import Iterator

from hylift.language.report import Problem, warning
from hylift.language.statements import Model, PredicateDeclaration, Rule
from hylift.language.syntax import (
    Apply,
    Atom,
    Call,
    Categorical,
    Comparison,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Power,
    Quantified,
    Unary,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.walk import is_truth, nodes

LOG_DENSITIES = (Normal, Density, Gaussian, Categorical, Apply, Call, Comparison, Power)
"""Expressions that are log-densities by themselves and need no weight."""


def unweighted(model: Model, rule: Rule) -> Iterator[Problem]:
    """A warning about a number without a weight that is no log-density."""
    if rule.weight is not None or rule.hard or is_truth(model, rule.formula):
        return
    if any(isinstance(node, LOG_DENSITIES) for node in nodes(rule.formula)):
        return
    yield warning(
        f"'{shown(rule.formula)}' has no weight, which counts as 1: write it before the formula, "
        f"as in '1 ({shown(rule.formula)})'",
        rule.formula,
    )


def exactly_one(model: Model) -> Iterator[Problem]:
    """Advice about hard rules by which exactly one constant holds for each choice of others."""
    most: dict[tuple[str, int], Rule] = {}
    least: dict[tuple[str, int], Rule] = {}
    for rule in model.rules:
        if not rule.hard:
            continue
        for found, of in ((most, _at_most_one(rule)), (least, _at_least_one(rule))):
            if of is not None:
                found.setdefault(of, rule)
        if (of := _exactly_one(rule)) is not None:
            most.setdefault(of, rule)
            least.setdefault(of, rule)
    for (name, place), rule in least.items():
        declared = model.predicate_by_name.get(name)
        if (name, place) in most and declared is not None and declared.unique is None:
            yield Problem(
                "warning",
                f"hard rules say that exactly one '{declared.arguments[place]}' holds: "
                f"'{_with_mark(declared, place)}' says the same, and is solved far better",
                rule.place,
                is_advice=True,
            )


def _with_mark(declared: PredicateDeclaration, place: int) -> str:
    types = [f"{t}!" if at == place else t for at, t in enumerate(declared.arguments)]
    return f"{declared.name}({', '.join(types)})"


def _exactly_one(rule: Rule) -> tuple[str, int] | None:
    """Predicate and argument of `EXACTLY 1 t: T(s, t)`."""
    match rule.formula:
        case Comparison(op="=", left=Quantified() as count, right=Number(value=1.0)):
            return _only_variable(count)
    return None


def _at_least_one(rule: Rule) -> tuple[str, int] | None:
    """Predicate and argument of `EXIST t T(s, t)`, and of `T(s, A) v T(s, B)`."""
    match rule.formula:
        case Quantified(quantifier="EXIST") as some:
            return _only_variable(some)
        case Operation(op="v", operands=(first, *others)):
            places = {_one_difference(first, other) for other in others}
            if len(places) == 1 and isinstance(first, Atom) and None not in places:
                return first.predicate, next(place for place in places if place is not None)
    return None


def _only_variable(of: Quantified) -> tuple[str, int] | None:
    body = of.body
    if isinstance(body, Atom) and len(of.variables) == 1:
        places = [at for at, t in enumerate(body.arguments) if t == Variable(of.variables[0])]
        if len(places) == 1:
            return body.predicate, places[0]
    return None


def _at_most_one(rule: Rule) -> tuple[str, int] | None:
    """Predicate and argument of `!(T(s, t) ^ T(s, u))`, `!T(s, t) v !T(s, u)` and
    `T(s, t) => !T(s, u)`."""
    pair: tuple[Expr, Expr] | None = None
    match rule.formula:
        case Unary(op="!", operand=Operation(op="^", operands=(one, other))):
            pair = one, other
        case Operation(op="v", operands=(Unary(op="!", operand=one), Unary(op="!", operand=other))):
            pair = one, other
        case Operation(op="=>", operands=(one, Unary(op="!", operand=other))):
            pair = one, other
    if pair is None or (place := _one_difference(*pair)) is None:
        return None
    one = pair[0]
    return (one.predicate, place) if isinstance(one, Atom) else None


def _one_difference(one: Expr, other: Expr) -> int | None:
    """The only argument in which two atoms of a predicate differ."""
    if not isinstance(one, Atom) or not isinstance(other, Atom) or one.predicate != other.predicate:
        return None
    pairs = enumerate(zip(one.arguments, other.arguments, strict=False))
    places = [at for at, (left, right) in pairs if left != right]
    return places[0] if len(places) == 1 else None
