"""The factors of a rule, and the sum of its groundings that evidence turns into constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import FactorGroup, by_slots
from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.grounding.copies import by_size
from hylift.grounding.guards import as_number
from hylift.grounding.plan import RulePlan, unique_term
from hylift.grounding.query import Groundings, counts, groundings
from hylift.grounding.world import World
from hylift.language.lowering.formula import Leaf, Slot
from hylift.language.lowering.lower import lower
from hylift.language.syntax import Atom, Comparison, Constant, Expr, Quantified, Term
from hylift.language.text.formatter import shown
from hylift.language.walk import conditioning_variables, free_variables, nodes
from hylift.words import Wording, worded

COUNTED = ("EXIST", "FORALL", "COUNT")
"""Quantifiers of which it is enough to count for how many constants their formula holds."""

MAX_SLOTS = 2000
"""Most slots that are compared with each other."""

MAX_LOOKUP = 1 << 22
"""Most combinations of parameters that are looked up in an array; beyond, used ones are sorted."""


@dataclass(frozen=True, slots=True)
class GroundRule:
    """A rule's groundings with the atoms in its slots, and their distinct parameters in rows."""

    plan: RulePlan
    count: int
    codes: tuple[NDArray[Any], ...]  # per slot (grounding,): number of its atom
    row: NDArray[np.int32]  # (grounding,)
    values: Mapping[str, NDArray[np.int64]]
    """(row,): constant id of each of the plan's row variables."""
    bits: Mapping[Expr, NDArray[np.bool_]]
    """(row,): the tests that each row decides."""
    weight: NDArray[np.float64]  # (row,)
    multiplicity: NDArray[np.float64] | None = None
    """(grounding,): how many groundings each stands for; None where it is itself alone."""

    def decided(self) -> dict[Expr, Leaf]:
        """The tests, and the constants that are looked up in tables."""
        looked_up = conditioning_variables(self.plan.formula)
        return {**self.bits, **{term: self.values[term.name] + term.shift for term in looked_up}}


def ground_rule(
    world: World,
    plan: RulePlan,
    spaces: Mapping[str, AtomSpace],
    parameters: Mapping[str, float],
    source: Callable[[World, RulePlan], Groundings] = groundings,
) -> tuple[list[GroundRule], float]:
    """The groundings of a rule that become factors, by the number of members of its quantifiers;
    and the sum of those that are constant.

    source: where groundings come from.
    """
    if as_number(plan.formula) is not None:
        return [], _constant_sum(world, plan, None)
    found = source(world, plan)
    constant = _constant_sum(world, plan, _per_weight(plan, found))
    rules = [numbered(world, own, some, spaces) for own, some in by_size(world, plan, found)]
    decided = sum(_decided_sum(rule, parameters) for rule in rules if not rule.plan.slots)
    return [rule for rule in rules if rule.plan.slots], constant + decided


def numbered(
    world: World, plan: RulePlan, found: Groundings, spaces: Mapping[str, AtomSpace]
) -> GroundRule:
    """Groundings with the numbers of their atoms, and their distinct parameters."""
    codes = []
    for atom in plan.slots:
        space = spaces[atom.predicate]
        is_whole = space.predicate.is_whole(atom)
        arguments = [
            _argument_ids(world, space, term, place, found.columns)
            for term, place in zip(
                atom.arguments if is_whole else [atom.arguments[p] for p in space.places],
                space.places,
                strict=True,
            )
        ]
        codes.append(space.codes(arguments, found.count))
    sizes = [world.size(plan.types[name]) for name in plan.row_variables] + [2] * len(plan.bits)
    keys: list[NDArray[Any]] = [found.columns[name] for name in plan.row_variables]
    keys += [found.bits[test] for test in plan.bits]
    row, example = _distinct(keys, sizes, found.count)
    values = {name: found.columns[name][example].astype(np.int64) for name in plan.row_variables}
    weight = plan.weight[tuple(values[name] for name in plan.weighted_by)]
    bits: dict[Expr, NDArray[np.bool_]] = {t: found.bits[t][example] for t in plan.bits}
    weight = np.broadcast_to(weight, (len(example),))
    return GroundRule(
        plan, found.count, tuple(codes), row, values, bits, weight, found.multiplicity
    )


def _per_weight(plan: RulePlan, found: Groundings) -> NDArray[np.float64]:
    """The number of groundings per combination of `+` variables."""
    if not plan.weighted_by:
        return np.array(
            float(found.count) if found.multiplicity is None else found.multiplicity.sum()
        )
    keys = tuple(found.columns[name] for name in plan.weighted_by)
    code = np.ravel_multi_index(keys, plan.weight.shape)
    number = np.bincount(code, found.multiplicity, plan.weight.size)
    return number.reshape(plan.weight.shape).astype(np.float64)


def _argument_ids(
    world: World, space: AtomSpace, term: Term, place: int, columns: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    """Constant ids of an argument: one per grounding, or one for all."""
    if isinstance(term, Constant):
        return np.asarray(world.constant_id(space.predicate.arguments[place], term.name))
    column = columns[term.name]
    return np.add(column, term.shift, dtype=np.int64) if term.shift else column


def _distinct(
    keys: Sequence[NDArray[Any]], sizes: Sequence[int], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(grounding,): the index of its combination of keys among those that occur; and for each of
    those a grounding that has it."""
    if not keys:
        return np.zeros(count, dtype=np.int32), np.zeros(1, dtype=np.int64)
    code, total = np.zeros(count, dtype=np.int64), 1
    for key, size in zip(keys, sizes, strict=True):
        if total * size >= 1 << 62:  # too many to number: number only those that occur
            present, code = np.unique(code, return_inverse=True)
            total = len(present)
        code = code * size + key
        total *= size
    if total > MAX_LOOKUP:
        _, example, row = np.unique(code, return_index=True, return_inverse=True)
        return row.astype(np.int32), example
    latest = np.full(total, -1, dtype=np.int64)
    latest[code] = np.arange(count)
    position = np.cumsum(latest >= 0, dtype=np.int32) - np.int32(1)
    return position[code], latest[latest >= 0]


def factor_groups(
    world: World,
    rules: Iterable[GroundRule],
    numbers: Mapping[str, AtomNumbers],
    parameters: Mapping[str, float],
) -> list[FactorGroup]:
    """The factors of a rule, all sizes of its quantifiers together."""
    return [
        group
        for rule in rules
        if rule.count
        for group in _factor_groups(world, rule, numbers, parameters)
    ]


def _factor_groups(
    world: World,
    rule: GroundRule,
    numbers: Mapping[str, AtomNumbers],
    parameters: Mapping[str, float],
) -> Iterator[FactorGroup]:
    """The factors of a rule; those in which two atoms are one variable are in groups apart."""
    plan = rule.plan
    for same, factors in _coincidences(plan, rule.codes, rule.count):
        spaces = [numbers[atom.predicate].space for atom in plan.slots]
        kept = [place for place in range(len(same)) if same[place] == place]
        order = sorted(kept, key=lambda place: not spaces[place].domain.is_discrete)
        leaves = rule.decided()
        for atom, space, first in zip(plan.slots, spaces, same, strict=True):
            state = _states(world, atom, space, rule)
            is_whole = space.predicate.is_whole(atom)
            leaves[atom] = Slot(order.index(first), space.domain.num_states, state, is_whole)
        potential = lower(
            plan.formula,
            rule.weight,
            leaves,
            parameters=parameters,
            hard=plan.rule.hard,
            rule=plan.label,
            remedy=partial(_smaller, world, plan),
        )
        row = rule.row if factors is None else rule.row[factors]
        scope = np.empty((len(row), len(order)), dtype=np.int32)
        for slot, place in enumerate(order):
            codes = rule.codes[place] if factors is None else rule.codes[place][factors]
            numbers[plan.slots[place].predicate].fill(scope, slot, codes)
        times = rule.multiplicity
        if times is not None and factors is not None:
            times = times[factors]
        times = np.ones(len(row)) if times is None else times
        yield FactorGroup(potential, scope, row, times, label=plan.label)


def _smaller(world: World, plan: RulePlan) -> str:
    """What makes the factors of a rule smaller: what to close, or what is better counted."""
    members, size = max(plan.sizes, key=lambda one: one[1], default=(None, 0))
    if members is not None and size > 1:
        text = f"{members.quantifier} {', '.join(members.variables)} has {size:,} members here"
        if members.quantifier not in COUNTED or isinstance(members.body, Atom):
            return f"{text}; choose fewer, or split the rule into smaller ones"
        return f"{text}; {_counted_apart(members.body)}"
    true_only = [
        name
        for name in dict.fromkeys(atom.predicate for atom in plan.slots)
        if world.model.predicate_by_name[name].unique is None and _names_true_ones(world, name)
    ]
    flags = " ".join(f"--closed {name}" for name in true_only)
    close = worded("close some of its predicates (", Wording(f"closed={true_only}", flags), "), ")
    rest = "quantify over fewer constants, or split it into smaller formulas"
    if true_only:
        return worded(close, rest)
    found = (node for node in nodes(plan.rule.formula) if isinstance(node, Quantified))
    apart = (n for n in found if n.quantifier in COUNTED and not isinstance(n.body, Atom))
    return next(
        (f"{_counted_apart(node.body)}; or {rest}" for node in apart), _said_apart(plan, rest)
    )


def _counted_apart(body: Expr) -> str:
    own = ", ".join(dict.fromkeys(free_variables(body)))
    return (
        "give what it says of each a predicate of its own, of which it is enough to count the true "
        f"ones, as in 'Part({own}) <=> ({shown(body)}).'"
    )


def _said_apart(plan: RulePlan, rest: str) -> str:
    """The advice to give one of several counts a predicate of its own, or the rest."""
    truths = [
        node
        for node in nodes(plan.rule.formula)
        if (isinstance(node, Quantified) and node.quantifier in ("EXIST", "FORALL"))
        or (isinstance(node, Comparison) and node.is_exact)
    ]
    if len(truths) < 2:
        return rest
    own = ", ".join(free_variables(truths[0]))
    part = f"Part({own})" if own else "Part"
    return (
        f"give one of its counts a predicate of its own, as in '{part} <=> ({shown(truths[0])}).'; "
        f"or {rest}"
    )


def _names_true_ones(world: World, name: str) -> bool:
    """True if the evidence names atoms of an open predicate that are true, and no others."""
    observed = world.evidence.get(name)
    is_truth = name not in world.model.real_predicates
    return is_truth and observed is not None and bool((observed.value == 1).all())


def _coincidences(
    plan: RulePlan, codes: Sequence[NDArray[Any]], count: int
) -> Iterable[tuple[tuple[int, ...], NDArray[np.int64] | None]]:
    """Groundings by which of their atoms are the same variable.

    For each kind: per slot the first slot with the same variable, and the groundings (None: all).
    """
    slots, kinds = plan.slots, [plan.kinds.get(atom) for atom in plan.slots]
    apart = tuple(range(len(slots)))
    if len(slots) > MAX_SLOTS:  # no potential is that large; lowering says so
        return [(apart, None)]
    pairs = [
        (early, late)
        for early, late in itertools.combinations(apart, 2)
        if slots[early].predicate == slots[late].predicate
        and (kinds[early] is None or kinds[early] != kinds[late])
    ]
    pairs.sort(key=lambda pair: pair[1])
    equal = [codes[early] == codes[late] for early, late in pairs]
    if not any(flags.any() for flags in equal):
        return [(apart, None)]
    found = []
    for flagged, factors in by_slots(np.stack(equal, axis=1)):
        same = list(apart)
        for pair in flagged:
            early, late = pairs[pair]
            same[late] = min(same[late], same[early])
        found.append((tuple(same), None if len(factors) == count else factors))
    return found


def _states(
    world: World, atom: Atom, space: AtomSpace, rule: GroundRule
) -> NDArray[np.int64] | None:
    """(row,): the state of a categorical variable that makes the atom true; None for others."""
    term = unique_term(space.predicate, atom)
    if term is None:
        return None
    assert space.predicate.unique is not None
    ids = _argument_ids(world, space, term, space.predicate.unique, rule.values)
    return np.broadcast_to(np.asarray(ids, dtype=np.int64), rule.weight.shape)


def _constant_sum(world: World, plan: RulePlan, kept: NDArray[np.float64] | None) -> float:
    """The sum of weight * formula over groundings that guards cut away, and over all others if
    what remains of the formula is a number.

    kept: the groundings in which all guards hold, per combination of `+` variables, if known.
    """
    total = 0.0
    guards = plan.guards
    value = as_number(plan.formula)
    if value is not None and not _is_neutral(plan, value):
        total += _weighted_sum(plan, value, counts(world, plan, guards))
    later = range(len(plan.conditions), len(guards))
    for value, places in itertools.groupby(later, key=lambda place: guards[place].otherwise):
        assert value is not None
        if _is_neutral(plan, value):
            continue
        run = list(places)
        before, after = counts(world, plan, guards[: run[0]]), kept
        if after is None or run[-1] + 1 < len(guards):
            after = counts(world, plan, guards[: run[-1] + 1])
        total += _weighted_sum(plan, value, before - after)
    return total


def _decided_sum(rule: GroundRule, parameters: Mapping[str, float]) -> float:
    """The sum over groundings without slots: evidence decides all their tests."""
    plan = rule.plan
    table = lower(
        plan.formula, rule.weight, rule.decided(), parameters=parameters, hard=plan.rule.hard
    )
    values = table.log_value(np.arange(table.num_rows), [])
    times = np.bincount(rule.row, rule.multiplicity, table.num_rows)
    values = np.where(times > 0, values, 0.0)
    if np.isneginf(values).any():
        _fail_hard(plan, int(times[np.isneginf(values)].sum()))
    return _finite(plan, float(times @ values))


def _is_neutral(plan: RulePlan, value: float) -> bool:
    """True if groundings of this value add nothing."""
    return value == 1.0 if plan.rule.hard else value == 0.0


def _weighted_sum(plan: RulePlan, value: float, number: NDArray[np.float64]) -> float:
    if plan.rule.hard:
        if number.any():
            _fail_hard(plan, int(number.sum()))
        return 0.0
    present = (number > 0) & (plan.weight != 0)
    factor = float((plan.weight * number)[present].sum())
    return _finite(plan, factor * value) if present.any() else 0.0


def _finite(plan: RulePlan, total: float) -> float:
    """The sum, if log Z can have it."""
    if total == -np.inf:
        raise ImpossibleEvidenceError(
            f"the evidence makes the rule '{plan.label}' impossible: its value is -inf"
        )
    if not np.isfinite(total):
        raise ModelError(
            f"the groundings of the rule '{plan.label}' that evidence decides sum to {total}, "
            "which is not a number"
        )
    return total


def _fail_hard(plan: RulePlan, count: int) -> None:
    raise ImpossibleEvidenceError(
        f"the evidence violates the hard rule '{plan.label}' in {count:,} of its groundings"
    )
