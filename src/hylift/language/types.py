"""Types of logical variables, and values of constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from hylift.errors import ModelError, did_you_mean
from hylift.language.lowering.evaluate import as_number, evaluate
from hylift.language.report import Problem, error
from hylift.language.statements import Model, PredicateDeclaration, Rule
from hylift.language.syntax import (
    FUNCTIONS,
    Apply,
    Atom,
    Call,
    Categorical,
    Comparison,
    Constant,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Parameter,
    Power,
    Quantified,
    Unary,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.text.notation import word_hint
from hylift.language.walk import Occurrence, logical_comparisons, nodes, occurrences


def arity_fault(declared: PredicateDeclaration, given: int) -> str | None:
    """The error about a wrong number of arguments of a predicate, if it is wrong."""
    allowed = len(declared.arguments)
    if given == allowed:
        return None
    types = f" ({', '.join(declared.arguments)})" if allowed else ""
    number = f"{allowed or 'no'} argument{'' if allowed == 1 else 's'}"
    return f"'{declared.name}' takes {number}{types}, not {given}"


def call_fault(call: Call) -> str | None:
    """The error about the name of a function or the number of its arguments, if one is wrong."""
    if call.function not in FUNCTIONS:
        return f"unknown function '{call.function}'.{did_you_mean(call.function, FUNCTIONS)}"
    least, most = FUNCTIONS[call.function]
    given = len(call.arguments)
    if least <= given and (most is None or given <= most):
        return None
    allowed = str(least) if most == least else f"at least {least}"
    plural = "" if allowed == "1" else "s"
    return f"'{call.function}' takes {allowed} argument{plural}, not {given}"


# The types of logical variables.


def variable_types(model: Model, rule: Rule) -> dict[str, str]:
    """The type of every variable of a rule, quantified ones included."""
    types, found = typed_variables(model, rule, occurrences(*rule.expressions))
    if found:
        raise ModelError(str(found[0])).in_lines()
    return types


def typed_variables(
    model: Model, rule: Rule, found: list[Occurrence]
) -> tuple[dict[str, str], list[Problem]]:
    """The types of a rule's variables, and the errors about them.

    A variable has the type of the arguments where it occurs. found: its occurrences in the rule.
    """
    first: dict[str, tuple[Occurrence, str]] = {}
    clashes: dict[str, Problem] = {}
    for one in found:
        declared = model.predicate_by_name.get(one.atom.predicate) if one.atom else None
        types = () if declared is None or one.atom is None else declared.types_of(one.atom)
        if one.position < len(types):
            name, type_name = one.variable.name, types[one.position]
            before, type_before = first.setdefault(name, (one, type_name))
            if type_name != type_before:
                clashes.setdefault(name, _clash(before, type_before, one, type_name))
    found_types = {name: type_name for name, (_, type_name) in first.items()}
    mismatched = _mismatched(found_types, logical_comparisons(*rule.expressions))
    return found_types, [*clashes.values(), *mismatched, *_unbound(model, rule, found)]


def _clash(one: Occurrence, one_type: str, other: Occurrence, other_type: str) -> Problem:
    name = one.variable.name
    places = [
        f"a '{type_name}' in {shown(found.atom)}"
        for found, type_name in ((one, one_type), (other, other_type))
        if found.atom
    ]
    message = f"variable '{name}' is {' and '.join(places)}"
    if one.binder is not other.binder:
        message += f". They are two variables: rename one '{name}'"
    return error(message, other.variable)


def _mismatched(types: Mapping[str, str], compared: list[Comparison]) -> Iterator[Problem]:
    """The comparisons between variables of different types."""
    for node in compared:
        if isinstance(node.left, Variable) and isinstance(node.right, Variable):
            one, other = types.get(node.left.name), types.get(node.right.name)
            if one and other and one != other:
                yield error(f"'{shown(node)}' compares a '{one}' with a '{other}'", node)


def _unbound(model: Model, rule: Rule, found: list[Occurrence]) -> list[Problem]:
    """The variables that occur only in comparisons, so that no atom gives them a type."""
    bound = {(one.variable.name, id(one.binder)) for one in found if one.atom}
    in_formula = len(occurrences(rule.formula)) if rule.where else len(found)
    known = [*model.parameter_by_name, *model.predicate_by_name]
    problems: dict[tuple[str, str], Problem] = {}
    for place, one in enumerate(found):
        name, binder = one.variable.name, one.binder.quantifier if one.binder else ""
        if (name, id(one.binder)) not in bound:
            owner, part = (f" of {binder}", "its formula") if binder else ("", "the rule")
            where = " in where" if place >= in_formula else ""
            message = f"variable '{name}'{owner} is compared{where}, but no atom of {part} has it"
            if close := did_you_mean(name, known):
                message += f".{close}"
            problems.setdefault((name, binder), error(message, one.variable))
    return list(problems.values())


# The values of constants.

_KINDS: dict[type[Expr], str] = {
    Atom: "an atom",
    Comparison: "a comparison",
    Quantified: "a formula",
    Gaussian: "a density",
    Normal: "a density",
    Density: "a density",
    Categorical: "a density",
    Apply: "a Python function",
    Variable: "a variable",
    Constant: "a constant of a type",
}
"""Kinds of expressions not allowed in arithmetic on constants; all others are truth values."""

_Values = Mapping[str, float | Problem]


def constant_value(model: Model, expr: Expr, what: str) -> float:
    """The value of arithmetic on numbers and constants; errors call it `what` ("a weight")."""
    value = constant_or_problem(model, expr, what)
    if isinstance(value, Problem):
        raise ModelError(str(value)).in_lines()
    return value


def constant_or_problem(model: Model, expr: Expr, what: str) -> float | Problem:
    """The value of arithmetic on numbers and constants, or the error about it."""
    if isinstance(expr, Number) and math.isfinite(expr.value):
        return expr.value
    return _value(model, expr, model.parameter_values, what)


def parameter_values(model: Model) -> _Values:
    """The value of every constant, computed from those declared before it, or the error."""
    values: dict[str, float | Problem] = {}
    for declared in model.parameters:
        what = f"constant '{declared.name}'"
        place = declared.value.place or declared.place
        values[declared.name] = Problem("error", f"{what} is defined by itself", place)
        values[declared.name] = _value(model, declared.value, values, what)
    return values


def _value(model: Model, expr: Expr, values: _Values, what: str) -> float | Problem:
    for node in nodes(expr):
        if problem := _constant_problem(model, node, values, what):
            return problem

    leaves = {node: values[node.name] for node in nodes(expr) if isinstance(node, Parameter)}

    def value_of(part: Expr) -> float:
        return float(as_number(evaluate(part, leaves.__getitem__)))  # type: ignore[arg-type]

    for node in nodes(expr):
        if isinstance(node, Operation) and node.op == "/" and value_of(node.operands[1]) == 0:
            return error(f"{what} divides by zero in '{shown(node)}'", node)
    value = value_of(expr)
    if not math.isfinite(value):
        return error(f"{what} must be finite, but '{shown(expr)}' is not", expr)
    return value


def _constant_problem(model: Model, node: Expr, values: _Values, what: str) -> Problem | None:
    """The error about one node of arithmetic on constants."""
    match node:
        case Number() | Power() | Unary(op="-"):
            return None
        case Operation() if not node.is_logic:
            return None
        case Call():
            fault = call_fault(node)
            return error(fault, node) if fault else None
        case Parameter(name=name) if name in values:
            value = values[name]
            return value if isinstance(value, Problem) else None
        case Parameter(name=name) if name in model.parameter_by_name:
            message = f"{what} needs '{name}', which is declared after it"
        case Parameter(name=name):
            known = [known for known, value in values.items() if isinstance(value, float)]
            hint = word_hint(name)
            message = f"unknown constant '{name}'"
            message += f"; {hint}" if hint else f".{did_you_mean(name, known)}"
        case _:
            kind = _KINDS.get(type(node), "a truth value")
            message = (
                f"{what} is arithmetic on numbers and constants, but '{shown(node)}' is {kind}"
            )
    return error(message, node)
