"""Color passing: the coarsest partition in which look-alikes stay together."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hylift.lifting.coloring.kernels.grouping import group_pairs
from hylift.lifting.coloring.kernels.incidence import factors_of
from hylift.lifting.coloring.kernels.passes import collect, moved
from hylift.lifting.coloring.kernels.verify import split_unlike
from hylift.lifting.coloring.kernels.worklist import refine_locally
from hylift.lifting.coloring.partition import ALL_BITS, Partition, partition
from hylift.lifting.coloring.structure import Links, Structure

Colors = NDArray[np.int32]

FEW = 0.25
"""Share of the variables, or of the factors, up to which it pays to look only at what changed."""


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

    kind: (factor,), none in two groups; by default that of exact parameters. start: the coloring
    of coarser kinds, to go on from. links: gives those of the structure, made at most once where
    several colorings share it. mask: bits of the hashes to use; fewer cost time, never the result.
    """
    kind = structure.kind if kind is None else kind
    links = links or functools.cache(structure.links)
    color, count, dirty = structure.color, structure.num_colors, None
    if start is not None:
        color, count = start.variable, start.num_variable_classes
        dirty = _with_new_kind(start.factor, kind)
    seed = 0
    while True:
        color, count = _refined(structure, kind, color, count, dirty, links, seed, mask)
        found = partition(structure, color, count, kind, mask)
        if count == structure.num_variables:
            return found
        color, total = _split(structure, found)
        if total == count:
            return found
        # A collision of hashes had merged what differs: go on from here, with other hashes.
        count, dirty, seed = total, None, seed + 1


def _refined(
    structure: Structure,
    kind: NDArray[np.int32],
    color: Colors,
    count: int,
    dirty: NDArray[np.int32] | None,
    links: Callable[[], Links],
    seed: int,
    mask: int,
) -> tuple[Colors, int]:
    """Colors that one more round would not change, but for collisions of hashes.

    dirty: the factors that may tell variables of one color apart; None: all.
    """
    s = structure
    walk = (s.slots, s.first, s.orbit, kind, s.weight)
    hashes = (np.uint64(seed), np.uint64(mask))
    most = int(FEW * s.num_factors)
    while True:
        if dirty is None:
            new, new_count = group_pairs(color, collect(*walk, color, *hashes))
            stable = new_count in (count, s.num_variables)
            flag, num_moved = moved(color, new, new_count)
            color, count = new, new_count
            if stable:
                return color, count
            if num_moved > FEW * s.num_variables:
                continue
            dirty = factors_of(flag, color, *links(), s.num_factors)
            if len(dirty) > most:
                dirty = None
                continue
        color = color.copy()
        count, stable = refine_locally(*walk, *links(), color, count, dirty, *hashes, most)
        if stable:
            return group_pairs(color, np.zeros(len(color), dtype=np.uint64))
        dirty = None


def _split(structure: Structure, found: Partition) -> tuple[Colors, int]:
    """The classes, with those taken apart whose members differ, and how many there are then."""
    s = structure
    color = found.variable.copy()
    num_orbits = int(s.orbit.max(initial=0)) + 1
    fits = found.num_factor_classes * num_orbits < np.iinfo(np.int32).max
    code = np.empty(len(s.slots), dtype=np.int32 if fits else np.int64)
    count = split_unlike(
        s.slots, s.first, s.orbit, s.weight, color, found.num_variable_classes, found.factor, code,
        num_orbits,
    )  # fmt: skip
    return color, count


def _with_new_kind(factor: NDArray[np.int32], kind: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Factors whose kind sets them apart from the largest part of their class; None: too many."""
    part, count = group_pairs(factor, kind.astype(np.uint64))
    flag, total = moved(factor, part, count)
    if total > FEW * len(kind):
        return None
    return np.flatnonzero(flag[part]).astype(np.int32)
