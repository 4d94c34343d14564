"""All errors and warnings about a model."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches

from hylift.errors import ModelError, UnsupportedError, did_you_mean
from hylift.graph.domains import boolean
from hylift.language.checks.meant import (
    exactly_one,
    meant_sum,
    soft_counts,
    unweighted,
    wrong_connective,
)
from hylift.language.checks.rules import rule_problems
from hylift.language.ranges import Constants
from hylift.language.report import Problem, error, warning
from hylift.language.statements import (
    Declaration,
    Model,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.syntax import BUILT_IN, Place
from hylift.language.text.formatter import format_rule
from hylift.language.walk import (
    categoricals,
    size_fault,
    used_predicates,
    with_exact_comparisons,
)

MOST_SHOWN = 20
"""Maximum number of errors that one exception lists."""

MOST_PAIRS = 20_000
"""Maximum number of pairs of a declared and an undeclared type whose names are compared."""


def check(model: Model, closed: frozenset[str] = frozenset()) -> tuple[Problem, ...]:
    """The warnings about a model; all its errors are raised together.

    closed: predicates known to be closed-world, which makes warnings about reals more exact.
    """
    found = problems(model, closed)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors:
        shown = [str(problem) for problem in errors[:MOST_SHOWN]]
        if len(errors) > MOST_SHOWN:
            num_hidden = len(errors) - MOST_SHOWN
            shown.append(f"… and {num_hidden} more error{'s' if num_hidden > 1 else ''}")
        error = ModelError("\n\n".join(shown)).in_lines()
        error.problems = tuple(found)
        raise error
    return tuple(found)


def problems(model: Model, closed: frozenset[str] = frozenset()) -> list[Problem]:
    """All errors and warnings about a model, in order of place."""
    if too_large := list(_size_problems(model)):
        return too_large
    model = with_exact_comparisons(model)
    wrong_constants = [v for v in model.parameter_values.values() if isinstance(v, Problem)]
    found = [*_declaration_problems(model), *wrong_constants]
    listed = {
        t.name: t.constants if isinstance(t.constants, Constants) else dict.fromkeys(t.constants)
        for t in model.types
        if t.constants is not None
    }
    for number, rule in enumerate(model.rules, start=1):
        wrong = rule_problems(model, rule, listed)
        found += [_attributed(problem, rule, number) for problem in wrong]
    if not any(problem.severity == "error" for problem in found):
        found += exactly_one(model)
        for number, rule in enumerate(model.rules, start=1):
            doubts = (
                *unweighted(model, rule),
                *wrong_connective(rule, closed),
                *soft_counts(model, rule),
                *meant_sum(model, rule),
            )
            found += [_attributed(problem, rule, number) for problem in doubts]
        from hylift.language.checks.normalisable import unheld_reals

        found += unheld_reals(model, closed)
    return sorted(dict.fromkeys(found), key=lambda problem: _position(problem.place))


def _size_problems(model: Model) -> Iterator[Problem]:
    """The expressions that are too large for all other checks."""
    for declared in model.parameters:
        if fault := size_fault(declared.value):
            yield error(f"constant '{declared.name}': {fault}", declared)
    for number, rule in enumerate(model.rules, start=1):
        for expr in (*rule.expressions, *rule.weights):
            if fault := size_fault(expr):
                place = expr.place or rule.place
                name = "" if place else f"rule {number}: "
                yield Problem("error", f"{name}{fault}", place)
                break


def _position(place: Place | None) -> tuple[str, int, int]:
    return ("", 0, 0) if place is None else (place.source.name, place.line, place.column)


def _attributed(problem: Problem, rule: Rule, number: int) -> Problem:
    """The problem with the place of its rule, or else with the number and text of the rule."""
    place = problem.place or rule.place
    if place is not None:
        return replace(problem, place=place)
    name = f"rule {number}"
    with suppress(UnsupportedError):  # Python functions have no text
        name += f", `{format_rule(rule)}`"
    return replace(problem, message=f"{name}: {problem.message}")


# Declarations.


def _declaration_problems(model: Model) -> Iterator[Problem]:
    yield from _name_problems(model)
    for declared in model.types:
        yield from _type_problems(declared)
    for predicate in model.predicates:
        yield from _predicate_problems(predicate)
    yield from _misspelt_types(model)
    rules = [rule.formula for rule in model.rules]
    looked_up = {node.table for node in categoricals(*rules) if isinstance(node.table, str)}
    for declared_table in model.tables:
        if declared_table.name not in looked_up:
            yield warning(f"no rule uses the table '{declared_table.name}'", declared_table)
    used = used_predicates(model)
    for predicate in model.predicates:
        if predicate.name not in used:
            yield warning(f"no rule uses '{predicate.name}'", predicate)


def _name_problems(model: Model) -> Iterator[Problem]:
    """Names declared twice, for two kinds of thing, or taken by built-in functions."""
    declared: list[tuple[Declaration, str]] = [
        *((d, "type") for d in model.types),
        *((d, "predicate") for d in model.predicates),
        *((d, "constant") for d in model.parameters),
        *((d, "table") for d in model.tables),
    ]
    seen: dict[str, tuple[Declaration, str]] = {}
    for node, kind in sorted(declared, key=lambda entry: _position(entry[0].place)[1:]):
        name = node.name
        if name in BUILT_IN and kind != "type":
            yield error(f"'{name}' is a built-in function: give the {kind} another name", node)
        if name not in seen:
            seen[name] = (node, kind)
            continue
        first, first_kind = seen[name]
        where = "" if first.place is None else f", first in line {first.place.line}"
        if kind == first_kind:
            yield error(f"{kind} '{name}' is declared twice{where}", node)
        else:
            yield error(f"'{name}' is both a {first_kind} and a {kind}{where}", node)
    implied = {name: p.name for p in model.predicates for name in p.arguments if name in seen}
    for name, user in implied.items():
        node, kind = seen[name]
        if kind != "type":
            yield error(f"'{name}' is both a {kind} and a type, in the arguments of '{user}'", node)


def _type_problems(declared: TypeDeclaration) -> Iterator[Problem]:
    constants = declared.constants
    if constants is not None and not constants:
        message = (
            f"type '{declared.name}' lists no constants; omit the list to take them from the data"
        )
        yield error(message, declared)
    elif isinstance(constants, tuple) and len(set(constants)) < len(constants):
        twin = next(name for name, count in Counter(constants).items() if count > 1)
        yield error(f"type '{declared.name}' lists '{twin}' twice", declared)
    elif declared.repeated:
        message = f"type '{declared.name}' lists '{declared.repeated[0]}' more than once"
        yield warning(f"{message}: it is one constant", declared)


def _predicate_problems(declared: PredicateDeclaration) -> Iterator[Problem]:
    if declared.domain.is_discrete and declared.domain != boolean:
        message = (
            f"'{declared.name}' has its own states: "
            "mark an argument with '!' to have one categorical variable over a type"
        )
        yield error(message, declared)
    if declared.unique is not None and not declared.domain.is_discrete:
        message = (
            f"'{declared.name}' is real, so no argument can be marked '!': "
            "exactly one constant holds only for truth values"
        )
        yield error(message, declared)


def _misspelt_types(model: Model) -> Iterator[Problem]:
    """Undeclared types whose name is close to that of a declared one."""
    letters = {declared.name: _letters(declared.name) for declared in model.types}
    undeclared: dict[str, PredicateDeclaration] = {}
    for predicate in model.predicates:
        for name in predicate.arguments:
            if name not in letters:
                undeclared.setdefault(name, predicate)
    num_compared = MOST_PAIRS // max(1, len(letters))
    for name, user in itertools.islice(undeclared.items(), num_compared):
        # Names that differ only in digits are different on purpose.
        unlike = [known for known, word in letters.items() if word != _letters(name)]
        if get_close_matches(name, unlike, n=1, cutoff=0.8):
            message = f"type '{name}' of '{user.name}' is not declared.{did_you_mean(name, unlike)}"
            yield warning(message, user)


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())
