"""Color passing: the coarsest partition in which look-alikes stay together."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hylift.lifting.coloring.partition import Partition, partition
from hylift.lifting.coloring.structure import Links, Structure
from hylift.lifting.coloring.worklist import after_colors, after_kinds
from hylift.lifting.kernels.coloring import collect, moved, num_slots, split_unlike
from hylift.numerics.kernels.grouping import group_pairs

Colors = NDArray[np.int32]

ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF

FEW = 0.25
"""Share of the variables, and of all slots, up to which it pays to look only at what changed."""


def stable_coloring(
    structure: Structure,
    kind: NDArray[np.int32] | None = None,
    start: Partition | None = None,
    links: Callable[[], Links] | None = None,
    mask: int = ALL_BITS,
) -> Partition:
    """The coarsest equitable partition.

    Variables of a class have the same domain and multiplicity, and the same weight of slots in each
    class of factors; factors of a class have the same kind and the same classes in their slots.

    kind: (factor,), none in two groups; by default that of exact parameters. start: the stable
    coloring of coarser kinds, to go on from. links: gives those of the structure, made at most once
    where several colorings share it. mask: bits of the hashes to use; fewer cost time, never the
    result.
    """
    kind = structure.kind if kind is None else kind
    links = links or functools.cache(structure.links)
    if start is not None:
        return after_kinds(structure, links(), start, kind)
    color, count, seed = structure.color, structure.num_colors, 0
    while True:
        found = _colored(structure, kind, color, count, links, seed, mask)
        color, total = _split(structure, found)
        if total == found.num_variable_classes:
            return found
        # A collision of hashes had merged what differs: go on from here, with other hashes.
        count, seed = total, seed + 1


def _colored(
    structure: Structure,
    kind: NDArray[np.int32],
    color: Colors,
    count: int,
    links: Callable[[], Links],
    seed: int,
    mask: int,
) -> Partition:
    """A partition that one more round would not change, but for collisions of hashes."""
    s = structure
    walk = (s.slots, s.first, s.orbit, kind, s.weight)
    hashes = (np.uint64(seed), np.uint64(mask))
    while True:
        heard, signs = collect(*walk, color, *hashes)
        new, new_count = group_pairs(color, heard)
        if new_count == count:
            return partition(s, new, count, kind, signs)
        if new_count == s.num_variables:
            return partition(s, new, new_count, kind)
        flag, num_moved = moved(color, new, new_count)
        few = num_moved <= FEW * s.num_variables
        if few and num_slots(flag, new, s.slots) <= FEW * len(s.slots):
            before = partition(s, color, count, kind, signs)
            changed = np.flatnonzero(flag[new]).astype(np.int32)
            return after_colors(s, links(), before, new, new_count, changed)
        color, count = new, new_count


def _split(structure: Structure, found: Partition) -> tuple[Colors, int]:
    """The classes, with those taken apart whose members differ, and how many there are then."""
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
