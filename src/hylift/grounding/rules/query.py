"""The groundings of a rule: one SQL query, or a plain product where nothing is joined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.rules.plan import Guard, RulePlan, Test
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Comparison, Constant, Term, Variable

IntColumn = NDArray[np.int32]

MAX_FILTERED = 1 << 25
"""Most combinations that are made in order to keep some of them."""

SQL_OPERATOR = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

COMPARE = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Groundings:
    """All groundings of a rule that become factors: a column per variable, and per bit."""

    count: int
    columns: dict[str, IntColumn]
    bits: dict[Test, NDArray[np.bool_]]


def groundings(world: World, plan: RulePlan) -> Groundings:
    """The groundings in which all guards hold, in an order that the data alone decides."""
    if is_product(plan):
        return _product(world, plan)
    query = Query(world, plan.types, plan.ranges, plan.guards)
    names = [
        f"CAST({query.value(Variable(name))} AS INTEGER) AS v{i}"
        for i, name in enumerate(plan.types)
    ]
    bits = [f"{query.holds(test)} AS b{i}" for i, test in enumerate(plan.bits)]
    sql = query.select([*names, *bits] or ["1 AS one"])
    found = world.engine.fetch(sql)
    return Groundings(
        len(next(iter(found.values()))),
        {name: np.asarray(found[f"v{i}"], np.int32) for i, name in enumerate(plan.types)},
        {test: np.asarray(found[f"b{i}"], np.bool_) for i, test in enumerate(plan.bits)},
    )


def is_product(plan: RulePlan) -> bool:
    """Whether nothing is joined: no atom is looked up, and no two variables are equated.

    A large product of which conditions keep a part is left to the database, which never holds it
    whole.
    """
    tests = [*(guard.test for guard in plan.guards), *plan.bits]
    joined = any(isinstance(test, Atom) for test in tests)
    equated = any(_equates(guard) for guard in plan.guards)
    size = math.prod(len(values) for values in plan.ranges.values())
    return not joined and not equated and not (plan.guards and size > MAX_FILTERED)


def _equates(guard: Guard) -> bool:
    return isinstance(guard.test, Comparison) and guard.test.op == ("=" if guard.holds else "!=")


def _product(world: World, plan: RulePlan) -> Groundings:
    """All combinations of constants, the last variable running fastest."""
    sizes = [len(values) for values in plan.ranges.values()]
    count = int(np.prod(sizes, dtype=np.int64))
    columns: dict[str, IntColumn] = {}
    for place, (name, values) in enumerate(plan.ranges.items()):
        column = np.arange(values.start, values.stop, dtype=np.int32)
        repeated = np.repeat(column, int(np.prod(sizes[place + 1 :], dtype=np.int64)))
        columns[name] = np.tile(repeated, int(np.prod(sizes[:place], dtype=np.int64)))
    if plan.guards:
        keep = np.ones(count, dtype=bool)
        for guard in plan.guards:
            keep &= _compared(world, plan, guard.test, columns) == guard.holds
        columns = {name: column[keep] for name, column in columns.items()}
        count = int(np.count_nonzero(keep))
    bits = {
        test: np.broadcast_to(_compared(world, plan, test, columns), (count,)) for test in plan.bits
    }
    return Groundings(count, columns, bits)


def _compared(
    world: World, plan: RulePlan, test: Test, columns: dict[str, IntColumn]
) -> NDArray[np.bool_]:
    assert isinstance(test, Comparison)
    type_name = compared_type(plan.types, test)
    left, right = (
        columns[side.name] + np.int64(side.shift)
        if isinstance(side, Variable)
        else np.int64(world.constant_id(type_name, side.name))
        for side in _sides(test)
    )
    return np.asarray(COMPARE[test.op](left, right))


def _sides(test: Comparison) -> tuple[Term, Term]:
    assert isinstance(test.left, Term)
    assert isinstance(test.right, Term)
    return test.left, test.right


def compared_type(types: Mapping[str, str], test: Comparison) -> str:
    """The type of the terms that are compared."""
    return next(types[side.name] for side in _sides(test) if isinstance(side, Variable))


class Query:
    """The relational part of a rule's SQL: tables for its variables, and what must hold of them."""

    def __init__(
        self,
        world: World,
        types: Mapping[str, str],
        ranges: Mapping[str, range],
        guards: Sequence[Guard],
    ) -> None:
        """types, ranges: of each variable; guards: what must hold."""
        self.world, self.types = world, types
        self.tables: list[str] = []
        self.conditions: list[str] = []
        self.column: dict[str, str] = {}
        """SQL for the id of each variable that a table has bound."""
        self.shifted: set[str] = set()
        """Variables bound by a neighbour, which may lie beyond the ends of their type."""
        joins = [g.test for g in guards if isinstance(g.test, Atom) and g.holds]
        for atom in joins:
            self._join(atom)
        for place, (name, values) in enumerate(ranges.items()):
            if name in self.column:
                if name in self.shifted or values != range(world.size(types[name])):
                    self.conditions.append(f"{self.column[name]} >= {values.start}")
                    self.conditions.append(f"{self.column[name]} < {values.stop}")
            else:
                self.tables.append(world.engine.integers(values, f"r{place}"))
                self.column[name] = f"r{place}.v"
        for guard in guards:
            if not (isinstance(guard.test, Atom) and guard.holds):
                self.conditions.append(self.holds(guard.test, guard.holds))

    def _join(self, atom: Atom) -> None:
        """A table of the atom's true rows; variables it brings first are bound to its columns."""
        alias = f"g{len(self.tables)}"
        self.tables.append(f"{self.world.evidence[atom.predicate].table} AS {alias}")
        for place, term in enumerate(atom.arguments):
            column = f"{alias}.a{place}"
            if isinstance(term, Variable) and term.name not in self.column:
                self.column[term.name] = f"({column} - {term.shift})" if term.shift else column
                self.shifted |= {term.name} if term.shift else set()
            else:
                self.conditions.append(f"{column} = {self._argument(atom, place)}")

    def _argument(self, atom: Atom, place: int) -> str:
        type_name = self.world.model.predicate_by_name[atom.predicate].arguments[place]
        return self.value(atom.arguments[place], type_name)

    def value(self, term: Term, type_name: str = "") -> str:
        """SQL for the id of a term."""
        if isinstance(term, Constant):
            return str(self.world.constant_id(type_name, term.name))
        column = self.column[term.name]
        return f"({column} + {term.shift})" if term.shift else column

    def holds(self, test: Test, expected: bool = True) -> str:
        """SQL for whether a test comes out as expected."""
        no = "" if expected else "NOT "
        if isinstance(test, Comparison):
            type_name = compared_type(self.types, test)
            left, right = (self.value(side, type_name) for side in _sides(test))
            return f"{no}({left} {SQL_OPERATOR[test.op]} {right})"
        table = self.world.evidence[test.predicate].table
        # A plain IN, not a correlated EXISTS: which DuckDB takes fifty times longer for.
        sought, columns, fixed = [], [], []
        for place, term in enumerate(test.arguments):
            if isinstance(term, Constant):
                fixed.append(f"a{place} = {self._argument(test, place)}")
            else:
                sought.append(self._argument(test, place))
                columns.append(f"a{place}")
        rows = f"FROM {table} WHERE {' AND '.join(fixed) or 'TRUE'}"
        if not sought:
            return f"({no}EXISTS (SELECT 1 {rows}))"
        return f"(({', '.join(sought)}) {no}IN (SELECT {', '.join(columns)} {rows}))"

    def select(self, columns: Sequence[str], tail: str = "") -> str:
        tables = f" FROM {', '.join(self.tables)}" if self.tables else ""
        conditions = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {', '.join(columns)}{tables}{conditions}{tail}"


def column_numbers(columns: Sequence[object]) -> str:
    """`1, 2`: the columns by their place, for GROUP BY and ORDER BY."""
    return ", ".join(str(place + 1) for place in range(len(columns)))
