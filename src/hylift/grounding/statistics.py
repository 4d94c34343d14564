"""What a grounding made of each predicate and each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hylift.grounding.atoms import AtomNumbers
from hylift.grounding.count import num_groundings
from hylift.grounding.observe import Observations
from hylift.grounding.plan import RulePlan
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Variable
from hylift.language.walk import atoms, free_variables


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """Atoms of a predicate that stand in some grounding of a rule."""

    name: str
    num_atoms: int
    num_observed: int
    is_closed: bool
    """Then all atoms are observed, and none is a variable of the graph."""


@dataclass(frozen=True, slots=True)
class RuleStatistics:
    """Groundings of a rule."""

    label: str
    num_groundings: int
    num_factors: int
    """Groundings that are factors of the graph; evidence on closed-world predicates has made the
    others constants, which are part of log Z."""


@dataclass(frozen=True, slots=True)
class GroundStatistics:
    """Counts of a grounding."""

    predicates: tuple[PredicateStatistics, ...]
    rules: tuple[RuleStatistics, ...]

    @property
    def num_variables(self) -> int:
        """Ground atoms, those of closed-world predicates included."""
        return sum(predicate.num_atoms for predicate in self.predicates)

    @property
    def num_observed(self) -> int:
        return sum(predicate.num_observed for predicate in self.predicates)

    @property
    def num_groundings(self) -> int:
        """Ground factors, those that evidence made constant included."""
        return sum(rule.num_groundings for rule in self.rules)

    @property
    def num_factors(self) -> int:
        return sum(rule.num_factors for rule in self.rules)

    def to_arrow(self) -> pa.Table:
        """One row per rule."""
        return pa.table(
            {
                "rule": [rule.label for rule in self.rules],
                "groundings": [rule.num_groundings for rule in self.rules],
                "factors": [rule.num_factors for rule in self.rules],
            }
        )


def statistics(
    world: World,
    plans: Sequence[RulePlan],
    num_factors: Sequence[int],
    numbers: Mapping[str, AtomNumbers],
    observed: Observations,
) -> GroundStatistics:
    """The counts of a grounding; those of closed-world atoms are found without listing them."""
    rules = tuple(
        RuleStatistics(plan.label, num_groundings(world, plan, plan.conditions), count)
        for plan, count in zip(plans, num_factors, strict=True)
    )
    predicates = []
    for predicate in world.model.predicates:
        name = predicate.name
        if name in world.closed:
            count = _closed_atoms(world, plans, name)
            predicates.append(PredicateStatistics(name, count, count, True))
        else:
            count = observed.num_observed.get(name, 0)
            predicates.append(PredicateStatistics(name, numbers[name].count, count, False))
    return GroundStatistics(tuple(predicates), rules)


def _closed_atoms(world: World, plans: Sequence[RulePlan], name: str) -> int:
    """Atoms of a closed-world predicate in the rule that mentions the most of them."""
    most = 0
    for plan in plans:
        mentioned = [*atoms(plan.rule.formula), *(a for w in plan.rule.where for a in atoms(w))]
        for atom in mentioned:
            if atom.predicate == name:
                most = max(most, _mentioned(world, plan, atom))
    return most


def _mentioned(world: World, plan: RulePlan, atom: Atom) -> int:
    """How many ground atoms an atom of a rule stands for, given its conditions."""
    names = {term.name for term in atom.arguments if isinstance(term, Variable)}
    if not names <= set(plan.ranges):  # a quantifier runs over all constants
        types = world.model.predicate_by_name[atom.predicate].arguments
        count = 1
        for term, type_name in zip(atom.arguments, types, strict=True):
            count *= world.size(type_name) if isinstance(term, Variable) else 1
        return count
    tied = [
        guard
        for guard in plan.conditions
        if not isinstance(guard.test, Atom) and set(free_variables(guard.test)) <= names
    ]
    own = {name: values for name, values in plan.ranges.items() if name in names}
    own_types = {name: plan.types[name] for name in own}
    rule = replace(plan.rule, per_constant=())
    part = replace(plan, rule=rule, ranges=own, types=own_types, weight=np.zeros(()))
    return num_groundings(world, part, tied)
