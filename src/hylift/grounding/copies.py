"""Groundings by the number of members of their quantifiers, with a copy of the body for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.guards import Test, decided
from hylift.grounding.members import Members
from hylift.grounding.plan import RulePlan, open_slots, state_variables
from hylift.grounding.query import Groundings, IntColumn, Query, fetched
from hylift.grounding.world import World
from hylift.language.lowering.fold import fold, joined
from hylift.language.syntax import Atom, Expr
from hylift.language.walk import rebuild, renamed
from hylift.numerics.grouping import by_number, group_rows


def by_size(
    world: World, plan: RulePlan, found: Groundings
) -> Iterator[tuple[RulePlan, Groundings]]:
    """Groundings whose quantifiers have the same numbers of members, and the rule as it is there.

    Those in which an average, a least or a greatest one is of nothing are left out.
    """
    if not plan.members:
        yield plan, found
        return
    lists = [_Lists.of(world, members, found) for members in plan.members]
    number, count = group_rows(np.stack([one.size for one in lists], axis=1, dtype=np.int32))
    order, begin = by_number(number, count)
    for start, stop in pairwise(begin.tolist()):
        own = order[start:stop]
        sizes = [int(one.size[own[0]]) for one in lists]
        sized = _sized(world, plan, sizes)
        if sized is not None:
            yield sized, _chosen(found, lists, sizes, own)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The members of a quantifier, by grounding."""

    members: Members
    rows: Groundings
    """All members of all groundings."""
    order: IntColumn
    """(member,): rows sorted by grounding."""
    start: NDArray[np.int64]  # (grounding,)
    size: NDArray[np.int64]  # (grounding,)

    @classmethod
    def of(cls, world: World, members: Members, found: Groundings) -> _Lists:
        query = Query(world, members.types, members.ranges, members.guards)
        rows = fetched(world, query, list(members.types), members.bits)
        keys = np.empty((found.count + rows.count, len(members.free)), dtype=np.int32)
        for place, name in enumerate(members.free):
            keys[:, place] = np.concatenate([found.columns[name], rows.columns[name]])
        number, count = group_rows(keys)
        order, begin = by_number(number[found.count :], count)
        own = number[: found.count]
        return cls(members, rows, order, begin[own], np.diff(begin)[own])


def _sized(world: World, plan: RulePlan, sizes: Sequence[int]) -> RulePlan | None:
    """The rule where its quantifiers have so many members; None if one is of nothing."""
    written: dict[Expr, Expr] = {}
    types, kinds = dict(plan.types), dict[Atom, object]()
    for members, size in zip(plan.members, sizes, strict=True):
        whole = joined(members.quantifier, members.copies(size))
        if whole is None:
            return None
        written[members.atom] = whole
        kinds |= members.kinds(size)
        for copy in range(size):
            types |= {new: members.types[old] for old, new in members.names(copy).items()}
    formula = fold(_replaced(plan.formula, written), {})
    slots = open_slots(world, formula)
    by = dict.fromkeys([*plan.weighted_by, *state_variables(world, formula)])
    return replace(
        plan,
        types=types,
        formula=formula,
        members=(),
        sizes=tuple(zip(plan.members, sizes, strict=True)),
        slots=slots,
        bits=decided(world, formula),
        row_variables=tuple(by),
        kinds=kinds,
    )


def _replaced(expr: Expr, written: dict[Expr, Expr]) -> Expr:
    if expr in written:
        return written[expr]
    return rebuild(expr, lambda part: _replaced(part, written))


def _chosen(
    found: Groundings, lists: Sequence[_Lists], sizes: Sequence[int], own: IntColumn
) -> Groundings:
    """Some groundings, with a column for each variable of each copy."""
    columns = {name: column[own] for name, column in found.columns.items()}
    bits: dict[Test, NDArray[np.bool_]] = {test: bit[own] for test, bit in found.bits.items()}
    for one, size in zip(lists, sizes, strict=True):
        start = one.start[own]
        for copy in range(size):
            at, names = one.order[start + copy], one.members.names(copy)
            columns |= {new: one.rows.columns[old][at] for old, new in names.items()}
            for test, bit in one.rows.bits.items():
                bits[renamed(test, names)] = bit[at]
    return Groundings(len(own), columns, bits)
