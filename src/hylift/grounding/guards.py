"""Tests that decide whether a grounding exists or matters, and ranges of logical variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hylift.grounding.constants import as_integers
from hylift.grounding.world import World
from hylift.language.lowering.fold import expand, fold
from hylift.language.report import fail
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Number,
    Quantified,
    Truth,
    Variable,
)
from hylift.language.walk import atoms, children, logical_comparisons, nodes, occurrences

Test = Atom | Comparison
"""A closed-world atom, or x != y: decided by evidence and the grounding itself."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that must come out as `holds` for a grounding to become a factor.

    Where it does not, the formula has a constant value, or, for a test after `where` (None), there
    is no grounding at all.
    """

    test: Test
    holds: bool
    otherwise: float | None


def find_guards(
    world: World, formula: Expr, otherwise: float | None = None
) -> tuple[list[Guard], Expr]:
    """Tests whose one outcome makes the formula constant, and the formula under their other one.

    Atoms that must be true come first: they are joins, which cut away the most. otherwise: the only
    constant that counts.
    """
    guards: list[Guard] = []
    while (guard := next(_guards(world, formula, otherwise), None)) is not None:
        guards.append(guard)
        formula = fold(formula, {guard.test: guard.holds})
    return guards, formula


def _guards(world: World, formula: Expr, otherwise: float | None) -> Iterator[Guard]:
    tests: list[Test] = [*closed_atoms(world, formula), *logical_comparisons(formula)]
    for holds in (True, False):
        for test in tests:
            constant = as_number(fold(formula, {test: not holds}))
            if constant is not None and (otherwise is None or constant == otherwise):
                yield Guard(test, holds, constant)


def closed_atoms(world: World, formula: Expr) -> list[Atom]:
    """The atoms of a formula that evidence decides."""
    return [atom for atom in atoms(formula) if atom.predicate in world.closed]


def decided(world: World, formula: Expr) -> tuple[Test, ...]:
    """The tests in a formula."""
    return (*logical_comparisons(formula), *closed_atoms(world, formula))


def as_number(formula: Expr) -> float | None:
    """The value of a formula that depends on nothing, with 1 for true; None for any other."""
    if isinstance(formula, Truth | Number):
        return float(formula.value)
    return None


def variable_ranges(
    world: World, types: Mapping[str, str], written: Sequence[Expr]
) -> dict[str, range]:
    """The ids of variables for which every t+1 and t-1 in the formulas is a constant, too."""
    shifts: dict[str, list[int]] = {name: [0] for name in types}
    free = (one.variable for one in occurrences(*written) if one.binder is None)
    for term in free:
        if term.shift and term.name in types:
            shifts[term.name].append(term.shift)
            _check_neighbours(world, types[term.name], term)
    return {
        name: range(-min(own), max(-min(own), world.size(types[name]) - max(own)))
        for name, own in shifts.items()
    }


def _check_neighbours(world: World, type_name: str, term: Variable) -> None:
    """Raise if constants are integers with gaps: the neighbour t+1 would not be t + 1."""
    numbers = as_integers(world.constants[type_name])
    if numbers is None or (np.diff(numbers) == 1).all():
        return
    at = int(np.argmax(np.diff(numbers) != 1))
    fail(
        f"'{term.name}{term.shift:+d}' asks for neighbours in the type '{type_name}', but its "
        f"numbers have gaps: {numbers[at + 1]} follows {numbers[at]}. List the type as a "
        f"range, such as {type_name} = {{{numbers.min()}, ..., {numbers.max()}}}",
        term.place,
    )


def expanded(world: World, formula: Expr, types: Mapping[str, str], label: str) -> Expr:
    """The formula with its quantifiers expanded."""
    quantified = [node for node in nodes(formula) if isinstance(node, Quantified)]
    if not quantified:
        return formula
    size = _expanded_size(world, formula, types)
    if size > MAX_EXPANDED:
        fail(
            f"the quantifiers of '{label}' expand to {size:,} atoms; the maximum is "
            f"{MAX_EXPANDED:,}: "
            "quantify over smaller types, or define a predicate for the quantity",
            quantified[0].place,
        )
    bound = {types[name] for node in quantified for name in node.variables}
    constants = {name: world.constants[name].to_pylist() for name in bound}
    return expand(formula, constants, types)


def _expanded_size(world: World, expr: Expr, types: Mapping[str, str]) -> int:
    """The number of atoms of an expression when its quantifiers are expanded."""
    if isinstance(expr, Atom):
        return 1
    size = sum(_expanded_size(world, child, types) for child in children(expr))
    if isinstance(expr, Quantified):
        for name in expr.variables:
            size *= world.size(types[name])
    return size


MAX_EXPANDED = 10_000
"""Most atoms of a formula whose quantifiers are expanded; tables stop far earlier."""
