"""Checks of weights: every rule has the one it needs, every table all its entries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from hylift.errors import did_you_mean
from hylift.language.report import Problem, error, warning
from hylift.language.syntax import (
    Atom,
    Expr,
    Model,
    Operation,
    Place,
    Rule,
    Variable,
    WeightTable,
)
from hylift.language.text.formatter import shown
from hylift.language.types import constant_or_problem
from hylift.language.walk import atoms, free_variables, is_truth, terms

Listed = Mapping[str, Mapping[str, None]]
"""The constants of each type that lists them, in their order."""

MAX_WEIGHT = 1e100

MOST_COMPARED = 10_000
"""Maximum number of constants that are compared with a misspelt one."""


def weight_problems(
    model: Model, rule: Rule, types: Mapping[str, str], listed: Listed, *, kind_known: bool
) -> Iterator[Problem]:
    """The problems of a rule's weight; kind_known: all names in its formula are known."""
    if kind_known:
        yield from _missing_weight(model, rule)
    free = free_variables(rule.formula)
    for name in rule.per_constant:
        if name not in free:
            yield error(f"'+{name}' asks for a weight per constant, but '{name}' is not free", rule)
    if rule.hard and rule.weight is not None:
        yield error("a hard rule has no weight", rule.weight)
    elif isinstance(rule.weight, WeightTable):
        yield from _table_problems(model, rule, rule.weight, types, listed)
    elif rule.weight is not None:
        weight = constant_or_problem(model, rule.weight, "a weight")
        if isinstance(weight, Problem):
            yield weight
        elif weight == 0:
            yield warning("a rule of weight 0 changes nothing", rule.weight)
        else:
            yield from _too_large(weight, rule.weight.place)


def _too_large(weight: float, place: Place | None) -> Iterator[Problem]:
    if abs(weight) > MAX_WEIGHT:
        message = (
            f"a weight of {weight:g} is too large to compute with; {MAX_WEIGHT:g} is the most. "
            "For a hard rule, end it with a period instead"
        )
        yield Problem("error", message, place)


def _missing_weight(model: Model, rule: Rule) -> Iterator[Problem]:
    formula = rule.formula
    if not atoms(formula):
        yield error("the rule mentions no atom", formula)
    elif rule.weight is not None or rule.hard:
        return
    elif is_truth(model, formula):
        message = "the rule needs a weight, or a period at its end to be hard"
        if isinstance(formula, Atom) and _is_declaration(model, formula):
            message = (
                f"'{formula.predicate}' is declared already{_line_of(model, formula)}; {message}"
            )
        yield error(message, formula)
    elif (constant := _leading_constant(formula)) is not None:
        number = shown(constant)
        message = (
            f"'{shown(formula)}' is a sum or difference that starts with {number}: "
            f"for a rule of weight {number} write '{number} (…)'"
        )
        yield error(message, formula)


def _is_declaration(model: Model, atom: Atom) -> bool:
    """True if the arguments of an atom are types, as in a declaration."""
    words = (term.name for term in atom.arguments if isinstance(term, Variable))
    return any(word in model.type_by_name for word in words)


def _line_of(model: Model, atom: Atom) -> str:
    declared = model.predicate_by_name[atom.predicate].place
    return "" if declared is None else f" in line {declared.line}"


def _leading_constant(formula: Expr) -> Expr | None:
    """The constant term that a sum or a difference starts with."""
    first = formula
    while isinstance(first, Operation) and first.op in ("+", "-"):
        first = first.operands[0]
    return None if first is formula or atoms(first) or any(terms(first)) else first


def _table_problems(
    model: Model, rule: Rule, table: WeightTable, types: Mapping[str, str], listed: Listed
) -> Iterator[Problem]:
    for weight in rule.weights:
        value = constant_or_problem(model, weight, "a weight")
        if isinstance(value, Problem):
            yield value
        else:
            yield from _too_large(value, weight.place)
    if not rule.per_constant:
        message = "a table of weights needs a variable marked '+' in the formula, as in 'A(+x)'"
        yield error(message, table)
        return
    columns = [listed.get(types.get(name, "")) for name in rule.per_constant]
    seen: set[tuple[str, ...]] = set()
    places = table.key_places or itertools.repeat(table.place)
    for (key, _), place in zip(table.entries, places, strict=False):
        if key in seen:
            message = f"the table of weights has '{', '.join(key)}' twice"
            yield Problem("error", message, place)
        seen.add(key)
        for message in _key_faults(rule, key, columns, types):
            yield Problem("error", message, place)
    if table.default is None:
        yield from _missing_keys(table, seen, columns)


def _key_faults(
    rule: Rule,
    key: tuple[str, ...],
    columns: Sequence[Mapping[str, None] | None],
    types: Mapping[str, str],
) -> Iterator[str]:
    wanted = len(rule.per_constant)
    if len(key) != wanted:
        names = ", ".join(f"+{name}" for name in rule.per_constant)
        yield (
            f"a key of this table has {wanted} constant{'' if wanted == 1 else 's'} ({names}), "
            f"but '{', '.join(key)}' has {len(key)}"
        )
        return
    for name, constant, constants in zip(rule.per_constant, key, columns, strict=True):
        if constants is not None and constant not in constants:
            yield unlisted_fault(constants, types[name], constant)


def unlisted_fault(constants: Mapping[str, None], type_name: str, constant: str) -> str:
    """The error about a constant that its type does not list."""
    close = did_you_mean(constant, itertools.islice(constants, MOST_COMPARED))
    return f"type '{type_name}' has no constant '{constant}'.{close}"


def _missing_keys(
    table: WeightTable,
    given: set[tuple[str, ...]],
    columns: Sequence[Mapping[str, None] | None],
) -> Iterator[Problem]:
    known = [constants for constants in columns if constants is not None]
    if len(known) < len(columns):
        return
    combinations = itertools.product(*known)
    missing = list(itertools.islice((key for key in combinations if key not in given), 4))
    if missing:
        names = "; ".join(", ".join(key) for key in missing[:3])
        more = "; …" if len(missing) > 3 else ""
        message = f"the table has no weight for {names}{more}: add it, or a default, '*: 0'"
        yield error(message, table)
