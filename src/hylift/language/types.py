"""What the parts of a model are: types of variables, truths or numbers, values of constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from hylift.errors import ModelError, UnsupportedError, did_you_mean
from hylift.language.report import Problem
from hylift.language.syntax import (
    FUNCTIONS,
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
    Number,
    Parameter,
    ParameterDeclaration,
    Power,
    PredicateDeclaration,
    Quantified,
    Rule,
    Truth,
    Unary,
    Variable,
)
from hylift.language.text.formatter import format_expression
from hylift.language.text.hints import word_hint
from hylift.language.walk import MAX_DEPTH, children, depth, logical_comparisons, nodes

LOGIC = ("^", "v", "=>", "<=>")
"""The operators between truths."""

BUILT_IN = (*FUNCTIONS, "gaussian", "normal")
"""What the language itself calls a function."""


def is_truth(model: Model, expr: Expr) -> bool:
    """Whether an expression is true or false, rather than a number."""
    match expr:
        case Atom(predicate=name):
            declared = model.predicate_by_name.get(name)
            return declared is None or declared.domain.is_discrete
        case Truth() | Quantified():
            return True
        case Unary(op=op):
            return op == "!"
        case Binary(op=op):
            return op in LOGIC
        case Comparison():
            return expr.is_logical
    return False


def arity_fault(declared: PredicateDeclaration, given: int) -> str | None:
    """What is wrong with a number of arguments, if anything."""
    allowed = len(declared.arguments)
    if given == allowed:
        return None
    types = f" ({', '.join(declared.arguments)})" if allowed else ""
    number = f"{allowed or 'no'} argument{'' if allowed == 1 else 's'}"
    return f"'{declared.name}' takes {number}{types}, not {given}"


# The types of logical variables.


@dataclass(frozen=True, slots=True)
class _Standing:
    """A variable in an argument of an atom, and the quantifier that binds it (None: free)."""

    variable: Variable
    type: str
    atom: Atom
    binder: int | None


def variable_types(model: Model, rule: Rule) -> dict[str, str]:
    """The type of every variable of a rule, quantified ones included."""
    types, found = typed_variables(model, rule)
    if found:
        raise ModelError(str(found[0]))
    return types


def typed_variables(model: Model, rule: Rule) -> tuple[dict[str, str], list[Problem]]:
    """The types of a rule's variables, and what is wrong with them.

    A variable has the type of the arguments it stands in.
    """
    standings = [s for expr in (rule.formula, *rule.where) for s in _standings(model, expr, {})]
    first: dict[str, _Standing] = {}
    for standing in standings:
        first.setdefault(standing.variable.name, standing)
    clashing: dict[str, Problem] = {}
    for standing in standings:
        name = standing.variable.name
        if standing.type != first[name].type and name not in clashing:
            clashing[name] = _clash(first[name], standing)
    types = {name: standing.type for name, standing in first.items()}
    compared = [c for expr in (rule.formula, *rule.where) for c in logical_comparisons(expr)]
    return types, [*clashing.values(), *_unlike(types, compared), *_unbound(model, rule)]


def _standings(model: Model, expr: Expr, binders: Mapping[str, int]) -> Iterator[_Standing]:
    if isinstance(expr, Quantified):
        binders = {**binders, **dict.fromkeys(expr.variables, id(expr))}
    if isinstance(expr, Atom) and expr.predicate in model.predicate_by_name:
        argument_types = model.predicate_by_name[expr.predicate].arguments
        for term, type_name in zip(expr.arguments, argument_types, strict=False):
            if isinstance(term, Variable):
                yield _Standing(term, type_name, expr, binders.get(term.name))
    for child in children(expr):
        yield from _standings(model, child, binders)


def _clash(one: _Standing, other: _Standing) -> Problem:
    name = one.variable.name
    message = (
        f"variable '{name}' is a '{one.type}' in {shown(one.atom)} "
        f"and a '{other.type}' in {shown(other.atom)}"
    )
    if one.binder != other.binder:
        message += f". They are two variables: rename one '{name}'"
    return Problem("error", message, other.variable.place)


def _unlike(types: Mapping[str, str], compared: list[Comparison]) -> list[Problem]:
    """The comparisons between variables of two types."""
    pairs = [
        (c, types[c.left.name], types[c.right.name])
        for c in compared
        if isinstance(c.left, Variable) and c.left.name in types
        if isinstance(c.right, Variable) and c.right.name in types
    ]
    return [
        Problem("error", f"'{shown(c)}' compares a '{one}' with a '{other}'", c.place)
        for c, one, other in pairs
        if one != other
    ]


def _unbound(model: Model, rule: Rule) -> list[Problem]:
    """The variables that only comparisons mention, so that nothing gives them constants."""
    bound = {name for expr in (rule.formula, *rule.where) for name in _atom_variables(expr)}
    known = [*model.parameter_by_name, *model.predicate_by_name]
    found: dict[tuple[str, str], Problem] = {}
    for expr in (rule.formula, *rule.where):
        where = " in where" if expr is not rule.formula else ""
        for variable, binder in _loose(expr, dict.fromkeys(bound, True), {}):
            name = variable.name
            if binder:
                what, part = f"variable '{name}' of {binder}", "its formula"
            else:
                what, part = f"variable '{name}'", "the rule"
            message = f"{what} is compared{where}, but no atom of {part} has it"
            if close := did_you_mean(name, known):
                message += f".{close}"
            found.setdefault((name, binder), Problem("error", message, variable.place))
    return list(found.values())


def _atom_variables(expr: Expr) -> set[str]:
    """The variables that stand in atoms and that no quantifier binds."""
    if isinstance(expr, Atom):
        return {term.name for term in expr.arguments if isinstance(term, Variable)}
    found = {name for child in children(expr) for name in _atom_variables(child)}
    return found - set(expr.variables) if isinstance(expr, Quantified) else found


def _loose(
    expr: Expr, bound: Mapping[str, bool], binder: Mapping[str, str]
) -> Iterator[tuple[Variable, str]]:
    """The variables outside atoms that none of the atoms around has; with their quantifier."""
    if isinstance(expr, Quantified):
        inside = _atom_variables(expr.body)
        bound = {**bound, **{name: name in inside for name in expr.variables}}
        binder = {**binder, **dict.fromkeys(expr.variables, expr.quantifier)}
    if isinstance(expr, Variable) and not bound.get(expr.name, False):
        yield expr, binder.get(expr.name, "")
    for child in children(expr):
        yield from _loose(child, bound, binder)


def shown(expr: Expr) -> str:
    """The expression as text for messages, or dots if it cannot be written."""
    if depth(expr) > MAX_DEPTH:
        return "…"
    try:
        return format_expression(expr)
    except UnsupportedError:
        return str(expr.value) if isinstance(expr, Number) else "…"


# The values of constants.

_KIND: dict[type, str] = {
    Truth: "a truth value",
    Atom: "an atom",
    Comparison: "a comparison",
    Quantified: "a formula",
    Gaussian: "a density",
    Normal: "a density",
    Apply: "a Python function",
    Variable: "a variable",
    Constant: "a constant of a type",
}

_FUNCTION: dict[str, Callable[..., float]] = {
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "min": min,
    "max": max,
}


class _NoConstantError(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @classmethod
    def at(cls, expr: Expr, message: str) -> _NoConstantError:
        return cls(Problem("error", message, expr.place))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known of constants: the value of each, or what keeps it from having one."""

    values: dict[str, float | Problem]
    declared: Mapping[str, ParameterDeclaration]

    def value(self, parameter: Parameter, what: str) -> float:
        name = parameter.name
        if name not in self.values and name in self.declared:
            message = f"{what} needs '{name}', which is declared only after it"
            raise _NoConstantError.at(parameter, message)
        if name not in self.values:
            sound = [known for known, value in self.values.items() if isinstance(value, float)]
            message = f"unknown constant '{name}'"
            hint = word_hint(name)
            message += f"; {hint}" if hint else f".{did_you_mean(name, sound)}"
            raise _NoConstantError.at(parameter, message)
        value = self.values[name]
        if isinstance(value, Problem):
            raise _NoConstantError(value)
        return value


def constant_value(model: Model, expr: Expr, what: str) -> float:
    """The value of arithmetic on numbers and constants; `what` ("a weight") is what it is for."""
    value = constant_or_problem(model, expr, what)
    if isinstance(value, Problem):
        raise ModelError(str(value))
    return value


def constant_or_problem(model: Model, expr: Expr, what: str) -> float | Problem:
    """The value of arithmetic on numbers and constants, or what keeps it from having one."""
    names = {node.name for node in nodes(expr) if isinstance(node, Parameter)}
    declared = model.parameter_by_name
    written = {name: declared[name].value for name in names & declared.keys()}
    numbers = {name: value.value for name, value in written.items() if isinstance(value, Number)}
    is_plain = len(numbers) == len(names) and all(map(math.isfinite, numbers.values()))
    scope = _Scope({**numbers}, {}) if is_plain else _all_constants(model)
    try:
        return _finite(expr, scope, what)
    except _NoConstantError as error:
        return error.problem


def solved_constants(model: Model) -> tuple[Model, list[Problem]]:
    """The model with a number in place of each constant's arithmetic, and what went wrong."""
    values = _all_constants(model).values
    solved = tuple(
        declared
        if isinstance(value := values[declared.name], Problem)
        else replace(declared, value=Number(value, place=declared.value.place))
        for declared in model.parameters
    )
    wrong = [value for value in values.values() if isinstance(value, Problem)]
    return replace(model, parameters=solved), wrong


def _all_constants(model: Model) -> _Scope:
    """Every constant, from the ones declared before it."""
    scope = _Scope({}, model.parameter_by_name)
    for declared in model.parameters:
        what = f"constant '{declared.name}'"
        place = declared.value.place or declared.place
        scope.values[declared.name] = Problem("error", f"{what} is defined by itself", place)
        try:
            scope.values[declared.name] = _finite(declared.value, scope, what)
        except _NoConstantError as error:
            scope.values[declared.name] = error.problem
    return scope


def _finite(expr: Expr, scope: _Scope, what: str) -> float:
    try:
        value = _value(expr, scope, what)
    except (OverflowError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise _NoConstantError.at(expr, f"{what} must be finite, but '{shown(expr)}' is not")
    return value


def _value(expr: Expr, scope: _Scope, what: str) -> float:
    """The value, or whatever error Python's arithmetic raises."""
    match expr:
        case Number(value=value):
            return value
        case Parameter():
            return scope.value(expr, what)
        case Unary(op="-", operand=operand):
            return -_value(operand, scope, what)
        case Power(base=base, exponent=exponent):
            return math.pow(_value(base, scope, what), exponent)
        case Call(function=name, arguments=arguments):
            if fault := call_fault(expr):
                raise _NoConstantError.at(expr, fault)
            return _FUNCTION[name](*(_value(argument, scope, what) for argument in arguments))
        case Binary(op=op, left=left, right=right) if op not in LOGIC:
            return _arithmetic(expr, _value(left, scope, what), _value(right, scope, what), what)
    kind = _KIND.get(type(expr), "a truth value")
    raise _NoConstantError.at(
        expr, f"{what} is arithmetic on numbers and constants, but '{shown(expr)}' is {kind}"
    )


def call_fault(call: Call) -> str | None:
    """What is wrong with the name of a function or the number of its arguments, if anything."""
    if call.function not in FUNCTIONS:
        return f"unknown function '{call.function}'.{did_you_mean(call.function, FUNCTIONS)}"
    least, most = FUNCTIONS[call.function]
    given = len(call.arguments)
    if least <= given and (most is None or given <= most):
        return None
    allowed = str(least) if most == least else f"at least {least}"
    plural = "" if allowed == "1" else "s"
    return f"'{call.function}' takes {allowed} argument{plural}, not {given}"


def _arithmetic(expr: Binary, left: float, right: float, what: str) -> float:
    match expr.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        raise _NoConstantError.at(expr, f"{what} divides by zero in '{shown(expr)}'")
    return left / right
