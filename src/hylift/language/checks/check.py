"""Whether a model holds together: every error at once, and what is worth a second look."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches

from hylift.errors import ModelError, UnsupportedError, did_you_mean
from hylift.graph.domains import boolean
from hylift.language.checks.rules import rule_problems
from hylift.language.report import Problem
from hylift.language.syntax import (
    BUILT_IN,
    Model,
    Place,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.text.formatter import format_rule
from hylift.language.types import solved_constants
from hylift.language.walk import MAX_DEPTH, TOO_DEEP, depth, used_predicates

MOST_SHOWN = 20
"""The errors that one exception lists."""

MOST_PAIRS = 20_000
"""The pairs of a type and one that is not declared whose names are compared."""


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
        raise ModelError("\n\n".join(shown))
    return tuple(found)


def problems(model: Model, closed: frozenset[str] = frozenset()) -> list[Problem]:
    """All errors and warnings about a model, in order of place."""
    if too_deep := list(_depth_problems(model)):
        return too_deep
    solved, wrong_constants = solved_constants(model)
    lists = [(declared, dict.fromkeys(declared.constants or ())) for declared in model.types]
    found = [*_declaration_problems(model, lists), *wrong_constants]
    listed = {t.name: constants for t, constants in lists if t.constants is not None}
    for number, rule in enumerate(model.rules, start=1):
        wrong = rule_problems(solved, rule, listed)
        found += [_attributed(problem, rule, number) for problem in wrong]
    if not any(problem.severity == "error" for problem in found):
        from hylift.language.checks.normalisable import unheld_reals

        found += unheld_reals(model, closed)
    return sorted(dict.fromkeys(found), key=_position)


def _depth_problems(model: Model) -> Iterator[Problem]:
    """The expressions that nothing else may look into, as it would not come back."""
    for declared in model.parameters:
        if depth(declared.value) > MAX_DEPTH:
            yield Problem("error", f"constant '{declared.name}': {TOO_DEEP}", declared.place)
    for number, rule in enumerate(model.rules, start=1):
        for expr in (*rule.expressions, *rule.weights):
            if depth(expr) > MAX_DEPTH:
                place = expr.place or rule.place
                name = "" if place else f"rule {number}: "
                yield Problem("error", f"{name}{TOO_DEEP}", place)
                break


def _position(problem: Problem) -> tuple[str, int, int]:
    place = problem.place
    return ("", 0, 0) if place is None else (place.source.name, place.line, place.column)


def _attributed(problem: Problem, rule: Rule, number: int) -> Problem:
    """The problem with a place, or with the words that tell which rule it is about."""
    place = problem.place or rule.place
    if place is not None:
        return replace(problem, place=place)
    name = f"rule {number}"
    with suppress(UnsupportedError):  # Python functions have no text
        name += f", `{format_rule(rule)}`"
    return replace(problem, message=f"{name}: {problem.message}")


# Declarations.


def _declaration_problems(
    model: Model, lists: Iterable[tuple[TypeDeclaration, Mapping[str, None]]]
) -> Iterator[Problem]:
    """lists: the types with their constants, each once."""
    yield from _repeated_names(model)
    yield from _taken_names(model)
    for declared_type, constants in lists:
        yield from _type_problems(declared_type, len(constants))
    for predicate in model.predicates:
        yield from _predicate_problems(predicate)
    yield from _strange_types(model)
    yield from _unused_predicates(model)


def _repeated_names(model: Model) -> Iterator[Problem]:
    """Names declared twice, or for two kinds of thing."""
    seen: dict[str, tuple[str, Place | None]] = {}
    declared = [
        *((d.name, "a type", d.place) for d in model.types),
        *((d.name, "a predicate", d.place) for d in model.predicates),
        *((d.name, "a constant", d.place) for d in model.parameters),
    ]
    for name, kind, place in sorted(declared, key=lambda entry: _order(entry[2])):
        if name not in seen:
            seen[name] = (kind, place)
            continue
        first_kind, first_place = seen[name]
        first = "" if first_place is None else f", first in line {first_place.line}"
        if kind == first_kind:
            yield Problem("error", f"{kind[2:]} '{name}' is declared twice{first}", place)
        else:
            yield Problem("error", f"'{name}' is both {first_kind} and {kind}{first}", place)
    implied = {name: p for p in model.predicates for name in p.arguments if name in seen}
    for name, predicate in implied.items():
        kind, place = seen[name]
        if kind != "a type":
            message = f"'{name}' is both {kind} and a type, in the arguments of '{predicate.name}'"
            yield Problem("error", message, place)


def _order(place: Place | None) -> tuple[int, int]:
    return (0, 0) if place is None else (place.line, place.column)


def _taken_names(model: Model) -> Iterator[Problem]:
    declared = [
        *((d.name, "predicate", d.place) for d in model.predicates),
        *((d.name, "constant", d.place) for d in model.parameters),
    ]
    for name, kind, place in declared:
        if name in BUILT_IN:
            message = f"'{name}' is a built-in function: give the {kind} another name"
            yield Problem("error", message, place)


def _type_problems(declared: TypeDeclaration, num_distinct: int) -> Iterator[Problem]:
    if declared.constants is None:
        return
    if not declared.constants:
        message = f"type '{declared.name}' lists no constants; without a list the data give them"
        yield Problem("error", message, declared.place)
    elif num_distinct < len(declared.constants):
        repeated = next(name for name, count in Counter(declared.constants).items() if count > 1)
        message = f"type '{declared.name}' lists '{repeated}' twice"
        yield Problem("error", message, declared.place)


def _predicate_problems(declared: PredicateDeclaration) -> Iterator[Problem]:
    if declared.domain.is_discrete and declared.domain != boolean:
        message = (
            f"'{declared.name}' has states of its own: "
            "mark an argument with '!' to have one categorical variable over a type"
        )
        yield Problem("error", message, declared.place)
    if declared.unique is not None and not declared.domain.is_discrete:
        message = (
            f"'{declared.name}' is real, so that no argument can be marked '!': "
            "exactly one constant holds only for truth values"
        )
        yield Problem("error", message, declared.place)


def _strange_types(model: Model) -> Iterator[Problem]:
    """Types that are not declared, although one of nearly the same name is."""
    letters = {declared.name: _letters(declared.name) for declared in model.types}
    undeclared: dict[str, PredicateDeclaration] = {}
    for predicate in model.predicates:
        for name in predicate.arguments:
            if name not in letters:
                undeclared.setdefault(name, predicate)
    num_compared = MOST_PAIRS // max(1, len(letters))
    for name, user in itertools.islice(undeclared.items(), num_compared):
        # Names that differ in a number alone are meant to differ.
        unlike = [known for known, word in letters.items() if word != _letters(name)]
        if get_close_matches(name, unlike, n=1, cutoff=0.8):
            message = f"type '{name}' of '{user.name}' is not declared.{did_you_mean(name, unlike)}"
            yield Problem("warning", message, user.place)


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _unused_predicates(model: Model) -> Iterator[Problem]:
    used = used_predicates(model)
    for predicate in model.predicates:
        if predicate.name not in used:
            yield Problem("warning", f"no rule uses '{predicate.name}'", predicate.place)
