"""What a grounding made of each predicate and each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.grounding.engine import num_rows
from hylift.grounding.observe import Observations
from hylift.grounding.rules.count import num_groundings
from hylift.grounding.rules.plan import RulePlan
from hylift.grounding.rules.query import Query
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Variable
from hylift.language.walk import atoms


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """Atoms of a predicate that stand in some grounding of a rule."""

    name: str
    num_atoms: int
    num_observed: int
    num_measured: int
    """Measured with an error; they stay hidden."""
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
    def num_measured(self) -> int:
        return sum(predicate.num_measured for predicate in self.predicates)

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
            predicates.append(PredicateStatistics(name, count, count, 0, True))
        else:
            count = numbers[name].count
            exact, measured = observed.num_observed.get(name, 0), observed.num_measured.get(name, 0)
            predicates.append(PredicateStatistics(name, count, exact, measured, False))
    return GroundStatistics(tuple(predicates), rules)


MAX_LISTED = 10_000_000
"""Most groundings that are gone through to count the atoms of a closed-world predicate."""


def _closed_atoms(world: World, plans: Sequence[RulePlan], name: str) -> int:
    """Atoms of a closed-world predicate that stand in some grounding of a rule.

    Where there are too many groundings to look at, all possible atoms.
    """
    mentions = [
        (plan, atom)
        for plan in plans
        for part in (plan.rule.formula, *plan.rule.where)
        for atom in atoms(part)
        if atom.predicate == name
    ]
    if not mentions:
        return 0
    size = AtomSpace.of(world, world.model.predicate_by_name[name]).size
    if any(_mentions_all(plan, atom) for plan, atom in mentions):
        return size
    if sum(num_groundings(world, plan, plan.conditions) for plan, _ in mentions) > MAX_LISTED:
        return size
    listed = " UNION ".join(_listed(world, plan, atom) for plan, atom in mentions)
    return num_rows(world.engine, f"SELECT DISTINCT * FROM ({listed}) AS listed")


def _mentions_all(plan: RulePlan, atom: Atom) -> bool:
    """Whether an atom's variables run freely over all constants, or under a quantifier."""
    names = [term.name for term in atom.arguments if isinstance(term, Variable) and not term.shift]
    if not set(names) <= set(plan.ranges):
        return True
    return len(set(names)) == len(atom.arguments) and not plan.conditions


def _listed(world: World, plan: RulePlan, atom: Atom) -> str:
    """SQL for the ground atoms that an atom of a rule stands for."""
    query = Query(world, plan.types, plan.ranges, plan.conditions)
    types = world.model.predicate_by_name[atom.predicate].arguments
    columns = [
        f"CAST({query.value(term, type_name)} AS INTEGER) AS a{place}"
        for place, (term, type_name) in enumerate(zip(atom.arguments, types, strict=True))
    ]
    return query.select(columns or ["1 AS one"])
