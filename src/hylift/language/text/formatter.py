"""Model -> text, such that reading the text gives the same model again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from hylift.errors import UnsupportedError
from hylift.graph.domains import Domain, boolean
from hylift.language.syntax import (
    Expr,
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.text.notation import constant_list, number_text
from hylift.language.text.usage import numeric_predicates
from hylift.language.text.writer import Known, Writer, checked, variables_of
from hylift.language.walk import MAX_DEPTH, TOO_DEEP, depth


def format_model(model: Model) -> str:
    """The model as text: types, predicates, constants and rules, as few brackets as possible."""
    return _joined([[line() for line in section] for section in _sections(model)])


def show_model(model: Model) -> str:
    """The model as text to look at, whatever it holds.

    Python's functions are shown by their names, and a comment stands for what cannot be written.
    """
    flat = tuple(
        rule
        for rule in model.rules
        if all(depth(expr) <= MAX_DEPTH for expr in (rule.formula, *rule.where))
    )
    sections = _sections(replace(model, rules=flat), shows_functions=True)
    lines = [[_or_comment(line) for line in section] for section in sections]
    num_deep = len(model.rules) - len(flat)
    return _joined([*lines, [f"// {TOO_DEEP}"] * num_deep])


def format_rule(rule: Rule) -> str:
    """A rule as it stands in a model; words that nothing declares are written so as to be safe."""
    return Writer.for_rule(rule, Known()).rule(rule)


def format_expression(expr: Expr) -> str:
    """An expression with as few brackets as possible."""
    return Writer(Known(), variables_of([expr])).text(expr)


Line = Callable[[], str]
"""Writes one statement, or raises `UnsupportedError`."""


def _sections(model: Model, shows_functions: bool = False) -> list[list[Line]]:
    known = Known.of(model)
    return [
        [partial(_type_text, declared) for declared in model.types],
        list(_predicate_lines(model)),
        [partial(_parameter_text, declared) for declared in model.parameters],
        [partial(_rule_text, rule, known, shows_functions) for rule in model.rules],
    ]


def _joined(sections: list[list[str]]) -> str:
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


def _or_comment(line: Line) -> str:
    try:
        return line()
    except UnsupportedError as error:
        return f"// {error}"
    except RecursionError:
        return f"// {TOO_DEEP}"


def _rule_text(rule: Rule, known: Known, shows_functions: bool) -> str:
    return Writer.for_rule(rule, known, shows_functions).rule(rule)


# Declarations.


def _type_text(declared: TypeDeclaration) -> str:
    name = checked(declared.name, "type")
    if declared.constants is None:
        return name
    return f"{name} = {constant_list(declared.constants)}"


def _predicate_lines(model: Model) -> Iterator[Line]:
    reals = {declared.name for declared in model.predicates if not declared.domain.is_discrete}
    booleans = {declared.name for declared in model.predicates if declared.domain.is_discrete}
    numeric = numeric_predicates(model.rules, booleans, reals)
    seen: set[str] = set()
    for declared in model.predicates:
        # Without its domain, the declaration would be read as something else.
        is_clear = declared.name not in numeric | seen and bool(declared.arguments)
        seen.add(declared.name)
        yield partial(_predicate_text, declared, is_clear)


def _predicate_text(declared: PredicateDeclaration, is_clear: bool) -> str:
    text = _signature(declared)
    if declared.domain != boolean:
        return f"{text}: {_domain_text(declared)}"
    return f"{text}: boolean" if declared.unique is None and not is_clear else text


def _signature(declared: PredicateDeclaration) -> str:
    name = checked(declared.name, "predicate")
    types = [checked(argument, "type") for argument in declared.arguments]
    if declared.unique is not None:
        types[declared.unique] += "!"
    return f"{name}({', '.join(types)})" if types else name


def _domain_text(declared: PredicateDeclaration) -> str:
    domain: Domain = declared.domain
    if domain.is_discrete:
        states = ", ".join(domain.states or ())
        raise UnsupportedError(f"{declared.name} cannot be written with the states {states}")
    if math.isinf(domain.lower) and math.isinf(domain.upper):
        return "real"
    return f"real[{number_text(domain.lower)}, {number_text(domain.upper)}]"


def _parameter_text(declared: ParameterDeclaration) -> str:
    name = checked(declared.name, "constant")
    return f"const {name} = {Writer(Known(), frozenset()).text(declared.value)}"
