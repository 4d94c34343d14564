"""Quantifiers over closed-world atoms alone: relations that the database finds, like evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hylift.graph.domains import boolean
from hylift.grounding.engine import num_rows
from hylift.grounding.evidence import EvidenceTable
from hylift.grounding.rules.plan import Guard, variable_ranges
from hylift.grounding.rules.query import Query, column_numbers
from hylift.grounding.world import World
from hylift.language.syntax import (
    Atom,
    Binary,
    Comparison,
    Expr,
    PredicateDeclaration,
    Quantified,
    Truth,
    Unary,
    Variable,
)
from hylift.language.types import variable_types
from hylift.language.walk import atoms, children, free_variables, rebuild


def with_relations(world: World) -> tuple[World, tuple[Expr, ...]]:
    """The world with a closed-world predicate for each quantified truth that evidence decides, and
    the formulas of its rules in terms of these.

    `EXIST y Friends(x, y)` becomes an atom of x, whose true rows one query finds; written out, it
    would be a lookup for every y.
    """
    formulas = []
    for rule in world.model.rules:
        types = variable_types(world.model, rule)
        world, formula = _related(world, rule.formula, types)
        formulas.append(formula)
    return world, tuple(formulas)


def _related(world: World, expr: Expr, types: Mapping[str, str]) -> tuple[World, Expr]:
    """An expression with relations in place of the quantified truths that evidence decides."""
    for node in _decided(world, expr):
        world, relation = _relation(world, node, types)
        expr = _replaced(expr, node, relation)
    return world, expr


def _decided(world: World, expr: Expr) -> list[Quantified]:
    """The outermost quantified truths all of whose atoms are closed-world, each once."""
    if isinstance(expr, Quantified) and all(a.predicate in world.closed for a in atoms(expr)):
        return [expr]
    return list(dict.fromkeys(n for child in children(expr) for n in _decided(world, child)))


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return new if expr == old else rebuild(expr, lambda child: _replaced(child, old, new))


def _relation(world: World, node: Quantified, types: Mapping[str, str]) -> tuple[World, Expr]:
    """The world with the relation of a quantified truth, and the expression that stands for it.

    `FORALL y f` is `!(EXIST y !f)`: what is looked up are the rows that break it.
    """
    holds = node.quantifier == "EXIST"
    world, body = _related(world, node.body, types)
    free = free_variables(node)
    number = len(world.model.predicates)
    predicate = PredicateDeclaration(
        f"relation {number}", tuple(types[name] for name in free), boolean
    )
    table = f"relation_{number}"
    world.engine.store(table, _select(world, node, body, holds, types))
    count = num_rows(world.engine, f"SELECT * FROM {table}")
    found = EvidenceTable(table, count, len(free), is_closed=True)
    world = replace(
        world,
        model=replace(world.model, predicates=(*world.model.predicates, predicate)),
        evidence={**world.evidence, predicate.name: found},
        closed=world.closed | {predicate.name},
    )
    atom = Atom(predicate.name, tuple(Variable(name) for name in free))
    return world, atom if holds else Unary("!", atom)


def _select(
    world: World, node: Quantified, body: Expr, holds: bool, types: Mapping[str, str]
) -> str:
    """SQL for the free variables for which there are bound ones that make the body `holds`."""
    free = free_variables(node)
    own = {name: types[name] for name in [*free, *node.variables]}
    conjuncts = list(_conjuncts(body, holds))
    joined = [part for part, truth in conjuncts if truth and isinstance(part, Atom)]
    guards = [Guard(atom, True, None) for atom in joined]
    query = Query(world, own, variable_ranges(world, own, [node.body]), guards)
    query.conditions += [
        _sql(query, part, truth) for part, truth in conjuncts if not (truth and part in joined)
    ]
    columns = [
        f"CAST({query.value(Variable(name))} AS INTEGER) AS a{i}" for i, name in enumerate(free)
    ]
    if not columns:
        return query.select(["true AS holds"], " LIMIT 1")
    return query.select(
        [f"DISTINCT {columns[0]}", *columns[1:]], f" ORDER BY {column_numbers(columns)}"
    )


def _conjuncts(expr: Expr, truth: bool) -> Iterator[tuple[Expr, bool]]:
    """Parts, with the truth each must have, that together say that the expression has `truth`."""
    match expr:
        case Unary(op="!", operand=operand):
            yield from _conjuncts(operand, not truth)
        case Binary(op="^", left=left, right=right) if truth:
            yield from _conjuncts(left, True)
            yield from _conjuncts(right, True)
        case Binary(op="v", left=left, right=right) if not truth:
            yield from _conjuncts(left, False)
            yield from _conjuncts(right, False)
        case Binary(op="=>", left=left, right=right) if not truth:
            yield from _conjuncts(left, True)
            yield from _conjuncts(right, False)
        case _:
            yield expr, truth


def _sql(query: Query, expr: Expr, truth: bool) -> str:
    """SQL for whether an expression has this truth."""
    match expr:
        case Atom() | Comparison():
            return query.holds(expr, truth)
        case Truth(value=value):
            return "TRUE" if value == truth else "FALSE"
        case Unary(op="!", operand=operand):
            return _sql(query, operand, not truth)
        case Binary(op=op, left=left, right=right):
            no = "" if truth else "NOT "
            first, second = _sql(query, left, op != "=>"), _sql(query, right, True)
            return f"{no}({first} {CONNECTIVE[op]} {second})"
    raise TypeError(f"{expr!r} is not true or false")


CONNECTIVE = {"^": "AND", "v": "OR", "=>": "OR", "<=>": "="}
