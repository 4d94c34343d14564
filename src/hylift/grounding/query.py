"""Groundings of a rule: listed or counted by one SQL query, or as a product without a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.guards import Guard, Test
from hylift.grounding.plan import RulePlan
from hylift.grounding.world import World
from hylift.language.syntax import (
    COMPARISONS,
    Atom,
    Comparison,
    Constant,
    Term,
    Variable,
)
from hylift.language.walk import free_variables

IntColumn = NDArray[np.int32]

MAX_FILTERED = 1 << 25
"""Most combinations that are made in memory to keep some of them."""


class Query:
    """The FROM and WHERE clauses of a rule's SQL."""

    def __init__(
        self,
        world: World,
        types: Mapping[str, str],
        ranges: Mapping[str, range],
        guards: Sequence[Guard],
        rows: str | None = None,
    ) -> None:
        """types, ranges: of each variable; guards: tests that must hold. rows: a table with columns
        v0, v1, … for the variables, of which some are kept; by default all combinations."""
        self.world, self.types = world, types
        self.tables: list[str] = []
        self.conditions: list[str] = []
        self.column: dict[str, str] = {}
        """SQL for the id of each variable that a table has bound."""
        shifted: set[str] = set()  # variables bound by a neighbour, perhaps out of range
        joins = [guard for guard in guards if isinstance(guard.test, Atom) and guard.holds]
        if rows is not None:
            self.tables, joins = [f"{rows} AS given"], []
            self.column = {name: f"given.v{place}" for place, name in enumerate(ranges)}
        for guard in joins:
            assert isinstance(guard.test, Atom)
            shifted |= self._join(guard.test)
        for place, (name, values) in enumerate(ranges.items()):
            if name not in self.column:
                self.tables.append(world.engine.integers(values, f"r{place}"))
                self.column[name] = f"r{place}.v"
            elif name in shifted or values != range(world.size(types[name])):
                self.conditions.append(f"{self.column[name]} >= {values.start}")
                self.conditions.append(f"{self.column[name]} < {values.stop}")
        self.conditions += [self.holds(g.test, g.holds) for g in guards if g not in joins]

    def _join(self, atom: Atom) -> set[str]:
        """Join the atom's true rows; return the variables they bind with a shift."""
        alias = f"g{len(self.tables)}"
        shifted = set()
        self.tables.append(f"{self.world.relations[atom.predicate].table} AS {alias}")
        for place, term in enumerate(atom.arguments):
            column = f"{alias}.a{place}"
            if isinstance(term, Variable) and term.name not in self.column:
                self.column[term.name] = f"({column} - {term.shift})" if term.shift else column
                shifted |= {term.name} if term.shift else set()
            else:
                self.conditions.append(f"{column} = {self.argument(atom, place)}")
        return shifted

    def argument(self, atom: Atom, place: int) -> str:
        """SQL for the id of an argument."""
        type_name = self.world.model.predicate_by_name[atom.predicate].arguments[place]
        return self._value(atom.arguments[place], type_name)

    def variables(self, names: Sequence[str], prefix: str) -> list[str]:
        """Columns with the ids of variables, named by the prefix and their place."""
        return [f"CAST({self.column[n]} AS INTEGER) AS {prefix}{i}" for i, n in enumerate(names)]

    def _value(self, term: Term, type_name: str) -> str:
        if isinstance(term, Constant):
            return str(self.world.constant_id(type_name, term.name))
        column = self.column[term.name]
        return f"({column} + {term.shift})" if term.shift else column

    def holds(self, test: Test, expected: bool = True) -> str:
        """SQL for whether a test has the expected truth."""
        no = "" if expected else "NOT "
        if isinstance(test, Comparison):
            type_name, *sides = _compared(self.types, test)
            left, right = (self._value(side, type_name) for side in sides)
            return f"({no}{left} {test.op} {right})"
        # A plain IN, not a correlated EXISTS, for which DuckDB takes fifty times longer.
        sought, columns, fixed = [], [], []
        for place, term in enumerate(test.arguments):
            if isinstance(term, Constant):
                fixed.append(f"a{place} = {self.argument(test, place)}")
            else:
                sought.append(self.argument(test, place))
                columns.append(f"a{place}")
        table = self.world.relations[test.predicate].table
        rows = f"FROM {table} WHERE {' AND '.join(fixed) or 'TRUE'}"
        if not sought:
            return f"({no}EXISTS (SELECT 1 {rows}))"
        return f"(({', '.join(sought)}) {no}IN (SELECT {', '.join(columns)} {rows}))"

    def select(self, columns: Sequence[str], tail: str = "") -> str:
        """The query for these columns, or for a constant one where there are none."""
        tables = f" FROM {', '.join(self.tables)}" if self.tables else ""
        conditions = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {', '.join(columns) or '1 AS one'}{tables}{conditions}{tail}"


def _compared(types: Mapping[str, str], test: Comparison) -> tuple[str, Term, Term]:
    """The type of the terms that are compared, and both terms."""
    left, right = test.left, test.right
    assert isinstance(left, Term)
    assert isinstance(right, Term)
    return (
        next(types[side.name] for side in (left, right) if isinstance(side, Variable)),
        left,
        right,
    )


def column_numbers(columns: Sequence[object]) -> str:
    return ", ".join(str(place + 1) for place in range(len(columns)))


@dataclass(frozen=True, slots=True)
class Groundings:
    """The groundings of a rule that become factors: a column per variable, and per bit."""

    count: int
    columns: dict[str, IntColumn]
    bits: dict[Test, NDArray[np.bool_]]
    multiplicity: NDArray[np.float64] | None = None
    """(grounding,): how many groundings each stands for; None where it is itself alone."""


def groundings(world: World, plan: RulePlan) -> Groundings:
    """The groundings in which all guards hold, in an order that the data alone decides."""
    if is_product(plan):
        return _product(world, plan)
    query = Query(world, plan.types, plan.ranges, plan.guards)
    return fetched(world, query, list(plan.types), plan.bits)


def fetched(world: World, query: Query, names: Sequence[str], tests: Sequence[Test]) -> Groundings:
    """The rows of a query, with these variables and the truth of these tests."""
    bits = [f"{query.holds(test)} AS b{i}" for i, test in enumerate(tests)]
    found = world.engine.fetch(query.select([*query.variables(names, "v"), *bits]))
    return Groundings(
        len(next(iter(found.values()))),
        {name: np.asarray(found[f"v{i}"], np.int32) for i, name in enumerate(names)},
        {test: np.asarray(found[f"b{i}"], np.bool_) for i, test in enumerate(tests)},
    )


def some_of(
    world: World, plan: RulePlan, table: str, multiplicity: NDArray[np.float64]
) -> Groundings:
    """The groundings of a table, each standing for several, in which all guards hold.

    table: with columns v0, v1, … for the variables, and `place` in `multiplicity`.
    """
    query = Query(world, plan.types, plan.ranges, plan.guards, table)
    query.column[PLACE] = "given.place"
    found = fetched(world, query, [*plan.types, PLACE], plan.bits)
    place = found.columns.pop(PLACE)
    return replace(found, multiplicity=multiplicity[place])


PLACE = ""
"""A column that is no variable's."""


def is_product(plan: RulePlan) -> bool:
    """True if nothing is joined: no atom is looked up, and no two variables are equated.

    A large product that conditions filter is left to the engine, which never holds it whole.
    """
    tests = [*(guard.test for guard in plan.guards), *plan.bits]
    joined = any(isinstance(test, Atom) for test in tests)
    equated = any(
        isinstance(guard.test, Comparison) and guard.test.op == ("=" if guard.holds else "!=")
        for guard in plan.guards
    )
    size = math.prod(len(values) for values in plan.ranges.values())
    return not joined and not equated and not (plan.guards and size > MAX_FILTERED)


def _product(world: World, plan: RulePlan) -> Groundings:
    """All combinations of constants, the last variable running fastest."""
    sizes = [len(values) for values in plan.ranges.values()]
    columns: dict[str, IntColumn] = {}
    for place, (name, values) in enumerate(plan.ranges.items()):
        column = np.arange(values.start, values.stop, dtype=np.int32)
        repeated = np.repeat(column, math.prod(sizes[place + 1 :]))
        columns[name] = np.tile(repeated, math.prod(sizes[:place]))

    def truth(test: Test) -> NDArray[np.bool_]:
        assert isinstance(test, Comparison)
        type_name, *sides = _compared(plan.types, test)
        left, right = (
            columns[side.name] + np.int64(side.shift)
            if isinstance(side, Variable)
            else np.int64(world.constant_id(type_name, side.name))
            for side in sides
        )
        return np.asarray(COMPARISONS[test.op](left, right))

    count = math.prod(sizes)
    if plan.guards:
        keep = np.ones(count, dtype=bool)
        for guard in plan.guards:
            keep &= truth(guard.test) == guard.holds
        columns = {name: column[keep] for name, column in columns.items()}
        count = int(np.count_nonzero(keep))
    return Groundings(
        count, columns, {test: np.broadcast_to(truth(test), (count,)) for test in plan.bits}
    )


def num_groundings(world: World, plan: RulePlan, guards: Sequence[Guard]) -> int:
    """The number of groundings that fulfil these guards."""
    return int(counts(world, plan, guards).sum())


def counts(world: World, plan: RulePlan, guards: Sequence[Guard]) -> NDArray[np.float64]:
    """Groundings that fulfil these guards, per combination of the rule's `+` variables.

    Variables that no guard ties together are counted apart and multiplied, so that a product of a
    million and a thousand constants costs nothing.
    """
    parts = [{name} for name in plan.ranges]
    for guard in guards:
        if names := set(free_variables(guard.test)):
            tied = [part for part in parts if part & names]
            parts = [*(part for part in parts if part not in tied), set().union(*tied)]
    total = np.ones((1,) * plan.weight.ndim)
    for part in parts:
        own = [guard for guard in guards if part.intersection(free_variables(guard.test))]
        total = total * _part_counts(world, plan, [n for n in plan.ranges if n in part], own)
    if fixed := [guard for guard in guards if not free_variables(guard.test)]:
        total = total * _part_counts(world, plan, [], fixed)
    return np.broadcast_to(total, plan.weight.shape)


def _part_counts(
    world: World, plan: RulePlan, names: list[str], guards: list[Guard]
) -> NDArray[np.float64]:
    """Counts along the axes of those `+` variables that are among `names`."""
    axes = dict(zip(plan.weighted_by, plan.weight.shape, strict=True))
    own = [name for name in axes if name in names]
    counts = np.zeros([axes[name] for name in own])
    if not guards:
        (values,) = (plan.ranges[name] for name in names)
        if own:
            counts[values.start : values.stop] = 1.0
        else:
            counts[...] = len(values)
    elif not own and (known := _pair_count(plan, names, guards)) is not None:
        counts[...] = known
    else:
        query = Query(world, plan.types, {name: plan.ranges[name] for name in names}, guards)
        tail = f" GROUP BY {column_numbers(own)}" if own else ""
        found = world.engine.fetch(
            query.select([*query.variables(own, "v"), "count(*) AS n"], tail)
        )
        at = tuple(found[f"v{place}"] for place in range(len(own)))
        counts[at] = found["n"] if own else found["n"][0]
    return counts.reshape([size if name in own else 1 for name, size in axes.items()])


def _pair_count(plan: RulePlan, names: list[str], guards: list[Guard]) -> float | None:
    """The count for x != y or x < y over one type, which needs no query; None for others."""
    if len(names) != 2 or len(guards) != 1 or not isinstance(guards[0].test, Comparison):
        return None
    test = guards[0].test
    if any(not isinstance(side, Variable) or side.shift for side in (test.left, test.right)):
        return None
    if plan.ranges[names[0]] != plan.ranges[names[1]]:
        return None
    n = len(plan.ranges[names[0]])
    holding = n * COMPARISONS[test.op](0, 0) + n * (n - 1) / 2 * (
        COMPARISONS[test.op](0, 1) + COMPARISONS[test.op](1, 0)
    )
    return holding if guards[0].holds else n * n - holding
