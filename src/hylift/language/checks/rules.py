"""Checks of rules: names, variables, quantifiers and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from hylift.errors import did_you_mean
from hylift.language.checks.formulas import formula_problems
from hylift.language.checks.weights import Listed, unlisted_fault, weight_problems
from hylift.language.report import Problem, error, warning
from hylift.language.syntax import (
    BUILT_IN,
    Atom,
    Comparison,
    Constant,
    Expr,
    Model,
    Operation,
    Parameter,
    Place,
    Quantified,
    Rule,
    Term,
    Unary,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.text.notation import word_hint
from hylift.language.types import arity_fault, typed_variables
from hylift.language.walk import (
    children,
    free_variables,
    is_truth,
    logical_comparisons,
    nodes,
    occurrences,
)


def rule_problems(model: Model, rule: Rule, listed: Listed) -> Iterator[Problem]:
    """The problems of a rule; if a name is unknown, its formula is not checked further."""
    wrong_names = list(_name_problems(model, rule, listed))
    yield from wrong_names
    types, wrong_types = typed_variables(model, rule)
    if not wrong_names:
        yield from wrong_types
        yield from _compared_constants(model, rule, types, listed)
        yield from _quantifier_problems(rule)
        for condition in rule.where:
            yield from _condition_problems(model, rule, condition)
        yield from names_of_constants(rule, types, lambda t, name: name in listed.get(t, ()))
        yield from formula_problems(model, rule)
    yield from weight_problems(model, rule, types, listed, kind_known=not wrong_names)


# Names.


def _name_problems(model: Model, rule: Rule, listed: Listed) -> Iterator[Problem]:
    for expr in rule.expressions:
        for node in nodes(expr):
            if isinstance(node, Atom):
                yield from _atom_problems(model, node, listed)
            elif isinstance(node, Parameter) and node.name not in model.parameter_by_name:
                yield _unknown(model, node.name, node)
        for term, comparison in _stray_terms(expr, None):
            yield _stray_problem(model, rule, term, comparison, listed)


def _atom_problems(model: Model, atom: Atom, listed: Listed) -> Iterator[Problem]:
    declared = model.predicate_by_name.get(atom.predicate)
    if declared is None:
        yield _unknown(model, atom.predicate, atom)
    elif fault := arity_fault(declared, len(atom.arguments)):
        yield error(fault, atom)
    else:
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Constant):
                yield from _unlisted(listed, declared.arguments[position], term)
            elif term.shift and position == declared.unique:
                message = (
                    f"'{shown(term)}' stands in the '!' argument of '{declared.name}', "
                    "whose constants are values and have no neighbours"
                )
                yield error(message, term)


def _unlisted(listed: Listed, type_name: str, constant: Constant) -> Iterator[Problem]:
    """An error if a type lists its constants, but not this one."""
    if type_name in listed and constant.name not in listed[type_name]:
        fault = unlisted_fault(listed[type_name], type_name, constant.name)
        yield error(fault, constant)


def _unknown(model: Model, name: str, node: Expr) -> Problem:
    """The error about an unknown word."""
    is_called = isinstance(node, Atom) and bool(node.arguments)
    declared = model.predicate_by_name.get(name)
    if declared and not is_called and (fault := arity_fault(declared, 0)):
        return error(fault, node)
    if is_called:
        message, known = f"unknown predicate '{name}'", (*model.predicate_by_name, *BUILT_IN)
    else:
        message = f"'{name}' is neither a constant nor a predicate"
        known = (*model.parameter_by_name, *model.predicate_by_name)
    hint = word_hint(name)
    message += f"; {hint}" if hint else f".{did_you_mean(name, known)}"
    return error(message, node)


def _stray_terms(
    expr: Expr, comparison: Comparison | None
) -> Iterator[tuple[Term, Comparison | None]]:
    """Logical terms in place of truth values or numbers, with the comparison around them."""
    if isinstance(expr, Term):
        yield expr, comparison
    elif not (isinstance(expr, Comparison) and expr.is_logical):
        around = expr if isinstance(expr, Comparison) else None
        for child in children(expr):
            yield from _stray_terms(child, around)


def _stray_problem(
    model: Model, rule: Rule, term: Term, comparison: Comparison | None, listed: Listed
) -> Problem:
    if isinstance(term, Variable):
        found = occurrences(*rule.expressions)
        if not any(one.atom and one.variable.name == term.name for one in found):
            return _unknown(model, term.name, term)
        what = f"the variable '{shown(term)}'"
    else:
        types = [name for name, constants in listed.items() if term.name in constants]
        if not types:
            return _unknown(model, term.name, term)
        what = f"'{term.name}' of type '{types[0]}'"
    if comparison is not None:
        other = comparison.right if comparison.left is term else comparison.left
        kind = "truth value" if is_truth(model, other) else "number"
        message = f"'{shown(comparison)}' compares {what} with the {kind} '{shown(other)}'"
    else:
        message = f"{what} is neither a number nor a truth value"
    return error(message, term)


# Variables.


def _compared_constants(
    model: Model, rule: Rule, types: dict[str, str], listed: Listed
) -> Iterator[Problem]:
    for comparison in logical_comparisons(*rule.expressions):
        match comparison:
            case (
                Comparison(left=Variable(name=name), right=Constant() as constant)
                | Comparison(left=Constant() as constant, right=Variable(name=name))
            ):
                yield from _unlisted(listed, types.get(name, ""), constant)
            case Comparison(left=Constant() as left, right=Constant() as right):
                known = [*model.parameter_by_name, *model.predicate_by_name]
                close = did_you_mean(left.name, known) or did_you_mean(right.name, known)
                message = (
                    f"'{shown(comparison)}' compares two constants; variables begin with a "
                    f"small letter.{close}"
                )
                yield error(message, comparison)


def _quantifier_problems(rule: Rule) -> Iterator[Problem]:
    outside = free_variables(*rule.expressions)
    yield from _quantifiers_inside(rule.formula, frozenset(outside))


def _quantifiers_inside(expr: Expr, outside: frozenset[str]) -> Iterator[Problem]:
    if isinstance(expr, Quantified):
        used = free_variables(expr.body)
        for name, count in Counter(expr.variables).items():
            if count > 1:
                yield error(f"{expr.quantifier} names '{name}' twice", expr)
            if name not in used:
                message = f"{expr.quantifier} names '{name}', but its formula does not use it"
                yield error(message, expr)
            elif name in outside:
                message = (
                    f"'{name}' under {expr.quantifier} is not the '{name}' outside it: "
                    "rename one of them"
                )
                yield warning(message, expr)
        yield from _far_reach(expr)
        outside |= set(expr.variables)
    for child in children(expr):
        yield from _quantifiers_inside(child, outside)


def names_of_constants(
    rule: Rule, types: Mapping[str, str], has_constant: Callable[[str, str], bool]
) -> Iterator[Problem]:
    """Warnings about variables that occur once in a rule and are named like a constant.

    has_constant: tells if a type has a constant of that name.
    """
    found = list(occurrences(*rule.expressions))
    count = Counter(one.variable.name for one in found)
    for term in (one.variable for one in found if one.binder is None):
        if count[term.name] > 1 or term.name in rule.per_constant:
            continue
        type_name = types.get(term.name, "")
        if has_constant(type_name, term.name):
            message = (
                f"'{term.name}' is a variable here, although type '{type_name}' has a constant "
                f'of that name: write "{term.name}" with quotes to mean the constant'
            )
            yield warning(message, term)


def _far_reach(expr: Quantified) -> Iterator[Problem]:
    """A warning if a quantifier seems to end with the brackets after it, but does not."""
    body = expr.body
    if not (isinstance(body, Operation) and body.op in ("=>", "<=>")):
        return
    whole, left = body.place, body.operands[0].place
    # The place of an operand leaves out the brackets around it; that of the operation has them.
    if not (expr.place and whole and left and _order(whole) < _order(left)):
        return
    is_bare = expr.place.end == whole.end  # no brackets around the operation itself
    if is_bare and not set(expr.variables) & set(free_variables(body.operands[1])):
        names = ", ".join(expr.variables)
        message = (
            f"{expr.quantifier} {names} reaches over '{body.op}' to the end of the formula: "
            f"write '({expr.quantifier} {names} …) {body.op} …' to end it before"
        )
        yield warning(message, expr)


def _order(place: Place) -> tuple[int, int]:
    return place.line, place.column


# Conditions.


def _condition_problems(model: Model, rule: Rule, condition: Expr) -> Iterator[Problem]:
    allowed = "where takes comparisons of logical terms, and Boolean atoms or their negation"
    literal = condition
    if isinstance(condition, Unary) and condition.op == "!":
        literal = condition.operand
    if isinstance(literal, Atom):
        if not is_truth(model, literal):
            yield error(f"'{shown(literal)}' is real, but {allowed}", literal)
        elif model.predicate_by_name[literal.predicate].unique is not None:
            instead = f"{shown(condition)} => (…)" if rule.hard else f"{shown(condition)} * (…)"
            message = (
                f"'{literal.predicate}' has an argument marked '!', so that it cannot be "
                f"closed-world as where needs it: write '{instead}' instead"
            )
            yield error(message, condition)
    elif not (isinstance(condition, Comparison) and condition.is_logical):
        yield error(f"{allowed}, not '{shown(condition)}'", condition)
