"""Formulas -> potentials: a table, a conditional quadratic, or else a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hylift.language.lowering.evaluate import NotQuadratic
from hylift.language.lowering.faults import MAX_ENTRIES, MAX_NUMBERS, check_size
from hylift.language.lowering.formula import Formula, Grid, Leaf, Source
from hylift.language.syntax import Atom, Comparison, Expr, Number, Operation, Truth, Unary
from hylift.language.walk import atoms, conditioning_variables, logical_comparisons, nodes, rebuild
from hylift.potentials import Function, Potential
from hylift.potentials.base import FloatArray
from hylift.potentials.counted import Counted
from hylift.potentials.quadratic import as_table

MOST_STATES = 2**12
"""Joint states up to which counts are tables like any other formula."""


def lower(
    formula: Expr,
    weight: FloatArray,
    leaves: Mapping[Expr, Leaf],
    *,
    parameters: Mapping[str, float],
    hard: bool = False,
    rule: str = "",
    remedy: Callable[[], str] | None = None,
) -> Potential:
    """The potential weight * formula, with a row per weight; hard: 0 where it holds, else -inf.

    formula: without quantifiers. leaves: all its atoms and comparisons of logical terms; slots
    count from 0, discrete ones before reals. The potential is of the most specific kind: a
    function only if the formula is not quadratic in its reals. rule, remedy: what errors about its
    size call the formula, and what to do about it.
    """
    lowered, rows = Formula.of(formula, weight, leaves, parameters)
    grid = Grid.of(lowered, rows, ())
    if grid.num_entries > MOST_STATES and (found := _counted(lowered, rows, hard)) is not None:
        return found
    check_size(formula, grid.num_rows, grid.num_entries, len(grid.free), rule, remedy)
    try:
        return grid.potential(hard)
    except NotQuadratic:
        return Function(lowered, len(grid.states), grid.num_reals, rows)


# Counts of many slots.

COUNT = Atom("count")
"""Stands for the number of literals of a chain; its slot has that number as its state."""


def _counted(made: Formula, rows: FloatArray, hard: bool) -> Counted | None:
    """The potential of a formula in which many slots only matter by how many literals of them hold:
    those of `A(p) + A(q) + …`, of `A(p) v …` or of `A(p) ^ …`."""
    if made.num_slots > len(made.states):
        return None
    made = replace(made, formula=_on_one_side(made.formula))
    sources, parts = dict(made.sources), nodes(made.formula)
    times = Counter(node for node in parts if isinstance(node, Atom))
    used = Counter(source.slot for source in sources.values())
    once = {
        atom: own
        for atom, own in sources.items()
        if isinstance(atom, Atom) and times[atom] == 1 == used[own.slot]
    }
    chains = [
        (node, literals)
        for node in parts
        if isinstance(node, Operation) and node.op in ("+", "v", "^")
        if len(literals := _literals(node, once, made, rows)) > 1
    ]
    if not chains:
        return None
    node, literals = max(chains, key=lambda chain: len(chain[1]))
    rest = tuple(part for part in node.operands if part not in literals)
    whole: Expr = COUNT
    if node.op != "+":
        least = Number(0.5 if node.op == "v" else len(literals) - 0.5)
        whole = Comparison(">", COUNT, least, is_exact=True)
    if rest:
        whole = Operation(node.op, (whole, *rest))
    formula = _replaced(made.formula, node, whole)
    slots = {sources[atoms(part)[0]].slot: part for part in literals}
    others = [slot for slot in range(made.num_slots) if slot not in slots]
    kept: set[Expr] = {*atoms(formula), *logical_comparisons(formula)}
    kept |= set(conditioning_variables(formula))
    moved = 1 + len(others) - made.num_slots
    shorter: list[tuple[Expr, Source]] = [(COUNT, Source(0, is_state=True))]
    for part, source in made.sources:
        if part in kept:
            slot = None if source.slot is None else 1 + others.index(source.slot)
            column = None if source.column is None else source.column + moved
            shorter.append((part, replace(source, slot=slot, column=column)))
    states = (len(literals) + 1, *(made.states[slot] for slot in others))
    small = Formula(formula, tuple(shorter), states, 1 + len(others), made.parameters)
    grid = Grid.of(small, rows, ())
    if grid.num_entries > MAX_ENTRIES or grid.num_rows * grid.num_entries > MAX_NUMBERS:
        return None
    table = as_table(grid.potential(hard))
    assert table is not None  # there are no reals
    counted = sorted(slot for slot in slots if slot is not None)
    truth = tuple(literals[slots[slot]] for slot in counted)
    return Counted(table.log_table, made.states, tuple(counted), truth)


def _literals(
    chain: Operation, once: Mapping[Atom, Source], made: Formula, rows: FloatArray
) -> dict[Expr, tuple[bool, ...]]:
    """The operands that are literals of a slot that the formula has nowhere else: whether each
    holds, per state.

    once: the atoms that occur once, and whose slot no other atom has.
    """
    found: dict[Expr, tuple[bool, ...]] = {}
    for part in chain.operands:
        atom, is_negated = _literal(part)
        source = once.get(atom) if isinstance(atom, Atom) else None
        if source is None or source.slot is None or source.is_state:
            continue
        given = np.ones(1)
        if source.column is not None:
            given = np.unique(rows[:, source.column - made.num_slots])
        if len(given) == 1:
            holds = np.arange(made.states[source.slot]) == given[0]
            found[part] = tuple((holds != is_negated).tolist())
    return found


def _literal(part: Expr) -> tuple[Expr, bool]:
    """The negated expression, and True; or the expression itself."""
    if isinstance(part, Unary) and part.op == "!":
        return part.operand, True
    return part, False


def _on_one_side(expr: Expr) -> Expr:
    """The formula with one sum where two are compared: `A + B > C + 1` is `A + B + !C > 2`."""
    if not isinstance(expr, Comparison) or not expr.is_exact or expr.is_logical:
        return rebuild(expr, _on_one_side)
    terms = [*_terms(expr.left, 1.0), *_terms(expr.right, -1.0)]
    literals = [(term, sign) for term, sign in terms if not isinstance(term, Number | Truth)]
    if not all(isinstance(_literal(term)[0], Atom) for term, _ in literals) or len(literals) < 2:
        return expr
    bound = sum(sign < 0 for _, sign in literals) - sum(
        sign * float(term.value) for term, sign in terms if isinstance(term, Number | Truth)
    )
    counted = tuple(term if sign > 0 else _negated(term) for term, sign in literals)
    return replace(expr, left=Operation("+", counted), right=Number(float(bound)))


def _negated(literal: Expr) -> Expr:
    atom, is_negated = _literal(literal)
    return atom if is_negated else Unary("!", atom)


def _terms(expr: Expr, sign: float) -> list[tuple[Expr, float]]:
    """The terms of sums and differences, with their signs."""
    match expr:
        case Operation(op="+", operands=operands):
            return [term for operand in operands for term in _terms(operand, sign)]
        case Operation(op="-", operands=(left, right)):
            return [*_terms(left, sign), *_terms(right, -sign)]
        case Unary(op="-", operand=operand):
            return _terms(operand, -sign)
    return [(expr, sign)]


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr is old:
        return new
    return rebuild(expr, lambda part: _replaced(part, old, new))
