"""Plans of rules: the tests that cut groundings away, and what remains of the formula."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError, UnsupportedError
from hylift.grounding.constants import as_integers
from hylift.grounding.world import World
from hylift.language.lowering.fold import expand, fold
from hylift.language.report import fail
from hylift.language.syntax import (
    Atom,
    Comparison,
    Constant,
    Expr,
    Number,
    PredicateDeclaration,
    Quantified,
    Rule,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.text.formatter import format_expression, format_rule
from hylift.language.types import constant_value
from hylift.language.walk import (
    atoms,
    children,
    free_variables,
    logical_comparisons,
    nodes,
    terms,
)
from hylift.words import Wording, worded

Test = Atom | Comparison
"""A closed-world atom, or x != y: decided by evidence and the grounding itself."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that must come out as `holds` for a grounding to become a factor.

    Where it does not, the formula has a constant value, or, for a test after `where` (None), there
    is no grounding at all.
    """

    test: Test
    holds: bool
    otherwise: float | None


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule made ready for grounding in a world."""

    rule: Rule
    label: str
    types: Mapping[str, str]
    """Type of each free variable, in order of appearance."""
    ranges: Mapping[str, range]
    """Ids each free variable runs over; shifts such as t+1 keep it off the ends of its type."""
    guards: tuple[Guard, ...]
    """Those after `where` first; each later one counts only where all before it hold."""
    formula: Expr
    """The formula where all guards hold."""
    slots: tuple[Atom, ...]
    """The atoms of `formula` that are variables of the graph."""
    bits: tuple[Test, ...]
    """The tests in `formula` that groundings decide and that guard nothing."""
    row_variables: tuple[str, ...]
    """The variables on which the parameters depend: `weighted_by`, and those that name a state of a
    categorical variable."""
    weighted_by: tuple[str, ...]
    """The variables with a `+`, where the constants have different weights."""
    weight: NDArray[np.float64]
    """An axis for each of `weighted_by`: the weight for each combination of their constants."""

    @property
    def conditions(self) -> tuple[Guard, ...]:
        """The guards after `where`."""
        return tuple(guard for guard in self.guards if guard.otherwise is None)

    def with_weight(self, weight: float) -> RulePlan:
        """The same rule with another weight."""
        return replace(self, weight=np.array(weight))


def rule_label(rule: Rule, place: int) -> str:
    """A rule as errors and statistics quote it; by its number if no text can say it."""
    try:
        return format_rule(rule)
    except UnsupportedError:
        return f"rule {place + 1}"


def plan_rule(
    world: World, rule: Rule, types: Mapping[str, str], formula: Expr, label: str
) -> RulePlan:
    """The guards of a rule, found by asking what each closed-world atom decides on its own.

    formula: the rule's, with relations in place of quantified truths that evidence decides.
    """
    formula = _expanded(world, formula, types, label)
    written = (rule.formula, *rule.where)
    free = dict.fromkeys(name for part in written for name in free_variables(part))
    ranges = variable_ranges(world, {name: types[name] for name in free}, written)
    conditions = [_condition(world, part) for part in rule.where]
    known: dict[Expr, bool] = {guard.test: guard.holds for guard in conditions}
    guards, formula = _find_guards(world, fold(formula, known))
    decided: list[Test] = [*logical_comparisons(formula), *_closed(world, formula)]
    slots = tuple(atom for atom in atoms(formula) if atom.predicate not in world.closed)
    weighted_by = rule.per_constant if isinstance(rule.weight, WeightTable) else ()
    return RulePlan(
        rule,
        label,
        {name: types[name] for name in free},
        _narrowed(world, types, ranges, conditions),
        (*conditions, *guards),
        formula,
        slots,
        tuple(decided),
        tuple(dict.fromkeys([*weighted_by, *_state_variables(world, slots)])),
        weighted_by,
        _weights(world, rule, types),
    )


def _expanded(world: World, formula: Expr, types: Mapping[str, str], label: str) -> Expr:
    """The formula with its quantifiers expanded."""
    quantified = [node for node in nodes(formula) if isinstance(node, Quantified)]
    if not quantified:
        return formula
    size = _expanded_size(world, formula, types)
    if size > MAX_EXPANDED:
        fail(
            f"the quantifiers of '{label}' expand to {size:,} atoms; the maximum is "
            f"{MAX_EXPANDED:,}: "
            "quantify over smaller types, or define a predicate for the quantity",
            quantified[0].place,
        )
    bound = {types[name] for node in quantified for name in node.variables}
    constants = {name: world.constants[name].to_pylist() for name in bound}
    return expand(formula, constants, types)


def _expanded_size(world: World, expr: Expr, types: Mapping[str, str]) -> int:
    """The number of atoms of an expression when its quantifiers are expanded."""
    if isinstance(expr, Atom):
        return 1
    size = sum(_expanded_size(world, child, types) for child in children(expr))
    if isinstance(expr, Quantified):
        for name in expr.variables:
            size *= world.size(types[name])
    return size


MAX_EXPANDED = 10_000
"""Most atoms of a formula whose quantifiers are expanded; tables stop far earlier."""

MAX_WEIGHTS = 1 << 26
"""Most combinations of constants that have weights of their own."""


def _condition(world: World, part: Expr) -> Guard:
    holds = True
    while isinstance(part, Unary) and part.op == "!":
        holds, part = not holds, part.operand
    if isinstance(part, Atom) and part.predicate not in world.closed:
        fail(
            worded(
                f"'where {format_expression(part)}' requires a closed-world predicate, but "
                f"'{part.predicate}' is open: pass ",
                Wording(f"closed=['{part.predicate}']", f"--closed {part.predicate}"),
                ", or multiply the formula by it",
            ),
            part.place,
        )
    assert isinstance(part, Atom | Comparison)  # the checks allow nothing else
    return Guard(part, holds, None)


def _find_guards(world: World, formula: Expr) -> tuple[list[Guard], Expr]:
    """Tests whose one outcome makes the formula constant, and the formula under their other one.

    Atoms that must be true come first: they are joins, which cut away the most.
    """
    guards: list[Guard] = []
    while (guard := next(_guards(world, formula), None)) is not None:
        guards.append(guard)
        formula = fold(formula, {guard.test: guard.holds})
    return guards, formula


def _guards(world: World, formula: Expr) -> Iterator[Guard]:
    tests: list[Test] = [*_closed(world, formula), *logical_comparisons(formula)]
    for holds in (True, False):
        for test in tests:
            constant = as_number(fold(formula, {test: not holds}))
            if constant is not None:
                yield Guard(test, holds, constant)


def _closed(world: World, formula: Expr) -> list[Atom]:
    return [atom for atom in atoms(formula) if atom.predicate in world.closed]


def as_number(formula: Expr) -> float | None:
    """The value of a formula that depends on nothing, with 1 for true; None for any other."""
    if isinstance(formula, Truth | Number):
        return float(formula.value)
    return None


def variable_ranges(
    world: World, types: Mapping[str, str], written: Sequence[Expr]
) -> dict[str, range]:
    """The ids of variables for which every t+1 and t-1 in the formulas is a constant, too."""
    shifts: dict[str, list[int]] = {name: [0] for name in types}
    for term in (term for part in written for term in terms(part)):
        if isinstance(term, Variable) and term.shift and term.name in types:
            shifts[term.name].append(term.shift)
            _check_neighbours(world, types[term.name], term)
    return {
        name: range(-min(own), max(-min(own), world.size(types[name]) - max(own)))
        for name, own in shifts.items()
    }


def _narrowed(
    world: World,
    types: Mapping[str, str],
    ranges: Mapping[str, range],
    conditions: Sequence[Guard],
) -> dict[str, range]:
    """The ranges without what a condition such as t < 3 cuts off at an end."""
    narrowed = dict(ranges)
    for guard in conditions:
        test = guard.test
        if not (guard.holds and isinstance(test, Comparison)):
            continue
        op: str = test.op
        variable, constant = test.left, test.right
        if isinstance(variable, Constant):
            op, variable, constant = MIRRORED[op], constant, variable
        if not (isinstance(variable, Variable) and isinstance(constant, Constant)):
            continue
        name = variable.name
        at = world.constant_id(types[name], constant.name) - variable.shift
        start, stop = narrowed[name].start, narrowed[name].stop
        start = max(start, {"=": at, ">": at + 1, ">=": at}.get(op, start))
        stop = min(stop, {"=": at + 1, "<": at, "<=": at + 1}.get(op, stop))
        narrowed[name] = range(start, max(start, stop))
    return narrowed


MIRRORED: dict[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _check_neighbours(world: World, type_name: str, term: Variable) -> None:
    """Raise if constants are integers with gaps: the neighbour t+1 would not be t + 1."""
    numbers = as_integers(world.constants[type_name])
    if numbers is None or (np.diff(numbers) == 1).all():
        return
    at = int(np.argmax(np.diff(numbers) != 1))
    fail(
        f"'{term.name}{term.shift:+d}' asks for neighbours in the type '{type_name}', but its "
        f"numbers have gaps: {numbers[at + 1]} follows {numbers[at]}. List the type as a "
        f"range, such as {type_name} = {{{numbers.min()}, ..., {numbers.max()}}}",
        term.place,
    )


def _state_variables(world: World, slots: tuple[Atom, ...]) -> list[str]:
    """The variables that say which state of a categorical variable an atom means."""
    named = (unique_term(world.model.predicate_by_name[atom.predicate], atom) for atom in slots)
    return [term.name for term in named if isinstance(term, Variable)]


def unique_term(predicate: PredicateDeclaration, atom: Atom) -> Term | None:
    """The term in the place of the predicate's `!` argument; None where it has none."""
    return None if predicate.unique is None else atom.arguments[predicate.unique]


def _weights(world: World, rule: Rule, types: Mapping[str, str]) -> NDArray[np.float64]:
    """The weight of a rule, or its weights along an axis per variable with a `+`."""
    model, given, names = world.model, rule.weight, rule.per_constant
    if rule.hard:
        return np.array(np.inf)
    if not isinstance(given, WeightTable):
        return np.array(1.0 if given is None else constant_value(model, given, "a weight"))
    shape = [world.size(types[name]) for name in names]
    if math.prod(shape) > MAX_WEIGHTS:
        raise IntractableError(
            f"{' and '.join(f'+{name}' for name in names)} ask for a weight for each of "
            f"{math.prod(shape):,} combinations of constants; the maximum is {MAX_WEIGHTS:,}"
        )
    weights = np.full(shape, np.nan)
    if given.default is not None:
        weights[...] = constant_value(model, given.default, "a weight")
    if given.entries:
        keys = zip(*(key for key, _ in given.entries), strict=True)
        places = [world.constant_ids(types[n], words) for n, words in zip(names, keys, strict=True)]
        values = [constant_value(model, value, "a weight") for _, value in given.entries]
        weights[tuple(places)] = values
    for missing in np.argwhere(np.isnan(weights))[:1].tolist():
        words = (str(world.constants[types[n]][at]) for n, at in zip(names, missing, strict=True))
        fail(
            f"there is no weight for {', '.join(words)}: list it, or add a weight for all others "
            "as '*: 0'",
            given.place,
        )
    return weights
