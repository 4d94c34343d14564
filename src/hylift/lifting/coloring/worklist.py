"""Color passing that looks only at what has changed, without trust in hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.lifting.coloring.partition import Partition
from hylift.lifting.coloring.structure import Links, Structure
from hylift.lifting.kernels.refinement import (
    divide,
    sign_factors,
    sign_variables,
    touched_factors,
)
from hylift.numerics.kernels.grouping import group_pairs, occurrences, renumbered


def after_kinds(
    structure: Structure, links: Links, start: Partition, kind: NDArray[np.int32]
) -> Partition:
    """The stable coloring of kinds that are finer than those of a stable coloring.

    The cost is that of the slots of factors and variables that leave the largest parts of their
    classes; and of comparing kinds, which is least where most factors keep theirs.
    """
    classes = _Classes(start.factor, start.num_factor_classes)
    some = np.flatnonzero(kind != start.kind).astype(np.int32)
    part, num_parts = group_pairs(classes.number[some], kind[some].astype(np.uint64))
    moved = classes.divide(some, part, num_parts)
    colors = _Classes(start.variable, start.num_variable_classes)
    return _refined(structure, links, kind, colors, classes, moved, moved[:0])


def after_colors(
    structure: Structure,
    links: Links,
    before: Partition,
    color: NDArray[np.int32],
    num_colors: int,
    moved: NDArray[np.int32],
) -> Partition:
    """The stable coloring, from colors that a round of color passing has made.

    before: the colors before that round, with the factors they tell apart. moved: variables outside
    the largest parts into which the round has divided their classes.
    """
    classes = _Classes(before.factor, before.num_factor_classes)
    colors = _Classes(color, num_colors)
    return _refined(structure, links, before.kind, colors, classes, moved[:0], moved)


def _refined(
    structure: Structure,
    links: Links,
    kind: NDArray[np.int32],
    colors: _Classes,
    classes: _Classes,
    factors: NDArray[np.int32],
    variables: NDArray[np.int32],
) -> Partition:
    """Classes in which nothing moves any more.

    factors: those that have moved for their kinds; variables: those that have moved. What members
    of a class have to do with what has not moved follows from what they have to do with the rest.
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
        touched = touched_factors(variables, *links, classes.number, classes.size, seen)
        signed = sign_factors(fresh, touched, walk, num_orbits, colors.number, classes.number)
        factors = classes.divide(touched, *signed)
        if not len(factors):
            break
    variable, first_variable = renumbered(colors.number, colors.count)
    factor, first_factor = renumbered(classes.number, classes.count)
    return Partition(variable, factor, first_variable, first_factor, kind)


class _Classes:
    """Numbers of classes that are being divided."""

    def __init__(self, number: NDArray[np.int32], count: int) -> None:
        self.number = number.copy()
        self.count = count
        self.size, *self.work = np.zeros((3, len(number)), dtype=np.int32)
        self.size[:count] = occurrences(number)
        self.of_whole = np.zeros(len(number), dtype=bool)

    def divide(self, some: NDArray[Any], part: NDArray[Any], num_parts: int) -> NDArray[np.int32]:
        """Those that have got new numbers."""
        moved, self.count = divide(
            some, part, num_parts, self.number, self.size, self.of_whole, *self.work, self.count
        )
        return moved
