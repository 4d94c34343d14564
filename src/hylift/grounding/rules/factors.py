"""The factors of a rule: its groundings with variables in their slots and parameters in rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup, by_slots
from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.grounding.rules.plan import RulePlan, unique_term
from hylift.grounding.rules.query import Groundings
from hylift.grounding.world import World
from hylift.language.lowering.lower import Slot, lower
from hylift.language.syntax import Atom, Constant, Expr, Term

MAX_SLOTS = 2000
"""Most slots that are compared with each other."""

MAX_LOOKUP = 1 << 22
"""Most combinations of parameters for which a mark each is kept; beyond, used ones are sorted."""


@dataclass(frozen=True, slots=True)
class GroundRule:
    """A rule's groundings with the atoms in its slots, before those have become variables."""

    plan: RulePlan
    count: int
    codes: tuple[NDArray[Any], ...]  # per slot (grounding,): number of its atom
    rows: ParameterRows


@dataclass(frozen=True, slots=True)
class ParameterRows:
    """The distinct parameters of a rule's groundings."""

    row: NDArray[np.int32]  # (grounding,)
    values: Mapping[str, NDArray[np.int64]]
    """(row,): constant id of each of the rule's row variables."""
    bits: Mapping[Expr, NDArray[np.bool_]]
    """(row,): the tests that each row decides."""
    weight: NDArray[np.float64]  # (row,)


def ground_rule(
    world: World, plan: RulePlan, found: Groundings, spaces: Mapping[str, AtomSpace]
) -> GroundRule:
    """The atoms and the parameters of all groundings of a rule."""
    codes = []
    for atom in plan.slots:
        space = spaces[atom.predicate]
        arguments = [
            argument_ids(world, space, atom.arguments[place], place, found.columns)
            for place in space.places
        ]
        codes.append(space.codes(arguments, found.count))
    return GroundRule(plan, found.count, tuple(codes), _parameter_rows(world, plan, found))


def argument_ids(
    world: World,
    space: AtomSpace,
    term: Term,
    place: int,
    columns: Mapping[str, NDArray[Any]],
) -> NDArray[Any]:
    """Constant ids of an argument: one per grounding, or one for all."""
    if isinstance(term, Constant):
        return np.asarray(world.constant_id(space.predicate.arguments[place], term.name))
    column = columns[term.name]
    return np.add(column, term.shift, dtype=np.int64) if term.shift else column


def _parameter_rows(world: World, plan: RulePlan, found: Groundings) -> ParameterRows:
    sizes = [world.size(plan.types[name]) for name in plan.row_variables] + [2] * len(plan.bits)
    keys: list[NDArray[Any]] = [found.columns[name] for name in plan.row_variables]
    keys += [found.bits[test] for test in plan.bits]
    row, example = _distinct(keys, sizes, found.count)
    values = {name: found.columns[name][example].astype(np.int64) for name in plan.row_variables}
    weight = plan.weight[tuple(values[name] for name in plan.weighted_by)]
    return ParameterRows(
        row,
        values,
        {test: found.bits[test][example] for test in plan.bits},
        np.broadcast_to(weight, (len(example),)),
    )


def _distinct(
    keys: Sequence[NDArray[Any]], sizes: Sequence[int], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Per grounding, the place of its combination of keys among those that occur; and for each of
    those a grounding that has it."""
    if not keys:
        return np.zeros(count, dtype=np.int32), np.zeros(1, dtype=np.int64)
    code, total = np.zeros(count, dtype=np.int64), 1
    for key, size in zip(keys, sizes, strict=True):
        if total * size >= 1 << 62:  # too many for a number: count only those that occur
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
    rule: GroundRule,
    numbers: Mapping[str, AtomNumbers],
    parameters: Mapping[str, float],
) -> list[FactorGroup]:
    """The factors of a rule; those in which two atoms are one variable stand in groups apart."""
    plan = rule.plan
    if not rule.count:
        return []
    groups = []
    for same, factors in _coincidences(plan.slots, rule.codes, rule.count):
        order = _slot_order(plan.slots, same, numbers)
        leaves: dict[Expr, Slot | NDArray[np.bool_]] = {**rule.rows.bits}
        for place, atom in enumerate(plan.slots):
            space = numbers[atom.predicate].space
            index = order.index(same[place])
            state = _states(world, atom, space, rule.rows)
            leaves[atom] = Slot(index, space.domain.num_states, state)
        potential = lower(
            plan.formula,
            rule.rows.weight,
            leaves,
            parameters=parameters,
            hard=plan.rule.hard,
        )
        row = rule.rows.row if factors is None else rule.rows.row[factors]
        scope = np.empty((len(row), len(order)), dtype=np.int32)
        for slot, place in enumerate(order):
            codes = rule.codes[place] if factors is None else rule.codes[place][factors]
            numbers[plan.slots[place].predicate].fill(scope, slot, codes)
        groups.append(FactorGroup(potential, scope, row, label=plan.label))
    return groups


def _coincidences(
    slots: Sequence[Atom], codes: Sequence[NDArray[Any]], count: int
) -> Iterable[tuple[tuple[int, ...], NDArray[np.int64] | None]]:
    """Groundings by which of their atoms are the same variable.

    For each kind: per slot the first slot with the same variable, and the groundings (None: all).
    """
    apart = tuple(range(len(slots)))
    if len(slots) > MAX_SLOTS:  # no potential is that large; lowering says so
        return [(apart, None)]
    pairs = [
        (early, late)
        for late in range(len(slots))
        for early in range(late)
        if slots[early].predicate == slots[late].predicate
    ]
    if not pairs:
        return [(apart, None)]
    equal = [codes[early] == codes[late] for early, late in pairs]
    if not any(flags.any() for flags in equal):
        return [(apart, None)]
    kinds = []
    for flagged, factors in by_slots(np.stack(equal, axis=1)):
        same = list(apart)
        for pair in flagged:
            early, late = pairs[pair]
            same[late] = min(same[late], same[early])
        kinds.append((tuple(same), None if len(factors) == count else factors))
    return kinds


def _slot_order(
    slots: Sequence[Atom], same: Sequence[int], numbers: Mapping[str, AtomNumbers]
) -> list[int]:
    """The slots that stay, discrete ones first."""
    kept = [place for place in range(len(slots)) if same[place] == place]
    return sorted(kept, key=lambda p: not numbers[slots[p].predicate].space.domain.is_discrete)


def _states(
    world: World, atom: Atom, space: AtomSpace, rows: ParameterRows
) -> NDArray[np.int64] | None:
    """(row,): the state of a categorical variable that makes the atom true; None for others."""
    term = unique_term(space.predicate, atom)
    if term is None:
        return None
    assert space.predicate.unique is not None
    ids = argument_ids(world, space, term, space.predicate.unique, rows.values)
    return np.broadcast_to(np.asarray(ids, dtype=np.int64), rows.weight.shape)
