"""Factors multiplied into factors whose scopes contain theirs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.graph.variables import Variables
from hylift.numerics.grouping import average_rows, class_sums, first_members, group_rows
from hylift.numerics.segments import (
    first_of_each,
    inverse,
    number_lists,
    number_rows,
    offsets,
    ranges,
)
from hylift.potentials import REAL, Potential
from hylift.rewrite.kinds import in_standard_form

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Ties = Literal["first", "shared"]
"""The target of a factor that several smallest ones contain."""

MANY_SLOTS = 6
"""Slots up to which those of a product are sorted, and searched for subsets of any size."""

QUERIES = 4_000_000
"""Sets that are looked up at once; bounds the memory."""

SAME = 1e-9
"""Relative difference of parameters that is taken for rounding."""


def merge_factors(graph: FactorGraph, ties: Ties = "first") -> FactorGraph:
    """The same density, without factors whose scope is contained in that of another factor.

    Each such factor is multiplied into the smallest remaining factor that contains its scope. Where
    several are smallest, it goes into the first of them, or an equal share of its logarithm into
    each if ties are "shared". Both have the same energy under any beliefs, but shares preserve
    symmetry for lifting.

    Tables and quadratics are merged; their multiplicities become part of their parameters.
    Functions stay as they are. In factors of more than six slots, only scopes of one or two
    variables, or of all, are found. Evidence is kept but ignored: condition first, since some
    scopes are nested only after observed slots are removed.
    """
    if ties not in get_args(Ties):
        raise ModelError(f"ties must be 'first' or 'shared', not {ties!r}")
    _check_ground(graph.variables)
    graph = in_standard_form(graph)
    closed = [group.potential.quadratic() is not None for group in graph.groups]
    pool = _Pool.of([g for g, ok in zip(graph.groups, closed, strict=True) if ok and g.arity])
    merged = iter(pool.merged(ties))
    log_constant = graph.log_constant
    groups: list[FactorGroup | None] = []
    for group, ok in zip(graph.groups, closed, strict=True):
        if ok and group.arity:
            groups.append(next(merged))
        elif ok and np.isfinite(constant := group.log_sum(np.zeros(0))):
            log_constant += constant
        else:  # a function, or an impossible constant, which conditioning reports
            groups.append(group)
    return graph.with_groups((group for group in groups if group is not None), log_constant)


def add_up(group: FactorGroup) -> FactorGroup:
    """Factors with the same slots become one, whose parameters are the mean of theirs; the group
    itself if there are none."""
    alike, count = group_rows(group.scope)
    if count == len(group):
        return group
    first = first_members(alike)
    rows = average_rows(
        group.potential.flat, group.row, group.multiplicity, alike, group.row[first]
    )
    return FactorGroup.unchecked(
        group.potential.with_flat(rows),
        group.scope[first],
        np.arange(count, dtype=np.int32),
        class_sums(group.multiplicity, alike, count),
        group.label,
    )


def _check_ground(variables: Variables) -> None:
    several = variables.multiplicity != 1
    if several.any():
        at = int(np.argmax(several))
        raise ModelError(
            f"variable '{variables.names[at]}' stands for {variables.multiplicity[at]:g} "
            "variables: factors of a lifted graph cannot be merged; merge them before lifting"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Products:
    """Which factor is multiplied into which, by numbers that run through all groups."""

    target: Ints  # (product,), increasing; each remaining factor also goes into itself
    source: Ints  # (product,)
    weight: Floats  # (product,): the power of the source


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """The factors that may be merged, numbered through all their groups."""

    groups: list[FactorGroup]
    start: Ints  # (group + 1,): number of its first factor

    @classmethod
    def of(cls, groups: list[FactorGroup]) -> _Pool:
        return cls(groups, offsets([len(group) for group in groups]))

    def merged(self, ties: Ties) -> list[FactorGroup | None]:
        """Each group with what was multiplied into it; None where nothing remains."""
        if not self.start[-1]:
            return [None] * len(self.groups)
        products = self._products(ties)
        ends = np.searchsorted(products.target, self.start)
        return [
            self._product(at, products, slice(ends[at], ends[at + 1]))
            if ends[at] < ends[at + 1]
            else None
            for at in range(len(self.groups))
        ]

    def _products(self, ties: Ties) -> _Products:
        set_of, tables = self._sets()
        num_sets = tables[-1].start + len(tables[-1].members)
        size = np.repeat([t.size for t in tables], [len(t.members) for t in tables])
        first = first_of_each(set_of)
        inner, outer, share = _moves(*_inclusions(tables), size, first, ties)
        # From sets to the factors that have them.
        inner_start = np.searchsorted(inner, np.arange(num_sets + 1))
        count = np.diff(inner_start)[set_of]
        source = np.repeat(np.arange(len(set_of)), count)
        move = ranges(inner_start[set_of], count)
        multiplicity = np.concatenate([group.multiplicity for group in self.groups])
        target = first[outer[move]]
        order = np.argsort(target, kind="stable")
        weight = (multiplicity[source] * share[move])[order]
        return _Products(target[order], source[order], weight)

    def _sets(self) -> tuple[Ints, list[_SetTable]]:
        """(factor,): the number of its set of variables; and the sets, smallest first."""
        set_of = np.empty(self.start[-1], dtype=np.int64)
        tables: list[_SetTable] = []
        num_sets = 0
        for size in sorted({group.arity for group in self.groups}):
            alike = [at for at, group in enumerate(self.groups) if group.arity == size]
            scope = np.concatenate([self.groups[at].scope for at in alike])
            factors = ranges(self.start[alike], np.diff(self.start)[alike])
            if not len(factors):
                continue
            members = np.sort(scope, axis=1).astype(np.int64)
            number, example = number_rows(*members.T)
            set_of[factors] = number + num_sets
            tables.append(_SetTable(members[example], num_sets))
            num_sets += len(example)
        return set_of, tables

    def _product(self, at: int, products: _Products, part: slice) -> FactorGroup:
        """The remaining factors of a group, with all that is multiplied into them."""
        group = self.groups[at]
        target, source = products.target[part] - self.start[at], products.source[part]
        weight = products.weight[part]
        is_new = np.append(True, target[1:] != target[:-1])
        kept, owner = target[is_new], np.cumsum(is_new) - 1
        if len(kept) == len(source) and (weight == 1).all():
            return group if len(kept) == len(group) else group.take(kept)
        terms = self._terms(group, target, source, weight)
        # Factors that are products of the same rows share a row.
        power = np.unique(weight, return_inverse=True)[1]
        kind = number_rows(terms.spread, terms.row, power)[0]
        order = np.argsort(owner * (int(kind.max()) + 1) + kind, kind="stable")
        row, example = number_lists(owner[order], kind[order])
        is_example = np.zeros(len(kept), dtype=bool)
        is_example[example] = True
        flat = terms.summed(group, np.flatnonzero(is_example[owner]), row[owner], len(example))
        slots = _put_in_order(group.potential, flat, np.bincount(owner)[example] > 1)
        everyone = [group, *(self.groups[g] for g in terms.groups)]
        return FactorGroup.unchecked(
            group.potential.with_flat(flat),
            np.take_along_axis(group.scope[kept], slots[row], axis=1),
            row.astype(np.int32),
            np.ones(len(kept)),
            " + ".join(dict.fromkeys(g.label for g in everyone if g.label)),
        )

    def _terms(self, into: FactorGroup, target: Ints, source: Ints, weight: Floats) -> _Terms:
        group_of = np.searchsorted(self.start, source, side="right") - 1
        row, number = np.empty_like(source), np.empty_like(source)
        spreads: list[tuple[FactorGroup, Ints]] = []
        present = np.unique(group_of).tolist()
        for at in present:
            group, these = self.groups[at], np.flatnonzero(group_of == at)
            factors = source[these] - self.start[at]
            row[these] = group.row[factors]
            slots = places(group.scope[factors], into.scope[target[these]])
            pattern, example = number_rows(*slots.T)
            number[these] = len(spreads) + pattern
            states = group.potential.slot_states, into.potential.slot_states
            spreads += [(group, _spread(*states, slots[some])) for some in example]
        return _Terms(number, row, weight, spreads, present)


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """Parameters that are added to those of factors of one group."""

    spread: Ints  # (term,): which of `spreads`
    row: Ints  # (term,): row of that group's potential
    weight: Floats  # (term,)
    spreads: list[tuple[FactorGroup, Ints]]
    """Groups the terms come from, with (entry,): which of their entries goes there, or -1."""
    groups: list[int]

    def summed(self, into: FactorGroup, terms: Ints, place: Ints, num_rows: int) -> Floats:
        """(row, entry): sums of some terms as parameters of a group; place: (term,): its row."""
        flat = np.zeros((num_rows, into.potential.take(np.arange(0)).flat.shape[1]))
        terms = terms[np.lexsort((place[terms], self.spread[terms]))]
        ends = np.searchsorted(self.spread[terms], np.arange(len(self.spreads) + 1))
        for number, (group, entries) in enumerate(self.spreads):
            some = terms[ends[number] : ends[number + 1]]
            if not len(some):
                continue
            at = place[some]
            starts = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
            values = self.weight[some, None] * group.potential.take(self.row[some]).flat
            total = np.add.reduceat(values, starts, axis=0)
            reached = np.flatnonzero(entries >= 0)
            flat[np.ix_(at[starts], reached)] += total[:, entries[reached]]
        return flat


@dataclass(frozen=True, slots=True, eq=False)
class _SetTable:
    """Different sets of so many variables."""

    members: Ints  # (set, member), increasing
    start: int
    """Number of the first set among those of all sizes."""

    @property
    def size(self) -> int:
        return int(self.members.shape[1])

    def find(self, sets: Ints) -> Ints:
        """(query,): the position of each set (query, member) in the table, or -1."""
        number, _ = number_rows(*np.concatenate([self.members, sets]).T)
        position = inverse(number[: len(self.members)], int(number.max()) + 1)
        return position[number[len(self.members) :]]


def _inclusions(tables: Sequence[_SetTable]) -> tuple[Ints, Ints]:
    """Numbers of sets that are contained in a larger set, and of the larger ones."""
    inner, outer = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for place, large in enumerate(tables):
        for small in tables[:place]:
            if large.size > MANY_SLOTS and small.size > 2:
                continue
            for slots in _some_at_once(large.size, small.size, QUERIES // len(large.members) + 1):
                found = small.find(large.members[:, slots].reshape(-1, small.size))
                hits = np.flatnonzero(found >= 0)
                inner.append(found[hits] + small.start)
                outer.append(hits // len(slots) + large.start)
    return np.concatenate(inner), np.concatenate(outer)


def _some_at_once(num_slots: int, size: int, count: int) -> Iterator[Ints]:
    """All sets of so many slots, in arrays (set, slot) of up to `count`."""
    sets = combinations(range(num_slots), size)
    while some := list(islice(sets, count)):
        yield np.fromiter(chain.from_iterable(some), np.int64).reshape(-1, size)


def _moves(
    inner: Ints, outer: Ints, size: Ints, first: Ints, ties: Ties
) -> tuple[Ints, Ints, Floats]:
    """Sets, increasing, the sets their factors go to, and with which share of them.

    inner, outer: sets and larger ones; size, first: (set,): members, and its first factor.
    """
    remains = np.ones(len(size), dtype=bool)
    remains[inner] = False
    stay = np.flatnonzero(remains)
    inner, outer = inner[remains[outer]], outer[remains[outer]]
    for rank in (size, first) if ties == "first" else (size,):
        lowest = np.full(len(size), np.iinfo(np.int64).max)
        np.minimum.at(lowest, inner, rank[outer])
        best = rank[outer] == lowest[inner]
        inner, outer = inner[best], outer[best]
    inner, outer = np.concatenate([stay, inner]), np.concatenate([stay, outer])
    order = np.argsort(inner, kind="stable")
    inner, outer = inner[order], outer[order]
    return inner, outer, 1.0 / np.bincount(inner, minlength=len(size))[inner]


def places(inner: NDArray[np.int32], outer: NDArray[np.int32]) -> Ints:
    """(factor, slot of inner): the slot of outer with the same variable."""
    places = np.empty(inner.shape, dtype=np.int64)
    for slot, column in enumerate(inner.T):
        places[:, slot] = np.argmax(outer == column[:, None], axis=1)
    return places


def _put_in_order(potential: Potential, flat: Floats, is_product: NDArray[np.bool_]) -> Ints:
    """(row, slot): the slots in the order in which the rows of products in `flat` are put.

    Slots of one kind are swapped so that the row becomes smaller. Where ψ(x, y) is a product of the
    same factors as ψ(y', x'), both then have one row, and lifting sees that they are alike.
    """
    arity = len(potential.slot_states)
    order = np.tile(np.arange(arity), (len(flat), 1))
    if arity > MANY_SLOTS:
        return order
    rows = np.flatnonzero(is_product)
    for i, j in combinations(range(arity), 2):
        entries = potential.exchange(i, j)
        if entries is not None:
            swapped = flat[rows][:, entries]
            smaller = _is_smaller(swapped, flat[rows])
            changed = rows[smaller, None]
            flat[rows[smaller]] = swapped[smaller]
            order[changed, [i, j]] = order[changed, [j, i]]
    return order


def _is_smaller(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """(row,): whether the first entry in which the rows differ is smaller in `first`."""
    with np.errstate(invalid="ignore"):
        difference = np.nan_to_num(first - second)  # -inf and -inf do not differ
    scale = np.abs(np.where(np.isfinite(first), first, 0.0)).max(axis=1, keepdims=True)
    differs = np.abs(difference) > SAME * scale
    at = np.argmax(differs, axis=1)
    rows = np.arange(len(first))
    return np.asarray(differs[rows, at] & (difference[rows, at] < 0))


def _spread(inner: Sequence[int], outer: Sequence[int], slots: Ints) -> Ints:
    """(entry of outer's rows,): the entry of inner's that is added to it, or -1.

    inner, outer: slot states; slots: (slot of inner,): slots of outer.
    """
    num_discrete = sum(states != REAL for states in outer)
    discrete = slots[slots < num_discrete]
    reals = slots[len(discrete) :] - num_discrete
    target = _entries(outer)
    states = target[2].shape
    missing = [axis for axis in range(num_discrete) if axis not in discrete]
    for into, part in zip(target, _entries(inner), strict=True):
        trailing = range(len(discrete), part.ndim)
        ordered = part.transpose(*np.argsort(discrete), *trailing)
        spread = np.expand_dims(ordered, missing)
        spread = np.broadcast_to(spread, states + spread.shape[num_discrete:])
        into[...] = -1
        at: tuple[Any, ...] = (..., *np.ix_(*[reals] * len(trailing)))
        into[at] = spread
    return np.concatenate([part.ravel() for part in target])


def _entries(slot_states: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Positions in a row's `flat`, shaped like A, b and c; of a table, A and b are empty."""
    states = tuple(size for size in slot_states if size != REAL)
    num_reals = len(slot_states) - len(states)
    shapes = [(*states, num_reals, num_reals), (*states, num_reals), states]
    ends = offsets([math.prod(shape) for shape in shapes])
    A, b, c = (
        np.arange(start, end).reshape(shape)
        for start, end, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    )
    return A, b, c
