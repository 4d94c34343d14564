"""Rules whose groundings are listed, and which of these look alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.atoms import AtomSpace
from hylift.grounding.factors import GroundRule, numbered
from hylift.grounding.plan import RulePlan, state_variables
from hylift.grounding.query import Groundings, groundings
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Variable
from hylift.lifting.implicit.marks import MOST_ARGUMENTS, Mark, out_of_reach, told_apart
from hylift.numerics.grouping import group_pairs, group_rows
from hylift.numerics.segments import first_of_each

MOST_LISTED = 10_000_000
"""Most combinations of constants that are listed although no table lists them."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A rule's groundings, with the constants of its atoms."""

    plan: RulePlan
    found: Groundings
    types: tuple[tuple[str, ...], ...]
    """Per atom with arguments: their types."""
    ids: tuple[NDArray[np.int32], ...]
    """Per atom with arguments (grounding, argument): its constants."""
    kind: NDArray[np.int32]
    """(grounding,): the same where parameters and coinciding atoms are."""

    @classmethod
    def of(cls, world: World, plan: RulePlan) -> Listed:
        found = groundings(world, plan)
        known = world.model.predicate_by_name
        spaces = {atom.predicate: AtomSpace.of(world, known[atom.predicate]) for atom in plan.slots}
        rule = numbered(world, plan, found, spaces)
        own = [spaces[atom.predicate] for atom in plan.slots]
        ids = [space.arguments(codes) for space, codes in zip(own, rule.codes, strict=True)]
        some = [place for place, space in enumerate(own) if space.types]
        return cls(
            plan,
            found,
            tuple(own[place].types for place in some),
            tuple(ids[place] for place in some),
            _kinds(world, rule),
        )

    @property
    def subject(self) -> str:
        return f"the groundings of '{self.plan.label}'"

    def marks(self) -> Iterator[Mark]:
        """The pairs that its atoms name."""
        for types, ids in zip(self.types, self.ids, strict=True):
            if len(types) == MOST_ARGUMENTS:
                yield Mark.alike(self.subject, types, ids)

    def alike(self, number: NDArray[np.int32]) -> Groundings:
        """One grounding for each class, given the class of each."""
        number, count = group_pairs(number, np.zeros(len(number), dtype=np.uint64))
        first, found = first_of_each(number), self.found
        return replace(
            found,
            count=count,
            columns={name: column[first] for name, column in found.columns.items()},
            bits={test: bit[first] for test, bit in found.bits.items()},
            multiplicity=np.bincount(number, minlength=count).astype(np.float64),
        )


def is_listed(world: World, plan: RulePlan) -> bool:
    """True if tables list the groundings of a rule, or if nothing else will do and they are few."""
    known: Mapping[str, AtomSpace] = {
        atom.predicate: AtomSpace.of(world, world.model.predicate_by_name[atom.predicate])
        for atom in plan.slots
    }
    if plan.members or any(len(space.types) > MOST_ARGUMENTS for space in known.values()):
        return False
    joins = [g.test for g in plan.guards if g.holds and isinstance(g.test, Atom)]
    named = {term.name for atom in joins for term in atom.arguments if isinstance(term, Variable)}
    if plan.types and named >= set(plan.types):
        return True
    if out_of_reach(world, plan) is None and not any(told_apart(plan)):
        return False
    return math.prod(map(len, plan.ranges.values())) <= MOST_LISTED


def _kinds(world: World, rule: GroundRule) -> NDArray[np.int32]:
    """(grounding,): equal where parameters are, and the same atoms stand in several slots."""
    number = np.zeros(len(rule.weight), dtype=np.int32)
    columns = [rule.weight.view(np.uint64), *(bit.astype(np.uint64) for bit in rule.bits.values())]
    names = state_variables(world, rule.plan.formula)
    columns += [rule.values[name].astype(np.uint64) for name in names]
    for column in columns:
        number, _ = group_pairs(number, np.ascontiguousarray(column))
    slots = enumerate(rule.plan.slots)
    same = [
        (rule.codes[one] == rule.codes[other]).astype(np.int32)
        for (one, first), (other, second) in combinations(slots, 2)
        if first.predicate == second.predicate
    ]
    return group_rows(np.stack([number[rule.row], *same], axis=1))[0]
