"""Warnings about rules that are valid, but are probably meant otherwise or said better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

from hylift.language.report import Problem, warning
from hylift.language.statements import Model, PredicateDeclaration, Rule
from hylift.language.syntax import (
    COMPARISONS,
    Apply,
    Atom,
    Call,
    Categorical,
    CompareOp,
    Comparison,
    Constant,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Power,
    Quantified,
    Truth,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.walk import atoms, conjuncts, free_variables, is_truth, nodes

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


def wrong_connective(rule: Rule, closed: frozenset[str]) -> Iterator[Problem]:
    """Warnings about quantifiers over a relation that join it as the other quantifier does."""
    for node in nodes(rule.formula):
        match node:
            case Quantified(quantifier="FORALL", body=Operation(op="^", operands=parts)):
                for atom in _choosing(node, parts, closed):
                    yield warning(
                        f"'{shown(node)}' is false unless '{shown(atom)}' is true for every "
                        f"{_names(node)}: to say something of those for whom it is, write "
                        f"'FORALL {', '.join(node.variables)} ({shown(atom)} => …)'",
                        node,
                    )
            case Quantified(quantifier="EXIST", body=Operation(op="=>", operands=(first, _))):
                for atom in _choosing(node, (first,), closed):
                    yield warning(
                        f"'{shown(node)}' is true if '{shown(atom)}' is false for some "
                        f"{_names(node)}: to say that there is one for whom it is true, write "
                        f"'EXIST {', '.join(node.variables)} ({shown(atom)} ^ …)'",
                        node,
                    )


def _choosing(node: Quantified, parts: tuple[Expr, ...], closed: frozenset[str]) -> list[Atom]:
    """The first closed-world atom that has a variable of the quantifier."""
    found = (part for part in parts if isinstance(part, Atom) and part.predicate in closed)
    return [atom for atom in found if set(free_variables(atom)) & set(node.variables)][:1]


def _names(node: Quantified) -> str:
    return ", ".join(f"'{name}'" for name in node.variables)


def soft_counts(model: Model, rule: Rule) -> Iterator[Problem]:
    """Warnings about soft comparisons of sums of truth values."""
    for node in nodes(*rule.expressions):
        if isinstance(node, Comparison) and not node.is_exact and node.slope is None:
            yield from (
                warning(f"'{shown(node)}' is soft: {advice}", node)
                for advice in map(partial(counted_instead, model), (node.left, node.right))
                if advice
            )


def counted_instead(model: Model, expr: Expr) -> str:
    """The advice to count where truth values are summed up; empty elsewhere."""
    if isinstance(expr, Quantified) and expr.quantifier == "SUM" and is_truth(model, expr.body):
        counted = shown(replace(expr, quantifier="COUNT"))
        return f"comparisons of counts, as of '{counted}', are true or false"
    return ""


def meant_sum(model: Model, rule: Rule) -> Iterator[Problem]:
    """Warnings about a relation in a mean, with a variable that the value does not have."""
    for node in nodes(rule.formula):
        match node:
            case Normal(value=value, mean=mean, var=var):
                yield from _summed(model, node, "normal", value, (mean, var))
            case Density(name=name, value=value, parameters=parameters):
                yield from _summed(model, node, f"'{name}'", value, parameters)
            case (
                Comparison(op="=", left=Atom() as value, right=other)
                | Comparison(op="=", left=other, right=Atom() as value)
            ) if not node.is_exact and not node.is_logical:
                yield from _summed(model, node, "comparison", value, (other,))


def _summed(
    model: Model, node: Expr, noun: str, value: Expr, others: tuple[Expr, ...]
) -> Iterator[Problem]:
    elsewhere = free_variables(value)
    for product in nodes(*others):
        if not isinstance(product, Operation) or product.op not in ("*", "^"):
            continue
        truths = [atom for atom in atoms(product) if is_truth(model, atom)]
        ties = [atom for atom in truths if set(free_variables(atom)) & set(elsewhere)]
        numbers = [atom for atom in atoms(product) if atom not in truths]
        beside = numbers or [atom for atom in truths if atom not in ties]
        bound = [
            name
            for name in free_variables(*(truths if numbers else ties))
            if name in free_variables(*beside) and name not in elsewhere
        ]
        own = [name for name in bound if name in free_variables(node)]
        if own and ties:
            names = ", ".join(own)
            one, instead = "of the sum", f"SUM {names}: {shown(product)}"
            if not numbers:
                one = f"that depends on whether some '{names}' is such"
                instead = f"EXIST {names} ({shown(ties[0])} ^ …)"
            elif noun == "normal":
                one = "with the sum as its mean"
            yield warning(
                f"'{shown(node)}' is a {noun} of its own for every '{names}': for one {noun} "
                f"{one}, write '{instead}'",
                node,
            )
            return


# Exactly one of the constants of a type.

Key = tuple[str, int]
"""A predicate and one of its arguments."""


def exactly_one(model: Model) -> Iterator[Problem]:
    """Advice about hard rules by which exactly one constant holds for each choice of others."""
    least: dict[Key, tuple[Rule, frozenset[str] | None]] = {}
    most: dict[Key, set[frozenset[str] | None]] = {}
    for rule in model.rules:
        if not rule.hard:
            continue
        key, pair = _at_most_one(rule)
        if key is not None:
            most.setdefault(key, set()).add(pair)
        key, among = _at_least_one(rule)
        if key is not None:
            least.setdefault(key, (rule, among))
    told: set[str] = set()
    for (name, place), (rule, among) in least.items():
        declared = model.predicate_by_name.get(name)
        pairs = most.get((name, place), set())
        if declared is None or declared.unique is not None or name in told:
            continue
        listed = model.type_by_name[declared.arguments[place]].constants
        constants = among if among is not None else listed or ()
        same_size = listed is not None and len(constants) == len(listed)
        are_all = among is None or listed is None or (same_size and among == set(listed))
        num_pairs = len(constants) * (len(constants) - 1) // 2
        is_few = num_pairs <= len(pairs)
        every = {frozenset(pair) for pair in combinations(constants, 2)} if is_few else set()
        if are_all and (None in pairs or (every and every <= pairs)):
            told.add(name)  # one mark is all that a predicate takes
            yield warning(
                f"hard rules say that exactly one '{declared.arguments[place]}' holds: "
                f"'{_with_mark(declared, place)}' says the same, and is solved far better",
                rule.formula,
            )


def _with_mark(declared: PredicateDeclaration, place: int) -> str:
    types = [f"{t}!" if at == place else t for at, t in enumerate(declared.arguments)]
    return f"{declared.name}({', '.join(types)})"


def _at_least_one(rule: Rule) -> tuple[Key | None, frozenset[str] | None]:
    """The key of `EXIST t T(s, t)`, `COUNT t: T(s, t) >= 1` or `EXACTLY 1 t: T(s, t)`, and of
    `T(s, A) v T(s, B)` with its constants."""
    if rule.where:
        return None, None
    match rule.formula:
        case Quantified(quantifier="EXIST") as some:
            return _only_variable(some), None
        case Comparison():
            count, numbers = _counts(rule.formula)
            return (_only_variable(count) if count and 0 not in numbers else None), None
        case Operation(op="v", operands=(Atom() as first, *others)):
            keys = {_one_difference(first, other) for other in others}
            key = keys.pop() if len(keys) == 1 else None
            if key is not None:
                own = [
                    part.arguments[key[1]] for part in (first, *others) if isinstance(part, Atom)
                ]
                return key, frozenset(term.name for term in own)
    return None, None


def _at_most_one(rule: Rule) -> tuple[Key | None, frozenset[str] | None]:
    """The key of rules that two different constants do not hold, such as `!(T(s, t) ^ T(s, u))
    where t != u`, and the two where they are written out."""
    count, numbers = _counts(rule.formula)
    if count is not None:
        is_known = not rule.where and not {2, 3} & numbers
        return (_only_variable(count) if is_known else None), None
    parts = [*conjuncts(rule.formula, False), *((part, True) for part in rule.where)]
    true = [part for part, truth in parts if truth and isinstance(part, Atom)]
    rest = [(part, truth) for part, truth in parts if part not in true]
    if len(true) != 2 or (key := _one_difference(*true)) is None:
        return None, None
    one, other = (atom.arguments[key[1]] for atom in true)
    rest = [(part, truth) for part, truth in rest if not isinstance(part, Truth)]
    apart = [(Comparison("!=", *pair), True) for pair in ((one, other), (other, one))]
    apart += [(Comparison("=", *pair), False) for pair in ((one, other), (other, one))]
    if isinstance(one, Variable) and isinstance(other, Variable):
        return (key if len(rest) == 1 and rest[0] in apart else None), None
    if isinstance(one, Constant) and isinstance(other, Constant) and not rest:
        return key, frozenset((one.name, other.name))
    return None, None


_TURNED: dict[CompareOp, CompareOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _counts(expr: Expr) -> tuple[Quantified | None, set[int]]:
    """A count that is compared with a number, and those of 0 to 3 that fulfil the comparison: 3 is
    any greater one."""
    match expr:
        case Comparison(left=Quantified(quantifier="COUNT") as count, right=Number(value=value)):
            op = COMPARISONS[expr.op]
        case Comparison(left=Number(value=value), right=Quantified(quantifier="COUNT") as count):
            op = COMPARISONS[_TURNED.get(expr.op, expr.op)]
        case _:
            return None, set()
    few = {n for n in range(3) if op(n, value)}
    return count, few | ({3} if any(op(max(3, n), value) for n in (3, value, value + 1)) else set())


def _only_variable(of: Quantified) -> Key | None:
    body = of.body
    if isinstance(body, Atom) and len(of.variables) == 1:
        places = [at for at, t in enumerate(body.arguments) if t == Variable(of.variables[0])]
        if len(places) == 1:
            return body.predicate, places[0]
    return None


def _one_difference(one: Expr, other: Expr) -> Key | None:
    """The predicate of two atoms, and the only argument in which they differ."""
    if not isinstance(one, Atom) or not isinstance(other, Atom) or one.predicate != other.predicate:
        return None
    pairs = enumerate(zip(one.arguments, other.arguments, strict=False))
    places = [at for at, (left, right) in pairs if left != right]
    return (one.predicate, places[0]) if len(places) == 1 else None
