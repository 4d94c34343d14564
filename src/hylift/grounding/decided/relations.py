"""Closed-world relations in place of the truths that evidence decides, such as quantified ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hylift.graph.domains import boolean
from hylift.grounding.engine import Relation, num_rows
from hylift.grounding.guards import Guard, variable_ranges
from hylift.grounding.query import Query, column_numbers
from hylift.grounding.world import World
from hylift.language.statements import PredicateDeclaration
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Operation,
    Quantified,
    Truth,
    Unary,
    Variable,
)
from hylift.language.walk import atoms, conjuncts, free_variables, nodes, rebuild

CONNECTIVE = {"^": "AND", "v": "OR", "=>": "OR", "<=>": "="}


def with_relation(
    world: World, free: Sequence[str], types: Mapping[str, str], table: str | pa.Table
) -> tuple[World, Atom]:
    """The world with a relation over these variables, and the atom that stands for it.

    table: its rows, as a query or as columns.
    """
    number = len(world.model.predicates)
    name, stored = f"relation {number}", f"relation_{number}"
    predicate = PredicateDeclaration(name, tuple(types[name] for name in free), boolean)
    if isinstance(table, str):
        world.engine.store(stored, table)
        count = num_rows(world.engine, f"SELECT * FROM {stored}")
    else:
        world.engine.load(stored, table)
        count = table.num_rows
    world = replace(
        world,
        model=replace(world.model, predicates=(*world.model.predicates, predicate)),
        relations={**world.relations, name: Relation(stored, count)},
        closed=world.closed | {name},
    )
    return world, Atom(name, tuple(map(Variable, free)))


def related(world: World, expr: Expr, types: Mapping[str, str]) -> tuple[World, Expr]:
    """An expression with relations in place of the quantified truths that evidence decides."""
    if not any(isinstance(node, Quantified) for node in nodes(expr)):
        return world, expr
    relations = _Relations(world, types, {})
    expr = relations.related(expr)
    return relations.world, expr


@dataclass(slots=True, eq=False)
class _Relations:
    """A world and its relations so far.

    Not a recursive closure, which would keep the database open until garbage is collected.
    """

    world: World
    types: Mapping[str, str]
    found: dict[Expr, Expr]

    def related(self, part: Expr) -> Expr:
        is_truth = isinstance(part, Quantified) and part.is_truth
        if not is_truth or not is_decided(self.world, part):
            return rebuild(part, self.related)
        if part not in self.found:
            assert isinstance(part, Quantified)
            self.world, self.found[part] = relation(self.world, part, self.types)
        return self.found[part]


def is_decided(world: World, expr: Expr) -> bool:
    """True if all atoms of an expression are closed-world."""
    return all(atom.predicate in world.closed for atom in atoms(expr))


def relation(world: World, node: Quantified, types: Mapping[str, str]) -> tuple[World, Expr]:
    """The world with the relation of a quantified truth, and the expression that stands for it.

    `FORALL y f` is `!(EXIST y !f)`: the relation has the rows that violate it.
    """
    holds = node.quantifier == "EXIST"
    world, body = related(world, node.body, types)
    query = _select(world, node, body, holds, types)
    world, atom = with_relation(world, free_variables(node), types, query)
    return world, atom if holds else Unary("!", atom)


def _select(
    world: World, node: Quantified, body: Expr, holds: bool, types: Mapping[str, str]
) -> str:
    """SQL for the free variables for which some bound ones give the body the truth `holds`."""
    free = free_variables(node)
    own = {name: types[name] for name in [*free, *node.variables]}
    parts = list(conjuncts(body, holds))
    joined = [part for part, truth in parts if truth and isinstance(part, Atom)]
    guards = [Guard(atom, True, None) for atom in joined]
    query = Query(world, own, variable_ranges(world, own, [node.body]), guards)
    query.conditions += [
        _truth(query, part, truth) for part, truth in parts if not (truth and part in joined)
    ]
    columns = query.variables(free, "a")
    if not columns:
        return query.select(["true AS holds"], " LIMIT 1")
    columns[0] = f"DISTINCT {columns[0]}"
    return query.select(columns, f" ORDER BY {column_numbers(columns)}")


def _truth(query: Query, expr: Expr, truth: bool) -> str:
    """SQL for whether an expression has this truth."""
    match expr:
        case Atom() | Comparison():
            return query.holds(expr, truth)
        case Truth(value=value):
            return "TRUE" if value == truth else "FALSE"
        case Unary(op="!", operand=operand):
            return _truth(query, operand, not truth)
        case Operation(op=op, operands=(first, *others)):
            no = "" if truth else "NOT "
            parts = [_truth(query, first, op != "=>"), *(_truth(query, o, True) for o in others)]
            return f"({no}({f' {CONNECTIVE[op]} '.join(parts)}))"
    raise TypeError(f"{expr!r} is not true or false")
