"""Color passing: the coarsest partition into classes of look-alike variables and factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.lifting.kernels.coloring import (
    collect,
    group_factors,
    hash_factors,
    moved,
    num_slots,
    split_unlike,
)
from hylift.lifting.kernels.refinement import (
    divide,
    sign_factors,
    sign_variables,
    touched_factors,
)
from hylift.lifting.structure import Structure
from hylift.numerics.kernels.grouping import first_members, group_pairs, occurrences, renumbered

Ints = NDArray[np.int32]

ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF

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
    walk = (structure.slots, structure.first, structure.orbit, kind, variable)
    signs = hash_factors(*walk) if signs is None else signs
    factor, first_factor = group_factors(*walk, signs, count)
    return Partition(variable, factor, first_members(variable, count), first_factor, kind)


def _colored(
    structure: Structure, kind: Ints, color: Ints, count: int, seed: int, mask: int
) -> Partition:
    """A partition that one more round would not change, except for hash collisions."""
    s = structure
    walk = (s.slots, s.first, s.orbit, kind, s.weight)
    hashes = (np.uint64(seed), np.uint64(mask))
    while True:
        heard, signs = collect(*walk, color, *hashes)
        new, new_count = group_pairs(color, heard)
        if new_count == count:
            return _with_factors(s, new, count, kind, signs)
        if new_count == s.num_variables:
            return _with_factors(s, new, new_count, kind)
        flag, num_moved = moved(color, new, new_count)
        few = num_moved <= FEW * s.num_variables
        if few and num_slots(flag, new, s.slots) <= FEW * len(s.slots):
            before = _with_factors(s, color, count, kind, signs)
            changed = np.flatnonzero(flag[new]).astype(np.int32)
            return _after_colors(s, before, new, new_count, changed)
        color, count = new, new_count


def _split(structure: Structure, found: Partition) -> tuple[Ints, int]:
    """The classes, with those split whose members differ, and their number."""
    s = structure
    color, count = found.variable, found.num_variable_classes
    if count == s.num_variables:
        return color, count
    color = color.copy()
    leader = found.first_factor
    base = np.concatenate([[0], np.cumsum(s.first[leader + 1] - s.first[leader])])
    code = np.empty(len(s.slots), np.int32 if base[-1] <= np.iinfo(np.int32).max else np.int64)
    count = split_unlike(
        s.slots, s.first, s.orbit, s.weight, color, count, found.factor, base, code
    )
    return color, count


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
    walk, num_orbits = (s.slots, s.first, s.orbit), int(s.orbit.max(initial=0)) + 1
    at, seen = np.zeros(s.num_variables, dtype=np.int64), np.zeros(s.num_factors, dtype=bool)
    fresh = np.zeros(s.num_variables, dtype=bool)
    fresh[variables] = True
    by_kind = 1 if len(factors) else 0
    while len(factors) or len(variables):
        if len(factors):
            found = sign_variables(
                factors, by_kind, classes.of_whole, fresh, walk, s.weight, num_orbits,
                classes.number, colors.number, colors.size, at,
            )  # fmt: skip
            fresh[variables] = False
            variables, by_kind = colors.divide(*found), 0
            fresh[variables] = True
        touched = touched_factors(variables, *s.links, classes.number, classes.size, seen)
        signed = sign_factors(fresh, touched, walk, num_orbits, colors.number, classes.number)
        factors = classes.divide(touched, *signed)
        if not len(factors):
            break
    variable, first_variable = renumbered(colors.number, colors.count)
    factor, first_factor = renumbered(classes.number, classes.count)
    return Partition(variable, factor, first_variable, first_factor, kind)


class _Classes:
    """Numbers of classes that are being divided."""

    def __init__(self, number: Ints, count: int) -> None:
        self.number = number.copy()
        self.count = count
        self.size, *self.work = np.zeros((3, len(number)), dtype=np.int32)
        self.size[:count] = occurrences(number)
        self.of_whole = np.zeros(len(number), dtype=bool)

    def divide(self, some: NDArray[Any], part: NDArray[Any], num_parts: int) -> Ints:
        """Divides classes into parts; returns the members that got new numbers."""
        changed, self.count = divide(
            some, part, num_parts, self.number, self.size, self.of_whole, *self.work, self.count
        )
        return changed
