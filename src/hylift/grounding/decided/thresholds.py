"""Comparisons of observed numbers, and of sums and counts, that evidence decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph.domains import real
from hylift.grounding.decided.relations import related, with_relation
from hylift.grounding.decided.rows import OnlyRows
from hylift.grounding.engine import Relation, num_rows
from hylift.grounding.guards import Guard, Test, find_guards, variable_ranges
from hylift.grounding.members import OF_CHOSEN
from hylift.grounding.query import MAX_FILTERED, Query
from hylift.grounding.world import World
from hylift.language.lowering.evaluate import QuadraticPolynomial, evaluate
from hylift.language.report import fail
from hylift.language.statements import PredicateDeclaration
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Parameter,
    Quantified,
    Quantifier,
    Truth,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.types import constant_value
from hylift.language.walk import atoms, free_variables, logical_comparisons, nodes, rebuild
from hylift.words import Wording, worded


@dataclass(slots=True, eq=False)
class Thresholds:
    """A world and the relations of its comparisons so far."""

    world: World
    types: Mapping[str, str]
    found: dict[Expr, Expr] = field(default_factory=dict)
    chosen: list[Atom] = field(default_factory=list)
    """Averages, least and greatest ones outside all quantifiers: where nothing is chosen, there is
    no grounding."""

    def decided(self, part: Expr, is_condition: bool = False) -> Expr:
        """The expression with an atom in place of each comparison; of a condition, all must be
        decided."""
        if not self._is_threshold(part, is_condition):
            return rebuild(part, lambda child: self.decided(child, is_condition))
        if part not in self.found:
            assert isinstance(part, Comparison)
            self.found[part] = self._relation(part)
        return self.found[part]

    def _is_threshold(self, node: Expr, is_condition: bool) -> bool:
        """True for a comparison of numbers that is true or false; of counts, for one that evidence
        decides."""
        if not (isinstance(node, Comparison) and node.is_exact and not node.is_logical):
            return False
        if is_condition or not any(isinstance(part, Quantified) for part in nodes(node)):
            return True
        numbers = self.world.model.real_predicates
        return all(a.predicate in self.world.closed or a.predicate in numbers for a in atoms(node))

    def _relation(self, node: Comparison) -> Expr:
        """The atom that stands for a comparison."""
        whole = self._aggregated(node, node)
        values = self._values(whole, node, free_variables(whole), [])
        if not values.ids:
            return Truth(bool(values.value), place=node.place)
        rows = {f"a{i}": ids[values.value] for i, ids in enumerate(values.ids.values())}
        self.world, atom = with_relation(self.world, list(values.ids), self.types, pa.table(rows))
        return atom

    def _aggregated(self, part: Expr, node: Comparison) -> Expr:
        """The expression with an atom in place of each sum or count."""
        if not isinstance(part, Quantified) or part.is_truth:
            return rebuild(part, lambda child: self._aggregated(child, node))
        if part not in self.found:
            self.found[part] = atom = self._numbers(part, node)
            self.chosen += [atom] if part.quantifier in OF_CHOSEN else []
        return self.found[part]

    def _numbers(self, part: Quantified, node: Comparison) -> Atom:
        """The atom of the free variables whose number is a sum or count."""
        body = self._aggregated(self.decided(part.body, True), node)
        self.world, body = related(self.world, body, self.types)
        guards, rest = find_guards(self.world, body, 0.0)
        free = free_variables(part)
        values = self._values(rest, node, [*free, *part.variables], guards)
        ranges = variable_ranges(self.world, {name: self.types[name] for name in free}, [part.body])
        ids, numbers = values.reduced(part.quantifier, ranges)
        name, stored = f"number {len(self.world.relations)}", f"number_{len(self.world.relations)}"
        declared = PredicateDeclaration(name, tuple(self.types[n] for n in free), real)
        columns = {f"a{i}": column for i, column in enumerate(ids)}
        self.world.engine.load(stored, pa.table({**columns, "value": numbers}))
        model = self.world.model
        self.world = replace(
            self.world,
            model=replace(model, predicates=(*model.predicates, declared)),
            relations={**self.world.relations, name: Relation(stored, len(numbers))},
            closed=self.world.closed | {name},
        )
        return Atom(name, tuple(map(Variable, free)))

    def _values(
        self, expr: Expr, node: Comparison, names: Sequence[str], guards: Sequence[Guard]
    ) -> _Values:
        """The values of an expression for all choices of variables where all guards hold.

        node: the comparison that it is part of, for errors.
        """
        numbers, truths = self._leaves(expr, node)
        self.world = world = _with_numbers(self.world, {atom.predicate: None for atom in numbers})
        own = {name: self.types[name] for name in names}
        ranges = variable_ranges(world, own, [expr, *(guard.test for guard in guards)])
        query = Query(world, own, ranges, [*_joined(numbers), *guards])
        columns = query.variables(list(own), "v")
        columns += [f"g{place}.value AS n{place}" for place in range(len(numbers))]
        columns += [f"{query.holds(test)} AS b{place}" for place, test in enumerate(truths)]
        known = world.engine.fetch(query.select(columns)) if columns else {}
        _check_observed(world, node, numbers, own, ranges, guards, known)
        leaves: dict[Expr, object] = {atom: known[f"n{i}"] for i, atom in enumerate(numbers)}
        leaves |= {test: np.asarray(known[f"b{i}"], np.bool_) for i, test in enumerate(truths)}
        for part in nodes(expr):
            if isinstance(part, Parameter):
                declared = world.model.parameter_by_name[part.name]
                leaves[part] = constant_value(world.model, declared.value, "a constant")
        value = evaluate(expr, leaves.__getitem__)
        assert not isinstance(value, QuadraticPolynomial)  # no leaf is one
        count = len(next(iter(known.values()))) if known else 1
        ids = {name: np.asarray(known[f"v{i}"], np.int32) for i, name in enumerate(own)}
        return _Values(ids, np.broadcast_to(value, (count,)))

    def _leaves(self, expr: Expr, node: Comparison) -> tuple[list[Atom], list[Test]]:
        """The numbers and the tests of an expression; an error if a test is about open atoms."""
        numbers = [a for a in atoms(expr) if a.predicate in self.world.model.real_predicates]
        truths = [atom for atom in atoms(expr) if atom not in numbers]
        for atom in truths:
            if atom.predicate not in self.world.closed:
                close = Wording(f"closed=['{atom.predicate}']", f"--closed {atom.predicate}")
                _refuse_hidden(node, worded(f"'{atom.predicate}' is open: pass ", close))
        return numbers, [*truths, *logical_comparisons(expr)]


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of an expression, by the ids of variables."""

    ids: Mapping[str, NDArray[np.int32]]
    value: NDArray[Any]

    def reduced(
        self, quantifier: Quantifier, ranges: Mapping[str, range]
    ) -> tuple[list[NDArray[np.int32]], NDArray[np.float64]]:
        """The ids of free variables, a column each, and the sum, average, … over the others.

        ranges: of the free variables. Sums and counts of nothing are 0.
        """
        shape = [values.stop for values in ranges.values()]
        if math.prod(shape) > MAX_FILTERED:
            raise IntractableError(
                f"a comparison of {quantifier} for each of {math.prod(shape):,} combinations of "
                f"{', '.join(ranges)}; the maximum is {MAX_FILTERED:,}"
            )
        keys = tuple(self.ids[name] for name in ranges)
        at = np.ravel_multi_index(keys, shape) if keys else np.zeros(len(self.value), np.int64)
        times = np.bincount(at, minlength=math.prod(shape))
        if quantifier in ("MIN", "MAX"):
            join = np.minimum if quantifier == "MIN" else np.maximum
            numbers = np.full(len(times), np.inf if quantifier == "MIN" else -np.inf)
            join.at(numbers, at, self.value)
        else:
            numbers = np.bincount(at, self.value, minlength=len(times)).astype(np.float64)
            numbers /= np.maximum(times, 1) if quantifier == "AVG" else 1
        kept = np.flatnonzero((times > 0) if quantifier in OF_CHOSEN else np.ones(len(times), bool))
        ids = np.unravel_index(kept, shape) if keys else ()
        return [np.asarray(column, np.int32) for column in ids], numbers[kept]


def _joined(numbers: Sequence[Atom]) -> list[Guard]:
    return [Guard(atom, True, None) for atom in numbers]


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
    guards: Sequence[Guard],
    known: Mapping[str, np.ndarray],
) -> None:
    """Raise if a number is hidden in some grounding; where there are only rows, in one of them."""
    rows = OnlyRows(world)
    for atom in numbers:
        rows.guarded(atom)
    chosen = [*rows.outside, *(atom for atom in numbers if atom.predicate in world.closed)]
    count = len(known["n0"]) if numbers else 0
    whole = [*_joined(list(dict.fromkeys(chosen))), *guards]
    if not numbers or (not whole and count == math.prod(map(len, ranges.values()))):
        return
    query = Query(world, types, ranges, whole)
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
    for atom in (atom for atom in numbers if atom.predicate not in world.closed):
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
