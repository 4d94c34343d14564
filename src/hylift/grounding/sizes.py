"""Sizes of a grounding: estimated before it is made, and counted afterwards."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hylift.errors import HyliftWarning, IntractableError
from hylift.graph.factor_graph import SizeEstimate, bytes_text
from hylift.grounding.atoms import AtomNumbers, AtomSpace, Observations
from hylift.grounding.engine import num_rows
from hylift.grounding.members import Members
from hylift.grounding.plan import RulePlan
from hylift.grounding.query import Query, is_product, num_groundings
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Variable
from hylift.language.walk import atoms, free_variables
from hylift.words import Wording, worded

HARMLESS = 0.2
"""Share of the free memory below which a guess of the size suffices."""

SKEW = 5
"""Rows that a join may have, relative to one of evenly spread tables of its sizes."""

HOPELESS = 1.5
"""Share of all memory beyond which a grounding is refused instead of warned of."""

MOST_COUNTED = 1_000_000_000
"""Most groundings that are counted exactly in a quick estimate."""

MAX_LISTED = 10_000_000
"""Most groundings that are listed to count the atoms of a closed-world predicate."""


STATISTICS = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        *((name, pa.int64()) for name in ("atoms", "observed", "measured")),
        ("is_closed", pa.bool_()),
        *((name, pa.int64()) for name in ("groundings", "factors")),
    ]
)


class SizeWarning(HyliftWarning):
    """A grounding that may not fit in memory."""


def estimate(world: World, plans: Sequence[RulePlan]) -> SizeEstimate:
    """The size of the graph that these rules make.

    Factors are counted exactly, by the engine; variables are all possible atoms, or fewer where
    factors are too few to use them all.
    """
    return _estimate(
        world,
        plans,
        [num_groundings(world, plan, plan.guards) if plan.open_predicates else 0 for plan in plans],
    )


def quick_estimate(world: World, plans: Sequence[RulePlan]) -> SizeEstimate:
    """The same, but with no more than a guess of groundings that would take long to count."""
    guesses = [_guess(world, plan) for plan in plans]
    counts = [
        guess if guess > MOST_COUNTED else num_groundings(world, plan, plan.guards)
        for guess, plan in zip(guesses, plans, strict=True)
    ]
    return _estimate(world, plans, counts)


def warn_of_size(world: World, plans: Sequence[RulePlan]) -> None:
    """Warn before a grounding that may not fit in memory, and refuse one that cannot."""
    free = free_memory()
    most = _estimate(world, plans, [_guess(world, plan) for plan in plans])
    if most.num_bytes < HARMLESS * free:
        return
    size = estimate(world, plans)
    if size.num_bytes < free / 2:
        return
    counts = [num_groundings(world, plan, plan.guards) for plan in plans]
    label = plans[counts.index(max(counts))].label
    text = (
        f"grounding makes {size}, and {bytes_text(free)} of memory are free. Most factors, "
        f"{max(counts):,}, come from the rule '{label}': a closed-world predicate that "
        "multiplies or guards it, or a condition after 'where', would reduce them"
    )
    if size.num_bytes > HOPELESS * total_memory():
        lifted = Wording(
            "; where many constants look alike, hl.ground_lifted(model, evidence) does without the "
            "ground graph",
            "",
        )
        raise IntractableError(worded(text, lifted))
    warnings.warn(text, SizeWarning, stacklevel=4)


def _estimate(world: World, plans: Sequence[RulePlan], counts: Sequence[int]) -> SizeEstimate:
    used: dict[str, int] = {}
    num_bytes = 0
    for plan, count in zip(plans, counts, strict=True):
        members = sum(_num_members(world, one) for one in plan.members)
        for name in plan.open_predicates:
            used[name] = used.get(name, 0) + count * len(plan.slots) + members
        # Scope, number of the atom, variables, row and multiplicity.
        num_bytes += count * (12 * len(plan.slots) + 4 * len(plan.types) + 12) + 24 * members
    num_variables = sum(min(_num_atoms(world, name), count) for name, count in used.items())
    return SizeEstimate(num_variables, sum(counts), num_bytes + 16 * num_variables)


def _num_members(world: World, members: Members) -> int:
    """At most as many as the rows of each of their relations, unless these are joined."""
    tests = [guard.test for guard in members.guards if guard.holds]
    rows = [world.relations[t.predicate].num_rows for t in tests if isinstance(t, Atom)]
    return max(rows) if rows else math.prod(map(len, members.ranges.values()))


def _num_atoms(world: World, name: str) -> int:
    return AtomSpace.of(world, world.model.predicate_by_name[name]).size


def _guess(world: World, plan: RulePlan) -> int:
    """A guess from the sizes of types and tables alone, several times what joins usually make."""
    covered: set[str] = set()
    most = 1.0
    for guard in plan.guards if not is_product(plan) else ():
        if isinstance(guard.test, Atom) and guard.holds:
            names = {term.name for term in guard.test.arguments if isinstance(term, Variable)}
            most *= world.relations[guard.test.predicate].num_rows
            for name in names & covered:
                most /= max(1, len(plan.ranges[name]))
            covered |= names
    for name, values in plan.ranges.items():
        if name not in covered:
            most *= len(values)
    return int(most * (SKEW if covered else 1))


def free_memory() -> int:
    """Bytes of memory that a process could have now, caches of files included."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return total_memory()
    return min(free, total_memory())


def total_memory() -> int:
    """Bytes of memory of this machine, or of the container that it runs in."""
    known = [1 << 40]
    if "SC_PHYS_PAGES" in os.sysconf_names:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        known.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(known)


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """Atoms of a predicate in groundings of rules."""

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
    """Groundings that are factors of the graph; the others are constants, summed into log Z."""


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
        """Ground factors, constant ones included."""
        return sum(rule.num_groundings for rule in self.rules)

    @property
    def num_factors(self) -> int:
        return sum(rule.num_factors for rule in self.rules)

    def to_arrow(self) -> pa.Table:
        """A row per predicate and per rule."""
        rows: list[dict[str, object]] = [
            {
                "kind": "predicate",
                "name": predicate.name,
                "atoms": predicate.num_atoms,
                "observed": predicate.num_observed,
                "measured": predicate.num_measured,
                "is_closed": predicate.is_closed,
            }
            for predicate in self.predicates
        ]
        rows += [
            {
                "kind": "rule",
                "name": rule.label,
                "groundings": rule.num_groundings,
                "factors": rule.num_factors,
            }
            for rule in self.rules
        ]
        return pa.Table.from_pylist(rows, schema=STATISTICS)


def statistics(
    world: World,
    plans: Sequence[RulePlan],
    num_factors: Sequence[int],
    numbers: Mapping[str, AtomNumbers],
    observed: Observations,
) -> GroundStatistics:
    """The counts of a grounding; those of closed-world atoms without listing them."""
    rules = tuple(
        RuleStatistics(plan.label, num_groundings(world, plan, plan.conditions), count)
        for plan, count in zip(plans, num_factors, strict=True)
    )
    predicates = []
    for name in world.model.predicate_by_name:
        if name in world.closed:
            count = _closed_atoms(world, plans, name)
            predicates.append(PredicateStatistics(name, count, count, 0, True))
        else:
            exact, measured = observed.num_observed.get(name, 0), observed.num_measured.get(name, 0)
            predicates.append(
                PredicateStatistics(name, numbers[name].num_atoms, exact, measured, False)
            )
    return GroundStatistics(tuple(predicates), rules)


def _closed_atoms(world: World, plans: Sequence[RulePlan], name: str) -> int:
    """Atoms of a closed-world predicate in groundings of rules; all if those are too many."""
    mentions = [
        (plan, atom)
        for plan in plans
        for part in (plan.rule.formula, *plan.rule.where)
        for atom in atoms(part)
        if atom.predicate == name
    ]
    if not mentions:
        return 0
    if (
        any(_mentions_all(plan, atom) for plan, atom in mentions)
        or sum(num_groundings(world, plan, plan.conditions) for plan, _ in mentions) > MAX_LISTED
    ):
        return _num_atoms(world, name)
    listed = " UNION ".join(_listed(world, plan, atom) for plan, atom in mentions)
    return num_rows(world.engine, f"SELECT DISTINCT * FROM ({listed}) AS listed")


def _mentions_all(plan: RulePlan, atom: Atom) -> bool:
    """True if an atom's variables run freely over all constants, or under a quantifier."""
    if not set(free_variables(atom)) <= set(plan.ranges):
        return True
    names = [term.name for term in atom.arguments if isinstance(term, Variable) and not term.shift]
    return len(set(names)) == len(atom.arguments) and not plan.conditions


def _listed(world: World, plan: RulePlan, atom: Atom) -> str:
    """SQL for the ground atoms that an atom of a rule stands for."""
    query = Query(world, plan.types, plan.ranges, plan.conditions)
    return query.select(
        [
            f"CAST({query.argument(atom, place)} AS INTEGER) AS a{place}"
            for place in range(len(atom.arguments))
        ]
    )
