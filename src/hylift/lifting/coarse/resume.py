"""Color passing resumed where it had stopped, after kinds of factors have become finer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.lifting.coarse.kernels.resuming import (
    by_class,
    divide,
    number_factors,
    renumbered,
    sign_variables,
)
from hylift.lifting.coloring import Partition, Structure
from hylift.lifting.coloring.kernels.grouping import group_pairs, occurrences
from hylift.lifting.coloring.structure import Links


def resumed(
    structure: Structure,
    links: Links,
    coloring: Partition,
    before: NDArray[np.int32],
    kind: NDArray[np.int32],
) -> Partition:
    """What `stable_coloring(structure, kind)` finds, from the coloring by the kinds `before`.

    The cost is that of the slots of factors and variables that leave the largest parts of their
    classes; and of comparing kinds, which is least where most factors keep theirs.
    """
    s = structure
    walk = (s.slots, s.first, s.orbit)
    colors = _Numbers(coloring.variable, coloring.num_variable_classes)
    groups = _Numbers(coloring.factor, coloring.num_factor_classes)
    signature, amount = (np.zeros(s.num_variables, dtype=t) for t in (np.int32, np.int64))
    seen = np.zeros(s.num_factors, dtype=bool)

    some = np.flatnonzero(kind != before).astype(np.int32)
    part, num_parts = group_pairs(groups.number[some], kind[some].astype(np.uint64))
    moved = groups.divide(some, part, num_parts)
    while len(moved):
        order, begin = by_class(moved, groups.number, groups.low, groups.count)
        num_edges = int((s.first[moved + 1] - s.first[moved]).sum())
        found = sign_variables(
            order, begin, *walk, s.weight, colors.number, colors.size, signature, amount, num_edges
        )
        moved = colors.divide(*found)
        found = number_factors(
            moved, *walk, *links, colors.number, groups.number, groups.size, seen
        )
        moved = groups.divide(*found)
    variable, first_variable = renumbered(colors.number, colors.count)
    factor, first_factor = renumbered(groups.number, groups.count)
    return Partition(variable, factor, first_variable, first_factor)


class _Numbers:
    """Numbers of classes that are being divided."""

    def __init__(self, number: NDArray[np.int32], count: int) -> None:
        self.number = number.copy()
        self.count = count
        self.low = count  # first of the numbers given last
        self.size, self.touched_of, self.largest_of = np.zeros((3, len(number)), dtype=np.int32)
        self.size[:count] = occurrences(number)

    def divide(self, some: NDArray[Any], part: NDArray[Any], num_parts: int) -> NDArray[np.int32]:
        """Those that have got new numbers."""
        self.low = self.count
        work = (self.size, self.touched_of, self.largest_of)
        moved, self.count = divide(some, part, num_parts, self.number, *work, self.count)
        return moved
