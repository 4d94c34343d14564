"""Checks of rules: names, variables, quantifiers and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from hylift.errors import did_you_mean
from hylift.language.checks.formulas import (
    Listed,
    formula_problems,
    unlisted_fault,
    weight_problems,
)
from hylift.language.report import Problem, error, warning
from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    BUILT_IN,
    Atom,
    Categorical,
    Comparison,
    Constant,
    Expr,
    Operation,
    Parameter,
    Quantified,
    Term,
    Unary,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.text.notation import word_hint
from hylift.language.types import arity_fault, typed_variables
from hylift.language.walk import (
    Occurrence,
    children,
    free_variables,
    is_truth,
    logical_comparisons,
    nodes,
    occurrences,
    with_parents,
)


def rule_problems(model: Model, rule: Rule, listed: Listed) -> Iterator[Problem]:
    """The problems of a rule; if a name is unknown, its formula is not checked further."""
    found = occurrences(*rule.expressions)
    wrong_names = list(_name_problems(model, rule, found, listed))
    yield from wrong_names
    types, wrong_types = typed_variables(model, rule, found)
    if not wrong_names:
        yield from wrong_types
        yield from _compared_constants(model, rule, types, listed)
        if any(isinstance(node, Quantified) for node in nodes(*rule.expressions)):
            outside = frozenset(one.variable.name for one in found if one.binder is None)
            for part in rule.expressions:
                yield from _quantifier_problems(part, outside)
        for condition in rule.where:
            yield from _condition_problems(model, rule, condition)
        yield from names_of_constants(rule, types, lambda t, name: name in listed.get(t, ()))
        yield from formula_problems(model, rule)
    yield from weight_problems(model, rule, types, listed, kind_known=not wrong_names)


# Names.


def _name_problems(
    model: Model, rule: Rule, found: list[Occurrence], listed: Listed
) -> Iterator[Problem]:
    variables = {one.variable.name for one in found if one.atom}
    for node, parent in with_parents(*rule.expressions):
        compared = parent if isinstance(parent, Comparison) else None
        is_subject = isinstance(parent, Categorical)
        if isinstance(node, Atom):
            yield from _atom_problems(model, node, listed, is_subject)
        elif isinstance(node, Parameter) and node.name not in model.parameter_by_name:
            yield _unknown(model, node.name, node)
        elif isinstance(node, Term) and not is_subject and not (compared and compared.is_logical):
            yield _stray_problem(model, node, compared, variables, listed)


def _atom_problems(model: Model, atom: Atom, listed: Listed, is_subject: bool) -> Iterator[Problem]:
    """is_subject: it is one of a table of probabilities, and a variable rather than a state."""
    declared = model.predicate_by_name.get(atom.predicate)
    if declared is None:
        yield _unknown(model, atom.predicate, atom)
    elif is_subject and declared.unique is not None and not declared.is_whole(atom):
        others = [name for at, name in enumerate(declared.arguments) if at != declared.unique]
        yield error(
            f"'{shown(atom)}' in categorical is written without the argument marked '!', as "
            f"'{declared.name}({', '.join(others)})'",
            atom,
        )
    elif not (is_subject and declared.is_whole(atom)) and (
        fault := arity_fault(declared, len(atom.arguments))
    ):
        yield error(fault, atom)
    else:
        types_of = declared.types_of(atom)
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Constant):
                yield from _unlisted(listed, types_of[position], term)
            elif term.shift and position == declared.unique and not is_subject:
                yield error(
                    f"'{shown(term)}' stands in the '!' argument of '{declared.name}', "
                    "whose constants are values and have no neighbours",
                    term,
                )


def _unlisted(listed: Listed, type_name: str, constant: Constant) -> Iterator[Problem]:
    """An error if a type lists its constants, but not this one."""
    if type_name in listed and constant.name not in listed[type_name]:
        yield error(unlisted_fault(listed[type_name], type_name, constant.name), constant)


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
    return error(message + (f"; {hint}" if hint else f".{did_you_mean(name, known)}"), node)


def _stray_problem(
    model: Model, term: Term, comparison: Comparison | None, variables: set[str], listed: Listed
) -> Problem:
    """The error about a logical term in place of a truth value or number."""
    types = [name for name, constants in listed.items() if term.name in constants]
    if term.name not in variables if isinstance(term, Variable) else not types:
        return _unknown(model, term.name, term)
    what = f"'{term.name}' of type '{types[0]}'" if types else ""
    if isinstance(term, Variable):
        what = f"the variable '{shown(term)}'"
    if comparison is None:
        return error(f"{what} is neither a number nor a truth value", term)
    other = comparison.right if comparison.left is term else comparison.left
    kind = "truth value" if is_truth(model, other) else "number"
    return error(f"'{shown(comparison)}' compares {what} with the {kind} '{shown(other)}'", term)


# Variables.


def _compared_constants(
    model: Model, rule: Rule, types: Mapping[str, str], listed: Listed
) -> Iterator[Problem]:
    for comparison in logical_comparisons(*rule.expressions):
        match comparison.left, comparison.right:
            case (Variable(name=name), Constant() as constant) | (
                Constant() as constant,
                Variable(name=name),
            ):
                yield from _unlisted(listed, types.get(name, ""), constant)
            case Constant() as left, Constant() as right:
                known = [*model.parameter_by_name, *model.predicate_by_name]
                close = did_you_mean(left.name, known) or did_you_mean(right.name, known)
                yield error(
                    f"'{shown(comparison)}' compares two constants; variables begin with a "
                    f"small letter.{close}",
                    comparison,
                )


def _quantifier_problems(expr: Expr, outside: frozenset[str]) -> Iterator[Problem]:
    if isinstance(expr, Quantified):
        used = free_variables(expr.body)
        for name, count in Counter(expr.variables).items():
            if count > 1:
                yield error(f"{expr.quantifier} names '{name}' twice", expr)
            if name not in used:
                yield error(
                    f"{expr.quantifier} names '{name}', but its formula does not use it", expr
                )
            elif name in outside:
                reach = f", or put brackets around all that {expr.quantifier} is about"
                yield warning(
                    f"'{name}' under {expr.quantifier} is not the '{name}' outside it: "
                    f"rename one of them{'' if expr.is_truth else reach}",
                    expr,
                )
        yield from _far_reach(expr)
        outside |= set(expr.variables)
    for child in children(expr):
        yield from _quantifier_problems(child, outside)


def names_of_constants(
    rule: Rule, types: Mapping[str, str], has_constant: Callable[[str, str], bool]
) -> Iterator[Problem]:
    """Warnings about variables that occur once in a rule and are named like a constant.

    has_constant: returns True if a type has a constant of that name.
    """
    found = occurrences(*rule.expressions)
    count = Counter(one.variable.name for one in found)
    for term in (one.variable for one in found if one.binder is None):
        type_name = types.get(term.name, "")
        is_alone = count[term.name] == 1 and term.name not in rule.per_constant
        if is_alone and has_constant(type_name, term.name):
            yield warning(
                f"'{term.name}' is a variable here, although type '{type_name}' has a constant "
                f'of that name: write "{term.name}" with quotes to mean the constant',
                term,
            )


def _far_reach(expr: Quantified) -> Iterator[Problem]:
    """A warning if a quantifier seems to end with the brackets after it, but does not."""
    body = expr.body
    if not (isinstance(body, Operation) and body.op in ("=>", "<=>")):
        return
    whole, left = body.place, body.operands[0].place
    # The place of an operand leaves out the brackets around it; that of the operation has them.
    if not (expr.place and whole and left):
        return
    is_bracketed = (whole.line, whole.column) < (left.line, left.column)
    is_bare = expr.place.end == whole.end  # no brackets around the operation itself
    is_used = not set(expr.variables).isdisjoint(free_variables(body.operands[1]))
    if is_bracketed and is_bare and not is_used:
        names = ", ".join(expr.variables)
        yield warning(
            f"{expr.quantifier} {names} extends over '{body.op}' to the end of the formula: "
            f"write '({expr.quantifier} {names} …) {body.op} …' to end it before",
            expr,
        )


# Conditions.


def _condition_problems(model: Model, rule: Rule, condition: Expr) -> Iterator[Problem]:
    allowed = "where takes comparisons and truth values that the data decide"
    literal = condition
    if isinstance(condition, Unary) and condition.op == "!":
        literal = condition.operand
    if isinstance(literal, Atom):
        if not is_truth(model, literal):
            yield error(f"'{shown(literal)}' is real, but {allowed}", literal)
        elif model.predicate_by_name[literal.predicate].unique is not None:
            yield error(
                f"'{literal.predicate}' has an argument marked '!', so it cannot be "
                "closed-world, as where requires: write "
                f"'{shown(condition)} {'=>' if rule.hard else '*'} (…)' instead",
                condition,
            )
    elif any(isinstance(part, Comparison) and part.slope for part in nodes(condition)) or not (
        isinstance(literal, Comparison) or is_truth(model, literal)
    ):
        yield error(f"{allowed}, not '{shown(condition)}'", condition)
