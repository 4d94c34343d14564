"""Closed-world relations for what evidence decides: quantified truths, comparisons of observed
numbers, and the rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np
import pyarrow as pa

from hylift.graph.domains import boolean
from hylift.grounding.engine import Relation, num_rows
from hylift.grounding.guards import Guard, variable_ranges
from hylift.grounding.query import Query, column_numbers
from hylift.grounding.world import World
from hylift.language.lowering.evaluate import QuadraticPolynomial, evaluate
from hylift.language.report import fail
from hylift.language.statements import PredicateDeclaration
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Operation,
    Parameter,
    Quantified,
    Truth,
    Unary,
    Variable,
    binary,
)
from hylift.language.text.formatter import shown
from hylift.language.types import constant_value
from hylift.language.walk import atoms, free_variables, nodes, rebuild
from hylift.words import Wording, worded

CONNECTIVE = {"^": "AND", "v": "OR", "=>": "OR", "<=>": "="}


def with_relations(world: World) -> tuple[World, list[tuple[Expr, tuple[Expr, ...]]]]:
    """The world with a closed-world predicate for all that evidence decides, and the formula and
    the conditions of each rule in terms of these.

    `EXIST y Friends(x, y)` becomes an atom of x, whose true rows one query finds; expanded, it
    would be a lookup for every y. `Len(s) < 0.1` where a truth value stands is an atom of s. Where
    atoms of a predicate exist only where its table has rows, so do groundings.
    """
    rules = []
    for rule, types in zip(world.model.rules, world.variable_types, strict=True):
        rows = _Rows(world)
        formula = rows.guarded(rule.formula)
        conditions = tuple(dict.fromkeys((*rule.where, *rows.outside)))
        if any(_is_threshold(node) for node in nodes(formula, *conditions)):
            thresholds = _Thresholds(world, types, {})
            formula = thresholds.decided(formula)
            conditions = tuple(map(thresholds.decided, conditions))
            world = thresholds.world
        world, formula = _related(world, formula, types)
        rules.append((formula, conditions))
    return world, rules


def _with_relation(
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


# Only the rows there are.


@dataclass(slots=True, eq=False)
class _Rows:
    """Guards that the atoms of some predicates have rows in their tables."""

    world: World
    outside: list[Atom] = field(default_factory=list)
    """Those outside all quantifiers."""

    def guarded(self, formula: Expr) -> Expr:
        if self.world.only_rows:
            formula, self.outside = self._guarded(formula)
        return formula

    def _guarded(self, expr: Expr) -> tuple[Expr, list[Atom]]:
        """The expression with guards under its quantifiers, and those that belong outside it."""
        found: list[Atom] = []
        if isinstance(expr, Atom) and expr.predicate in self.world.only_rows:
            declared = self.world.model.predicate_by_name[expr.predicate]
            unique = None if declared.is_whole(expr) else declared.unique
            terms = tuple(t for place, t in enumerate(expr.arguments) if place != unique)
            return expr, [Atom(self.world.only_rows[expr.predicate].name, terms)]

        def part(child: Expr) -> Expr:
            changed, guards = self._guarded(child)
            found.extend(guards)
            return changed

        expr = rebuild(expr, part)
        if not isinstance(expr, Quantified):
            return expr, found
        own = [rows for rows in found if set(free_variables(rows)) & set(expr.variables)]
        body = expr.body
        for rows in dict.fromkeys(own):
            if expr.quantifier == "FORALL":
                body = binary("=>", rows, body)
            else:
                body = binary("^" if expr.quantifier in ("EXIST", "COUNT") else "*", rows, body)
        return replace(expr, body=body), [rows for rows in found if rows not in own]


# Comparisons of observed numbers.


def _is_threshold(node: Expr) -> bool:
    """True for a comparison of numbers that is true or false, and is not about counts."""
    is_exact = isinstance(node, Comparison) and node.is_exact and not node.is_logical
    return is_exact and not any(isinstance(part, Quantified) for part in nodes(node))


@dataclass(slots=True, eq=False)
class _Thresholds:
    """A world and the relations of its comparisons so far."""

    world: World
    types: Mapping[str, str]
    found: dict[Expr, Expr]

    def decided(self, part: Expr) -> Expr:
        if not _is_threshold(part):
            return rebuild(part, self.decided)
        if part not in self.found:
            assert isinstance(part, Comparison)
            self.world, self.found[part] = _threshold(self.world, part, self.types)
        return self.found[part]


def _threshold(world: World, node: Comparison, types: Mapping[str, str]) -> tuple[World, Expr]:
    """The world with the relation of a comparison, and the atom that stands for it."""
    real = world.model.real_predicates
    numbers = [atom for atom in atoms(node) if atom.predicate in real]
    truths = [atom for atom in atoms(node) if atom.predicate not in real]
    for atom in truths:
        if atom.predicate not in world.closed:
            close = Wording(f"closed=['{atom.predicate}']", f"--closed {atom.predicate}")
            _refuse_hidden(node, worded(f"'{atom.predicate}' is open: pass ", close))
    world = _with_numbers(world, dict.fromkeys(atom.predicate for atom in numbers))
    free = free_variables(node)
    own = {name: types[name] for name in free}
    ranges = variable_ranges(world, own, [node])
    query = Query(world, own, ranges, [Guard(atom, True, None) for atom in numbers])
    columns = query.variables(free, "v")
    columns += [f"g{place}.value AS n{place}" for place in range(len(numbers))]
    columns += [f"{query.holds(atom)} AS b{place}" for place, atom in enumerate(truths)]
    known = world.engine.fetch(query.select(columns)) if columns else {}
    _check_observed(world, node, numbers, types, ranges, known)
    values: dict[Expr, object] = {atom: known[f"n{i}"] for i, atom in enumerate(numbers)}
    values |= {atom: known[f"b{i}"] for i, atom in enumerate(truths)}
    for part in nodes(node):
        if isinstance(part, Parameter):
            declared = world.model.parameter_by_name[part.name]
            values[part] = constant_value(world.model, declared.value, "a constant")
    holds = evaluate(node, values.__getitem__)
    assert not isinstance(holds, QuadraticPolynomial)  # no leaf is one
    if not columns:
        return world, Truth(bool(holds), place=node.place)
    rows = {f"a{i}": np.asarray(known[f"v{i}"])[holds] for i in range(len(free))}
    return _with_relation(
        world, free, types, pa.table(rows or {"holds": np.ones(int(holds.sum()), dtype=bool)})
    )


def _with_numbers(world: World, names: Mapping[str, None]) -> World:
    """The world with tables of the exact values of these predicates."""
    tables = dict(world.relations)
    for name in names:
        if name not in tables:
            place = len(tables)
            exact = world.evidence[name].exact() if name in world.evidence else None
            width = len(world.model.predicate_by_name[name].arguments)
            ids = np.zeros((0, width), np.int32) if exact is None else exact.ids
            values = np.zeros(0) if exact is None else exact.value
            columns = {f"a{i}": np.ascontiguousarray(column) for i, column in enumerate(ids.T)}
            world.engine.load(f"numbers_{place}", pa.table({**columns, "value": values}))
            tables[name] = Relation(f"numbers_{place}", len(values))
    return replace(world, relations=tables, compared=world.compared.union(names))


def _check_observed(
    world: World,
    node: Comparison,
    numbers: Sequence[Atom],
    types: Mapping[str, str],
    ranges: Mapping[str, range],
    known: Mapping[str, np.ndarray],
) -> None:
    """Raise if a number is hidden in some grounding; where there are only rows, in one of them."""
    rows = _Rows(world)
    rows.guarded(node)
    count = len(known["n0"]) if numbers else 1
    if not rows.outside and count == math.prod(map(len, ranges.values())):
        return
    own = {name: types[name] for name in ranges}
    query = Query(world, own, ranges, [Guard(atom, True, None) for atom in rows.outside])
    wanted = query.variables(list(ranges), "v")
    if num_rows(world.engine, query.select(wanted)) == count:
        return
    found = world.engine.fetch(query.select(wanted))
    sizes = [max(1, values.stop) for values in ranges.values()]
    codes = [
        np.ravel_multi_index([of[f"v{i}"] for i in range(len(ranges))], sizes) if ranges else 0
        for of in (found, known)
    ]
    hidden = int(np.argmax(~np.isin(codes[0], codes[1])))
    at = {name: int(found[f"v{i}"][hidden]) for i, name in enumerate(ranges)}
    for atom in numbers:
        kinds = world.model.predicate_by_name[atom.predicate].arguments
        ids = [
            at[term.name] + term.shift
            if isinstance(term, Variable)
            else world.constant_id(kind, term.name)
            for term, kind in zip(atom.arguments, kinds, strict=True)
        ]
        if atom.predicate not in world.evidence or not world.evidence[atom.predicate].has(ids):
            words = [str(world.constants[k][i]) for k, i in zip(kinds, ids, strict=True)]
            name = f"{atom.predicate}({', '.join(words)})" if words else atom.predicate
            without = worded(
                ", pass ",
                Wording(f"only_rows=['{atom.predicate}']", f"--only-rows {atom.predicate}"),
                " to leave out groundings without a row",
            )
            _refuse_hidden(node, worded(f"{name} is hidden: give its value", without))
    raise AssertionError(node)


def _refuse_hidden(node: Comparison, why: str) -> NoReturn:
    fail(
        worded(
            f"'{shown(node)}' is true or false here, which the data must decide, but ",
            why,
            f", or multiply by the comparison to have a soft one, as in 'A(x) * ({shown(node)})'",
        ),
        node.place,
    )


# Quantified truths.


def _related(world: World, expr: Expr, types: Mapping[str, str]) -> tuple[World, Expr]:
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
        if not is_truth or not _is_decided(self.world, part):
            return rebuild(part, self.related)
        if part not in self.found:
            assert isinstance(part, Quantified)
            self.world, self.found[part] = _relation(self.world, part, self.types)
        return self.found[part]


def _is_decided(world: World, expr: Expr) -> bool:
    """True if all atoms of an expression are closed-world."""
    return all(atom.predicate in world.closed for atom in atoms(expr))


def _relation(world: World, node: Quantified, types: Mapping[str, str]) -> tuple[World, Expr]:
    """The world with the relation of a quantified truth, and the expression that stands for it.

    `FORALL y f` is `!(EXIST y !f)`: the relation has the rows that violate it.
    """
    holds = node.quantifier == "EXIST"
    world, body = _related(world, node.body, types)
    query = _select(world, node, body, holds, types)
    world, atom = _with_relation(world, free_variables(node), types, query)
    return world, atom if holds else Unary("!", atom)


def _select(
    world: World, node: Quantified, body: Expr, holds: bool, types: Mapping[str, str]
) -> str:
    """SQL for the free variables for which some bound ones give the body the truth `holds`."""
    free = free_variables(node)
    own = {name: types[name] for name in [*free, *node.variables]}
    conjuncts = list(_conjuncts(body, holds))
    joined = [part for part, truth in conjuncts if truth and isinstance(part, Atom)]
    guards = [Guard(atom, True, None) for atom in joined]
    query = Query(world, own, variable_ranges(world, own, [node.body]), guards)
    query.conditions += [
        _truth(query, part, truth) for part, truth in conjuncts if not (truth and part in joined)
    ]
    columns = query.variables(free, "a")
    if not columns:
        return query.select(["true AS holds"], " LIMIT 1")
    columns[0] = f"DISTINCT {columns[0]}"
    return query.select(columns, f" ORDER BY {column_numbers(columns)}")


def _conjuncts(expr: Expr, truth: bool) -> Iterator[tuple[Expr, bool]]:
    """Parts, and the truth that each must have for the expression to have `truth`."""
    match expr:
        case Unary(op="!", operand=operand):
            yield from _conjuncts(operand, not truth)
        case Operation(op="=>", operands=(left, right)) if not truth:
            yield from _conjuncts(left, True)
            yield from _conjuncts(right, False)
        case Operation(op="^" | "v" as op, operands=operands) if truth == (op == "^"):
            for operand in operands:
                yield from _conjuncts(operand, truth)
        case _:
            yield expr, truth


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
