"""Plans of rules: the tests that cut groundings away, and what remains of the formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError, UnsupportedError
from hylift.grounding.guards import Guard, Test, decided, find_guards, variable_ranges
from hylift.grounding.members import Members, with_members
from hylift.grounding.world import World
from hylift.language.lowering.fold import fold
from hylift.language.report import fail
from hylift.language.statements import PredicateDeclaration, Rule
from hylift.language.syntax import (
    Atom,
    Comparison,
    Constant,
    Expr,
    Term,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.text.formatter import format_expression, format_rule
from hylift.language.types import constant_value
from hylift.language.walk import atoms, conditioning_variables, free_variables
from hylift.words import Wording, worded


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
    members: tuple[Members, ...]
    """Quantifiers over rows of tables, for which atoms of their own stand in `formula`."""
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
    sizes: tuple[tuple[Members, int], ...] = ()
    """Quantifiers whose members stand in `formula`, and how many."""
    kinds: Mapping[Atom, object] = field(default_factory=dict)
    """Slots of the same kind are different atoms in every grounding."""

    @property
    def conditions(self) -> tuple[Guard, ...]:
        """The guards after `where`."""
        return tuple(guard for guard in self.guards if guard.otherwise is None)

    @property
    def open_predicates(self) -> set[str]:
        """Those whose atoms are variables of the graph."""
        bodies = (atom for one in self.members for atom in atoms(one.body))
        return {atom.predicate for atom in (*self.slots, *bodies)}

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
    world: World,
    rule: Rule,
    types: Mapping[str, str],
    formula: Expr,
    where: Sequence[Expr],
    label: str,
) -> RulePlan:
    """The guards of a rule, found by asking what each closed-world atom decides on its own.

    formula, where: the rule's, with relations in place of what evidence decides.
    """
    formula, members = with_members(world, formula, types, label)
    written = (rule.formula, *rule.where)
    free = dict.fromkeys(name for part in written for name in free_variables(part))
    ranges = variable_ranges(world, {name: types[name] for name in free}, written)
    conditions = [_condition(world, part) for part in where]
    known: dict[Expr, bool] = {guard.test: guard.holds for guard in conditions}
    guards, formula = find_guards(world, fold(formula, known))
    slots = open_slots(world, formula)
    weighted_by = rule.per_constant if isinstance(rule.weight, WeightTable) else ()
    return RulePlan(
        rule,
        label,
        {name: types[name] for name in free},
        _narrowed(world, types, ranges, conditions),
        (*conditions, *guards),
        formula,
        tuple(one for one in members if one.atom in atoms(formula)),
        slots,
        decided(world, formula),
        tuple(dict.fromkeys([*weighted_by, *state_variables(world, formula)])),
        weighted_by,
        _weights(world, rule, types),
    )


def open_slots(world: World, formula: Expr) -> tuple[Atom, ...]:
    """The atoms of a formula that are variables of the graph."""
    known = world.model.predicate_by_name
    found = (atom for atom in atoms(formula) if atom.predicate not in world.closed)
    return tuple(atom for atom in found if atom.predicate in known)


MAX_WEIGHTS = 1 << 26
"""Most combinations of constants that have weights of their own."""


def _condition(world: World, part: Expr) -> Guard:
    holds = True
    while isinstance(part, Unary) and part.op == "!":
        holds, part = not holds, part.operand
    for atom in atoms(part):
        if atom.predicate not in world.closed:
            fail(
                worded(
                    f"'where {format_expression(part)}' requires a closed-world predicate, but "
                    f"'{atom.predicate}' is open: pass ",
                    Wording(f"closed=['{atom.predicate}']", f"--closed {atom.predicate}"),
                    ", or multiply the formula by it",
                ),
                part.place,
            )
    assert isinstance(part, Atom | Comparison)  # the checks allow nothing else
    return Guard(part, holds, None)


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


def state_variables(world: World, formula: Expr) -> list[str]:
    """The variables that say which state of a categorical variable an atom means, or what is looked
    up in a table."""
    slots, known = open_slots(world, formula), world.model.predicate_by_name
    named = [unique_term(known[atom.predicate], atom) for atom in slots]
    looked_up = conditioning_variables(formula)
    return [term.name for term in (*named, *looked_up) if isinstance(term, Variable)]


def unique_term(predicate: PredicateDeclaration, atom: Atom) -> Term | None:
    """The term in the place of the predicate's `!` argument; None where it has none."""
    if predicate.unique is None or predicate.is_whole(atom):
        return None
    return atom.arguments[predicate.unique]


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
