"""What one step of a solver costs on a graph, in grid points."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.numerics.kernels.grouping import group_pairs
from hylift.numerics.quadrature import nodes_per_slot
from hylift.potentials import REAL

WORTHWHILE = 1.2
"""Speed-up of a step from which lifting is said to help. It is an assumption that less hardly pays
for finding the classes."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a graph is, and how many grid points a step visits per component."""

    num_variables: int
    num_factors: int
    num_grid_points: int
    """A grid of states and of nodes for each variable, and for each distinct scope of several."""
    num_joint_points: int
    """Those of them that are of factors with several variables."""

    @classmethod
    def of(cls, graph: FactorGraph) -> Size:
        joint = joint_points(graph)
        return cls(graph.num_variables, graph.num_factors, single_points(graph) + joint, joint)


def single_points(graph: FactorGraph) -> int:
    """Points of the terms of single variables."""
    per_domain = [float(d.num_states or nodes_per_slot(1)) for d in graph.variables.domains]
    sizes = np.bincount(graph.variables.domain_id, minlength=len(per_domain))
    return int(sizes @ np.array(per_domain)) if len(per_domain) else 0


def joint_points(graph: FactorGraph) -> int:
    """Points of the terms of several variables.

    Scopes of the same variables, in whatever order, are one term.
    """
    num_states = graph.variables.num_states
    scopes: defaultdict[tuple[int, int], list[NDArray[np.int32]]] = defaultdict(list)
    for group in graph.groups:
        if group.arity > 1:
            for points, factors in _by_points(group, num_states):
                scopes[group.arity, points].append(np.sort(group.scope[factors], axis=1))
    return sum(
        points * _num_distinct(np.concatenate(parts)) for (_, points), parts in scopes.items()
    )


def _by_points(
    group: FactorGroup, num_states: NDArray[np.int32]
) -> Iterator[tuple[int, NDArray[np.int64] | slice]]:
    """The factors of a group by the size of their grids; nearly always there is one size."""
    slot_states = group.potential.slot_states
    num_reals = slot_states.count(REAL)
    nodes = nodes_per_slot(num_reals) ** num_reals
    fixed = nodes * math.prod(states for states in slot_states if states > 0)
    varying = [slot for slot, states in enumerate(slot_states) if states < 0]
    if not varying:
        yield fixed, slice(None)
        return
    points = num_states[group.scope[:, varying]].prod(axis=1, dtype=np.float64)
    for size in np.unique(points).tolist():
        yield fixed * int(size), np.flatnonzero(points == size)


def _num_distinct(scope: NDArray[np.int32]) -> int:
    """The number of different rows."""
    number, count = np.zeros(len(scope), dtype=np.int32), min(len(scope), 1)
    for column in scope.T:
        number, count = group_pairs(number, column.astype(np.uint64))
    return count
