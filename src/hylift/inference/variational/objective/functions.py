"""Expected energies of the user's own functions, by quadrature, and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.potentials.base import along_axis, expectation_given

MAX_POINTS = 1 << 17
"""Log-potentials that are evaluated at once: more of them leave the cache."""

IMPOSSIBLE = 1e200
"""Stands for an infinite energy, which must not be multiplied by a weight of zero."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotNodes:
    """One component's beliefs about the variables in one slot, as weighted points with scores."""

    points: NDArray[Any]  # (factor, point): nodes, or states
    weights: FloatArray  # (factor, point)
    scores: FloatArray | None  # (factor, point, 2): of a real, with respect to its parameters

    def gradient(self, given: FloatArray) -> FloatArray:
        """(factor, entry): of the expectation of f, given E[f | point] (factor, point)."""
        if self.scores is None:
            return given
        return np.einsum("ft,ft,fte->fe", given, self.weights, self.scores)


def add_functions(
    problem: Problem, q: Mixtures, num_nodes: list[int], hard: float,
    gradient: FloatArray, value: FloatArray,
) -> None:  # fmt: skip
    """Adds the energies of all functions to value (start, component) and gradient.

    num_nodes: per group of functions, for each of its real slots.
    """
    for group, nodes in zip(problem.functions, num_nodes, strict=True):
        sizes = _sizes(problem, group, nodes)
        step = max(1, int(MAX_POINTS // np.prod(sizes)))
        for start in range(q.num_starts):
            for k in range(q.num_components):
                for begin in range(0, len(group), step):
                    some = group.take(np.arange(begin, min(begin + step, len(group))))
                    _add(problem, some, q, start, k, sizes, hard, gradient, value)


def _sizes(problem: Problem, group: FactorGroup, num_nodes: int) -> list[int]:
    """Points of each slot: the most that a variable in it needs."""
    num_states = problem.graph.variables.num_states[group.scope]
    return [int(most) or num_nodes for most in num_states.max(axis=0, initial=0)]


def _add(
    problem: Problem, group: FactorGroup, q: Mixtures, start: int, k: int, sizes: list[int],
    hard: float, gradient: FloatArray, value: FloatArray,
) -> None:  # fmt: skip
    entries = q.entries[start, :, k]
    slots = [
        slot_nodes(problem, entries, column, size)
        for column, size in zip(group.scope.T, sizes, strict=True)
    ]
    grid = [
        slot.points.reshape(along_axis(axis, group.arity, len(group)))
        for axis, slot in enumerate(slots)
    ]
    found = group.potential.log_value(group.row.reshape((-1,) + (1,) * group.arity), grid)
    energies = -np.broadcast_to(found, (len(group), *sizes))
    energies = np.where(energies == np.inf, min(hard, IMPOSSIBLE), energies)
    weights = [slot.weights for slot in slots]
    scale = group.multiplicity * q.weights[start, k]
    first = problem.layout.first
    for place, slot in enumerate(slots):
        given = expectation_given(energies, weights, place)
        if place == 0:
            total = float((group.multiplicity * (slot.weights * given).sum(axis=1)).sum())
            value[start, k] += np.inf if total > np.sqrt(IMPOSSIBLE) else total
        of_slot = scale[:, None] * slot.gradient(given)
        width = np.diff(first)[group.scope[:, place]]
        for entry in range(of_slot.shape[1]):
            has = entry < width
            at = first[group.scope[has, place]] + entry
            np.add.at(gradient[start, :, k], at, of_slot[has, entry])


def slot_nodes(
    problem: Problem, entries: FloatArray, variable: NDArray[np.int32], size: int
) -> SlotNodes:
    """Nodes or states of these variables under one component, whose parameters are `entries`."""
    layout = problem.layout
    points, weights = np.zeros((2, len(variable), size))
    scores = None if layout.is_discrete[variable].any() else np.empty((len(variable), size, 2))
    for at, batch in layout.batches(entries[:, None], variable):
        found = batch.nodes(size)
        # Where variables of several sizes share a slot, states beyond the last have no weight.
        width = found.points.shape[-1]
        points[at, :width], weights[at, :width] = found.points[:, 0], found.weights[:, 0]
        points[at, width:] = width - 1
        if scores is not None and found.scores is not None:
            scores[at] = found.scores[:, 0]
    if scores is None:
        return SlotNodes(points.astype(np.int64), weights, None)
    # A Gaussian may reach beyond the bounds, where a function need not be defined.
    bounds = layout.lower[variable][:, None], layout.upper[variable][:, None]
    return SlotNodes(np.clip(points, *bounds), weights, scores)
