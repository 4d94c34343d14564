"""Liftings that tell variables apart by ever wider surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.lifting.coloring import TOLERANCE, stable_coloring, tie
from hylift.lifting.kernels.coloring import collect
from hylift.lifting.lift import Lifting
from hylift.lifting.prepared import Prepared
from hylift.numerics.kernels.grouping import group_pairs
from hylift.progress import Progress, silent

MOST = 0.1
"""Classes per variable, above which the next lifting is the exact one."""


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """A lifting whose classes look alike as far as a number of factors away."""

    lifting: Lifting
    distance: int
    parent: NDArray[np.int32]
    """(class,): class of the lifting before that it is part of; empty for the first."""
    is_last: bool
    """Whether it is the exact lifting, in which they look alike at any distance."""


def by_distance(
    graph: FactorGraph, *, tolerance: float = TOLERANCE, progress: Progress = silent
) -> Iterator[Surroundings]:
    """Ever finer liftings: after one round of color passing, after two, …, and the exact one.

    Where no two variables look exactly alike, most may still have the same kinds of factors, and
    these the same kinds of neighbours. Objectives of variational inference on such a lifting are
    those of the graph where all members of a class are treated alike.
    """
    progress(0.0, "absorbing evidence")
    prepared = Prepared.of(graph, tolerance)
    s = prepared.structure
    walk = (s.slots, s.first, s.orbit, s.kind, s.weight)
    bits = (np.uint64(0), np.uint64(0xFFFF_FFFF_FFFF_FFFF))
    color, count, distance = s.color, s.num_colors, 0
    before: NDArray[np.int32] | None = None
    while True:
        progress(0.3, f"passing colors, round {distance + 1}")
        heard, _ = collect(*walk, color, *bits)
        new, new_count = group_pairs(color, heard)
        distance += 1
        if new_count == count or new_count > MOST * s.num_variables:
            break
        found = tie(s, new, s.kind)
        yield Surroundings(
            Lifting.of(prepared, found, is_exact=False),
            distance,
            _parents(before, found.first_variable),
            False,
        )
        color, count, before = new, new_count, found.variable
    exact = stable_coloring(s, links=prepared.links)
    progress(1.0, "lifted")
    yield Surroundings(
        Lifting.of(prepared, exact, is_exact=True),
        distance,
        _parents(before, exact.first_variable),
        True,
    )


def _parents(before: NDArray[np.int32] | None, first: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32) if before is None else before[first]
