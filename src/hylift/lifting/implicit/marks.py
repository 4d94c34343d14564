"""Marks of single constants and pairs: evidence, relations, constants that rules name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.plan import RulePlan
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Comparison, Constant, Expr, Variable
from hylift.language.walk import atoms, terms
from hylift.numerics.grouping import group_pairs

MOST_ARGUMENTS = 2
"""Of atoms, and variables of rules, of which classes of constants and of pairs say all."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Constants or pairs that differ from all others of their types, and how."""

    subject: str
    """The origin of the marks, in words."""
    types: tuple[str, ...]
    ids: NDArray[np.int32]  # (row, argument)
    code: NDArray[np.int32]
    """(row,): from 0; rows of one code do not differ in this."""

    @classmethod
    def alike(cls, subject: str, types: tuple[str, ...], ids: NDArray[np.int32]) -> Mark:
        return cls(subject, types, ids, np.zeros(len(ids), dtype=np.int32))

    def in_order(self) -> Mark:
        """The same with the types in alphabetical order."""
        if self.types == (types := tuple(sorted(self.types))):
            return self
        return replace(self, types=types, ids=self.ids[:, ::-1])

    @classmethod
    def each(cls, subject: str, name: str, ids: Sequence[int] | range) -> Mark:
        """Each of these constants differs from all others."""
        numbers = np.asarray(ids, dtype=np.int32)
        return cls(subject, (name,), numbers[:, None], np.arange(len(numbers), dtype=np.int32))


def out_of_reach(world: World, plan: RulePlan) -> str | None:
    """The reason why classes of pairs do not suffice for a rule; None where they do."""
    if plan.members:
        return f"'{plan.label}' quantifies over rows of tables"
    if len(plan.types) > MOST_ARGUMENTS:
        return f"'{plan.label}' has {len(plan.types)} variables"
    for atom in _atoms(plan):
        if len(_types(world, atom.predicate)) > MOST_ARGUMENTS:
            return f"'{atom.predicate}' has {len(_types(world, atom.predicate))} arguments"
    return None


def marks_of(
    world: World, plans: Sequence[RulePlan], listed: Sequence[RulePlan] = ()
) -> list[Mark]:
    """All that tells constants and pairs apart, in the eyes of rules.

    listed: rules of which no more than the evidence on their atoms is asked.
    """
    used = [atom.predicate for plan in plans for atom in _atoms(plan)]
    used += [atom.predicate for plan in listed for atom in plan.slots]
    found: list[Mark] = []
    for name in dict.fromkeys(used):
        types = _types(world, name)
        if name in world.relations:
            found.append(Mark.alike(f"the table of '{name}'", types, _rows(world, name)))
        elif name in world.evidence:
            found += _observed(world, name, types)
    named: dict[str, set[int]] = {}
    ordered: dict[str, str] = {}
    for plan in plans:
        for name, constant in _named(world, plan):
            named.setdefault(name, set()).add(constant)
        ordered |= dict.fromkeys(told_apart(plan), plan.label)
    found += [Mark.each("constants in rules", name, sorted(ids)) for name, ids in named.items()]
    found += [
        Mark.each(f"the rule '{label}', in which each '{name}' has a place of its own", name,
                  range(world.size(name)))
        for name, label in ordered.items()
    ]  # fmt: skip
    return [mark for mark in found if mark.types and len(mark.ids)]


def _atoms(plan: RulePlan) -> list[Atom]:
    """The atoms that groundings of a rule have or look up."""
    return atoms(*_expressions(plan))


def _expressions(plan: RulePlan) -> list[Expr]:
    return [plan.formula, *(guard.test for guard in plan.guards), *plan.bits]


def _types(world: World, predicate: str) -> tuple[str, ...]:
    """Of the arguments that identify an atom."""
    declared = world.model.predicate_by_name[predicate]
    return tuple(t for place, t in enumerate(declared.arguments) if place != declared.unique)


def _rows(world: World, name: str) -> NDArray[np.int32]:
    columns = [f"a{place}" for place in range(len(_types(world, name)))]
    if not columns:
        return np.zeros((1, 0), dtype=np.int32)
    found = world.engine.fetch(f"SELECT {', '.join(columns)} FROM {world.relations[name].table}")
    return np.stack([np.asarray(found[column], dtype=np.int32) for column in columns], axis=1)


def _observed(world: World, name: str, types: tuple[str, ...]) -> Iterator[Mark]:
    """Atoms by what was observed of them."""
    found, subject = world.evidence[name], f"the evidence on '{name}'"
    code, _ = _numbers(found.value, found.sd)
    yield Mark(subject, types, found.ids, code)
    if found.excluded is not None:
        ids, states = found.excluded
        for state in np.unique(states):
            yield Mark.alike(subject, types, ids[states == state])


def _numbers(*columns: NDArray[np.float64]) -> tuple[NDArray[np.int32], int]:
    """(row,): from 0, equal for equal rows of these columns."""
    number, count = np.zeros(len(columns[0]), dtype=np.int32), 1
    for column in columns:
        number, count = group_pairs(number, (column + 0.0).view(np.uint64))
    return number, count


def _named(world: World, plan: RulePlan) -> Iterator[tuple[str, int]]:
    """Types and ids of the constants that a rule names."""
    for atom in _atoms(plan):
        declared = world.model.predicate_by_name[atom.predicate]
        for place, term in enumerate(atom.arguments):
            if isinstance(term, Constant):
                name = declared.arguments[place]
                yield name, world.constant_id(name, term.name)
    for test in _comparisons(plan):
        sides = test.left, test.right
        types = [plan.types[side.name] for side in sides if isinstance(side, Variable)]
        for side in sides:
            if isinstance(side, Constant) and types:
                yield types[0], world.constant_id(types[0], side.name)


def _comparisons(plan: RulePlan) -> list[Comparison]:
    tests = (*(guard.test for guard in plan.guards), *plan.bits)
    return [test for test in tests if isinstance(test, Comparison)]


def told_apart(plan: RulePlan) -> Iterator[str]:
    """Types of which a rule compares the order, or has parameters for each constant."""
    compared = [test for test in _comparisons(plan) if test.op not in ("=", "!=")]
    of_order: Iterable[Expr] = [t for test in compared for t in (test.left, test.right)]
    shifted = [t for t in terms(*_expressions(plan)) if isinstance(t, Variable) and t.shift]
    names = [t.name for t in (*of_order, *shifted) if isinstance(t, Variable)]
    yield from (plan.types[name] for name in (*names, *plan.row_variables))
