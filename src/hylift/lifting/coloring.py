"""Color passing: the coarsest partition into classes of look-alike variables and factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.lifting.kernels import coloring as passing
from hylift.lifting.kernels import refinement
from hylift.lifting.structure import Structure
from hylift.numerics.grouping import (
    by_number,
    first_members,
    group_pairs,
    number_items,
    often,
    renumbered,
)
from hylift.numerics.kernels.grouping import EMPTY
from hylift.numerics.segments import offsets

Ints = NDArray[np.int32]

ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF
MAX_INT32 = np.iinfo(np.int32).max

FEW = 0.25
"""Share of the variables, and of all slots, up to which it pays to visit only what changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Classes of variables and of factors, numbered in the order of their first members."""

    variable: Ints  # (variable,): its class
    factor: Ints  # (factor,): its class
    first_variable: NDArray[np.int64]  # (variable class,): its first member
    first_factor: NDArray[np.int64]  # (factor class,): its first member
    kind: Ints  # (factor,): the kinds that distinguish factors

    @property
    def num_variable_classes(self) -> int:
        return len(self.first_variable)

    @property
    def num_factor_classes(self) -> int:
        return len(self.first_factor)

    def differs(self, kind: Ints) -> NDArray[np.bool_]:
        """(factor,): whether its kind is another than that of the first member of its class."""
        return np.asarray(kind != kind[self.first_factor][self.factor])


def tie(structure: Structure, variable: NDArray[Any], kind: Ints | None = None) -> Partition:
    """Any classes of variables, and the classes of factors that follow from them.

    Factors are in one class when they have one kind and the same classes of variables in their
    slots; exchangeable slots are treated as unordered. By default all factors of a group have one
    kind. Where the rows of a group's potential cannot be averaged, different rows always differ.
    """
    numbers = _checked(variable, structure.num_variables, "variables")
    classes, count = group_pairs(np.zeros(len(numbers), dtype=np.int32), numbers)
    coarsest = structure.kind.copy()
    for group, averages in enumerate(structure.averages):
        if averages:
            begin, end = structure.offsets[group : group + 2]
            coarsest[begin:end] = structure.num_kinds + group
    if kind is not None:
        coarsest, _ = group_pairs(coarsest, _checked(kind, structure.num_factors, "factors"))
    return _with_factors(structure, classes, count, coarsest)


def stable_coloring(
    structure: Structure,
    kind: Ints | None = None,
    start: Partition | None = None,
    mask: int = ALL_BITS,
) -> Partition:
    """The coarsest equitable partition.

    Variables of a class have the same domain and multiplicity, and the same weight of slots in each
    class of factors; factors of a class have the same kind and the same classes in their slots.

    kind: (factor,), none in two groups; by default that of exact parameters. start: the stable
    coloring of coarser kinds, to continue from. mask: bits of the hashes to use; fewer bits cost
    time, but never change the result.
    """
    kind = structure.kind if kind is None else kind
    if start is not None:
        return _after_kinds(structure, start, kind)
    color, count, seed = structure.color, structure.num_colors, 0
    while True:
        found = _colored(structure, kind, color, count, seed, mask)
        color, total = _split(structure, found)
        if total == found.num_variable_classes:
            return found
        # A hash collision had merged variables that differ: continue with other hashes.
        count, seed = total, seed + 1


def _checked(numbers: NDArray[Any], size: int, what: str) -> NDArray[np.uint64]:
    numbers = np.asarray(numbers)
    if numbers.shape != (size,) or numbers.dtype.kind not in "iu":
        raise ModelError(
            f"a partition of {size} {what} must be an array of {size} integers, not an array of "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    return numbers.astype(np.uint64)


def _with_factors(
    structure: Structure,
    variable: Ints,
    count: int,
    kind: Ints,
    signs: NDArray[np.uint64] | None = None,
) -> Partition:
    """Classes of variables, numbered in the order of their first members, with those of factors.

    signs: (factor,), hashes that are equal for factors of one class, if known.
    """
    s = structure
    walk = (s.slots, s.first, s.orbit, kind, variable)
    if signs is None:
        signs = np.empty(s.num_factors, dtype=np.uint64)
        passing.hash_factors(*walk, signs)
    factor, _, first = number_items(
        passing.number_factors, s.num_factors, *walk, signs, expected=count
    )
    return Partition(variable, factor, first_members(variable), first, kind)


def next_colors(
    structure: Structure, kind: Ints, color: Ints, seed: int = 0, mask: int = ALL_BITS
) -> tuple[Ints, int, NDArray[np.uint64]]:
    """Colors after one round of color passing, their number, and the hashes of factors before it.

    Hashes that collide merge colors.
    """
    s, heard = structure, np.zeros(len(color), dtype=np.uint64)
    signs = np.empty(s.num_factors, dtype=np.uint64)
    hashes = (np.uint64(seed), np.uint64(mask))
    passing.pass_colors(s.slots, s.first, s.orbit, kind, s.weight, color, *hashes, heard, signs)
    return *group_pairs(color, heard), signs


def _colored(
    structure: Structure, kind: Ints, color: Ints, count: int, seed: int, mask: int
) -> Partition:
    """A partition that one more round would not change, except for hash collisions."""
    s = structure
    while True:
        new, new_count, signs = next_colors(s, kind, color, seed, mask)
        if new_count in (count, s.num_variables):
            return _with_factors(s, new, new_count, kind, signs if new_count == count else None)
        has_moved, num_moved = _moved(color, new, new_count)
        if num_moved <= FEW * s.num_variables:
            flag = has_moved[new]
            if np.count_nonzero(flag[s.slots]) <= FEW * len(s.slots):
                before = _with_factors(s, color, count, kind, signs)
                changed = np.flatnonzero(flag).astype(np.int32)
                return _after_colors(s, before, new, new_count, changed)
        color, count = new, new_count


def _moved(old: Ints, new: Ints, count: int) -> tuple[NDArray[np.bool_], int]:
    """(class,): whether a new class is not the largest part of its old one; the number of members
    of such classes."""
    size, parent = np.zeros((2, count), dtype=np.int32)
    largest = np.full(count, -1, dtype=np.int32)
    passing.find_largest(old, new, size, parent, largest)
    best = largest[largest >= 0]
    has_moved = np.ones(count, dtype=bool)
    has_moved[best] = False
    return has_moved, len(new) - int(size[best].sum())


def _split(structure: Structure, found: Partition) -> tuple[Ints, int]:
    """The classes, with those split whose members differ, and their number."""
    s, color = structure, found.variable.copy()
    if found.num_variable_classes == s.num_variables:
        return color, s.num_variables
    order, begin = by_number(color, found.num_variable_classes)
    alone = (np.diff(begin) == 1)[color]
    start = offsets(np.where(alone, 0, often(s.slots, s.num_variables)))
    leader = found.first_factor
    base = offsets(s.first[leader + 1] - s.first[leader])
    code = np.empty(start[-1], dtype=np.int32 if base[-1] <= MAX_INT32 else np.int64)
    share = np.empty(start[-1] if len(s.weight) else 0, dtype=np.int64)
    walk = (s.slots, s.first, s.orbit, s.weight)
    passing.edge_codes(*walk, found.factor, base, alone, start[:-1].copy(), code, share)
    wanted, other = np.zeros((2, base[-1]), dtype=np.int64)
    return color, passing.split_unlike(color, order, begin, start, code, share, wanted, other)


def _after_kinds(structure: Structure, start: Partition, kind: Ints) -> Partition:
    """The stable coloring of kinds that refine those of a stable coloring.

    The cost is that of the slots of factors and variables that leave the largest parts of their
    classes, and of comparing kinds, which is least where most factors keep theirs.
    """
    classes = _Classes(start.factor, start.num_factor_classes)
    some = np.flatnonzero(kind != start.kind).astype(np.int32)
    part, num_parts = group_pairs(classes.number[some], kind[some].astype(np.uint64))
    changed = classes.divide(some, part, num_parts)
    colors = _Classes(start.variable, start.num_variable_classes)
    return _refined(structure, kind, colors, classes, changed, changed[:0])


def _after_colors(
    structure: Structure, before: Partition, color: Ints, num_colors: int, changed: Ints
) -> Partition:
    """The stable coloring, from the colors after a round of color passing.

    before: the colors before that round, with the classes of factors. changed: variables outside
    the largest parts into which the round has divided their classes.
    """
    classes = _Classes(before.factor, before.num_factor_classes)
    colors = _Classes(color, num_colors)
    return _refined(structure, before.kind, colors, classes, changed[:0], changed)


def _refined(
    structure: Structure,
    kind: Ints,
    colors: _Classes,
    classes: _Classes,
    factors: Ints,
    variables: Ints,
) -> Partition:
    """The stable coloring, visiting only what has moved to new classes; independent of hashes.

    factors: those that have moved because of their kinds; variables: those that have moved. The
    relation of a class to what has not moved follows from its relation to the rest.
    """
    s = structure
    fresh = np.zeros(s.num_variables, dtype=bool)
    fresh[variables] = True
    visits = _Visits(s, colors, classes, fresh)
    by_kind = 1 if len(factors) else 0
    while len(factors) or len(variables):
        if len(factors):
            found = visits.sign_variables(factors, by_kind)
            fresh[variables] = False
            variables, by_kind = colors.divide(*found), 0
            fresh[variables] = True
        factors = classes.divide(*visits.sign_factors(variables))
        if not len(factors):
            break
    variable, first_variable = renumbered(colors.number, colors.count)
    factor, first_factor = renumbered(classes.number, classes.count)
    return Partition(variable, factor, first_variable, first_factor, kind)


class _Classes:
    """Numbers of classes that are being divided."""

    def __init__(self, number: Ints, count: int) -> None:
        self.number = number.copy()
        self.count = self.num_before = count
        self.size = np.zeros(len(number), dtype=np.int32)
        self.size[:count] = often(number, count)
        self.of_whole = np.zeros(len(number), dtype=bool)
        self.work = np.zeros((2, len(number)), dtype=np.int32)

    def divide(self, some: Ints, part: Ints, num_parts: int) -> Ints:
        """Divide classes into parts; return the members that got new numbers."""
        part_size, part_class, new = np.zeros((3, num_parts), dtype=np.int32)
        moved = np.empty(len(some), dtype=np.int32)
        self.num_before = self.count
        num_moved, self.count = refinement.divide(
            some, part, self.number, self.size, self.of_whole, *self.work, self.count, part_size,
            part_class, new, moved,
        )  # fmt: skip
        return moved[:num_moved]


class _Visits:
    """Signs of variables in the slots of factors that have moved, and of factors around `fresh`
    variables; with arrays to work with."""

    def __init__(
        self, structure: Structure, colors: _Classes, classes: _Classes, fresh: NDArray[np.bool_]
    ) -> None:
        self.structure, self.colors, self.classes = structure, colors, classes
        self.fresh = fresh
        self.amount = np.zeros(structure.num_variables, dtype=np.int64)
        self.sign = np.full(structure.num_variables, -1, dtype=np.int32)
        self.seen = np.zeros(structure.num_factors, dtype=bool)
        self.links = np.empty(int(np.diff(structure.first).max(initial=0)), dtype=np.int64)
        self.table = np.full(1, EMPTY, dtype=np.int32)
        self.known = np.zeros((0, 4), dtype=np.int64)

    def sign_variables(self, moved: Ints, by_kind: int) -> tuple[Ints, Ints, int]:
        """Variables in the slots of factors that have moved; a number for each, equal for those of
        one class with the same total weight in each new class of factors and orbit; a bound.

        by_kind: 1 if factors have moved because of their kinds, 0 if because of fresh variables.
        """
        s, colors, classes = self.structure, self.colors, self.classes
        room = refinement.total_size(moved, s.first)
        number = classes.number[moved] - np.int32(classes.num_before)
        num = often(number, classes.count - classes.num_before)
        leader = np.empty(len(num), dtype=np.int32)
        leader[number] = moved
        filled = np.empty(refinement.total_size(leader, s.first), dtype=np.int64)
        said = np.empty(room, dtype=np.int32)
        share = np.empty(room if len(s.weight) else 0, dtype=np.int64)
        heard, touched = np.empty((2, min(room, s.num_variables)), dtype=np.int32)
        count, bound = refinement.sign_variables(
            moved, number, leader, num, np.empty(len(num), dtype=np.int64), by_kind,
            classes.of_whole, self.fresh, s.slots, s.first, s.orbit, s.weight, classes.number,
            colors.number, colors.size, self.amount, self.sign, filled, said, share, heard,
            touched, *self._chains(room),
        )  # fmt: skip
        touched = touched[:count]
        sign = self.sign[touched]
        self.sign[touched] = -1
        self._clear(bound)
        return touched, sign, bound

    def sign_factors(self, moved: Ints) -> tuple[Ints, Ints, int]:
        """Factors around variables that have moved; a number for each, equal for those of one class
        that have variables of the same new classes in their orbits; a bound."""
        s, classes = self.structure, self.classes
        start, factors = s.links
        room = refinement.total_size(moved, start)
        touched = np.empty(min(room, s.num_factors), dtype=np.int32)
        count = refinement.touched_factors(
            moved, start, factors, classes.number, classes.size, self.seen, touched
        )
        touched = touched[:count]
        sign = np.empty(count, dtype=np.int32)
        bound = refinement.sign_factors(
            touched, self.fresh, s.slots, s.first, s.orbit, self.colors.number, classes.number,
            self.links, sign, *self._chains(room),
        )  # fmt: skip
        self._clear(bound)
        return touched, sign, bound

    def _chains(self, most: int) -> tuple[Ints, NDArray[np.int64]]:
        """An empty table of so many chains by hash, and room for the chains."""
        if len(self.known) < most:
            self.table = np.full(2 << (most - 1).bit_length(), EMPTY, dtype=np.int32)
            self.known = np.empty((most, 4), dtype=np.int64)
        return self.table, self.known

    def _clear(self, count: int) -> None:
        """Empty the table, which has so many chains."""
        self.table[self.known[:count, 3]] = EMPTY
