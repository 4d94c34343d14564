"""What one step of a solver costs on a graph, in grid points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.potentials import REAL
from hylift.potentials.quadrature import nodes_per_slot

WORTHWHILE = 1.2
"""Speed-up of a step from which lifting is said to help. Finding the classes costs about as much as
a few steps, and a solver takes a few dozen: less than a sixth saved hardly pays for it."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a graph is, and how many grid points a step visits per component."""

    num_variables: int
    num_factors: int
    num_grid_points: int
    num_joint_points: int
    """Those of them that are of factors with several variables."""

    @classmethod
    def of(cls, graph: FactorGraph) -> Size:
        joint = joint_points(graph)
        return cls(graph.num_variables, graph.num_factors, single_points(graph) + joint, joint)


def grid_points(graph: FactorGraph) -> int:
    """Points at which a step evaluates the terms of the objective, for one component.

    There is a term for each variable, and one for each distinct scope of several: a grid of states
    and of nodes.
    """
    return single_points(graph) + joint_points(graph)


def single_points(graph: FactorGraph) -> int:
    """Points of the terms of single variables."""
    per_domain = [float(d.num_states or nodes_per_slot(1)) for d in graph.variables.domains]
    sizes = np.bincount(graph.variables.domain_id, minlength=len(per_domain))
    return int(sizes @ np.array(per_domain)) if len(per_domain) else 0


def joint_points(graph: FactorGraph) -> int:
    """Points of the terms of several variables.

    Scopes of the same variables, in whatever order, are one term. Scopes are told apart by 64-bit
    hashes, so that among ten million of them two are mistaken for each other with a probability of
    3e-6.
    """
    num_states = graph.variables.num_states
    total = 0
    hashes: defaultdict[tuple[int, float], list[NDArray[np.uint64]]] = defaultdict(list)
    for group in graph.groups:
        if group.arity > 1:
            for points, factors in _by_points(group, num_states):
                hashes[group.arity, points].append(_scope_hash(group.scope[factors]))
    for (_, points), parts in hashes.items():
        total += int(points) * _num_distinct(np.concatenate(parts))
    return total


def _by_points(
    group: FactorGroup, num_states: NDArray[np.int32]
) -> Iterator[tuple[float, NDArray[np.int64] | slice]]:
    """The factors of a group by the size of their grids; nearly always there is one size."""
    slot_states = group.potential.slot_states
    num_reals = slot_states.count(REAL)
    nodes = float(nodes_per_slot(num_reals)) ** num_reals
    fixed = nodes * float(np.prod([states for states in slot_states if states > 0]))
    varying = [slot for slot, states in enumerate(slot_states) if states < 0]
    if not varying:
        yield fixed, slice(None)
        return
    points = fixed * num_states[group.scope[:, varying]].prod(axis=1, dtype=np.float64)
    for size in np.unique(points).tolist():
        yield size, np.flatnonzero(points == size)


def _scope_hash(scope: NDArray[np.int32]) -> NDArray[np.uint64]:
    """(factor,): equal for scopes of the same variables, whatever their order."""
    code = np.zeros(len(scope), dtype=np.uint64)
    for column in np.sort(scope, axis=1).T:
        code ^= column.astype(np.uint64)
        # Multiplying by an odd number and folding high bits down (splitmix64) spreads each bit.
        code *= np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
        code *= np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(32)
    return code


def _num_distinct(values: NDArray[np.uint64]) -> int:
    if not len(values):
        return 0
    values.sort()
    return 1 + int(np.count_nonzero(values[1:] != values[:-1]))
