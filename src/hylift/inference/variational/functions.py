"""Expected energies of factors that are no tables or quadratics, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGroup
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.numerics.quadrature import Accuracy, nodes_per_slot
from hylift.potentials.base import (
    ExpectedLogValue,
    expectation_given,
    expected_log_value,
    on_grid,
)
from hylift.potentials.counted import Counted
from hylift.words import Wording

MAX_GRID = 1 << 24
"""Most points of the grid of one factor."""

MAX_POINTS = 1 << 17
"""Log-potentials that are evaluated at once: more of them leave the cache."""

IMPOSSIBLE = 1e200
"""Stands for an infinite energy, which must not be multiplied by a weight of zero."""


def needs_quadrature(problem: FitProblem) -> bool:
    """True if the expectation of some function has no closed form."""
    layout = problem.layout
    entries = layout.neutral()[:, None]
    if any(layout.moments_or_probs(g.scope, entries) is None for g in problem.functions):
        return True
    first = [group.take(np.zeros(1, dtype=np.int64)) for group in problem.functions]
    return any(_closed_form(problem, group, entries, np.inf) is None for group in first)


def add_functions(
    problem: FitProblem, q: Mixtures, accuracy: Accuracy, hard: float,
    gradient: FloatArray, value: FloatArray,
) -> None:  # fmt: skip
    """Add the energies of all functions to value (start, part, component) and gradient."""
    # Each component of each start is a column.
    entries = np.moveaxis(q.entries, 1, 0).reshape(q.entries.shape[1], -1)
    slope, total = np.zeros_like(entries), np.zeros((problem.num_parts, entries.shape[1]))
    for group in problem.functions:
        for some, columns, sizes in _blocks(problem, group, entries.shape[1], accuracy):
            own = entries[:, columns]
            found = _closed_form(problem, some, own, hard)
            if found is None:
                found = _by_quadrature(problem, some, own, sizes, hard)
            by_factor = some.multiplicity[:, None] * found.value.reshape(len(some), -1)
            np.add.at(total[:, columns], problem.part[some.scope[:, 0]], by_factor)
            _scatter(problem, some, found, slope[:, columns])
    total = np.where(total > np.sqrt(IMPOSSIBLE), np.inf, total)
    shape = (q.num_starts, q.num_components)
    value += np.moveaxis(total.reshape(-1, *shape), 0, 1)
    weights = q.weights[:, problem.entry_part]
    gradient += weights * np.moveaxis(slope.reshape(-1, *shape), 0, 1)


def _blocks(
    problem: FitProblem, group: FactorGroup, num_columns: int, accuracy: Accuracy
) -> Iterator[tuple[FactorGroup, slice, list[int]]]:
    """Some factors, some columns, and the points of each slot."""
    num_nodes = nodes_per_slot(group.potential.num_reals, accuracy)
    num_states = problem.graph.variables.num_states[group.scope[0]]
    sizes = [states or num_nodes for states in num_states.tolist()]
    # A count has a closed form, which takes a number per slot and count.
    is_counted = isinstance(group.potential, Counted)
    points = len(sizes) ** 2 if is_counted else math.prod(sizes)
    width = min(num_columns, max(1, MAX_POINTS // points))
    step = max(1, MAX_POINTS // (points * width))
    some = pairwise([*range(0, len(group), step), len(group)])
    columns = pairwise([*range(0, num_columns, width), num_columns])
    for (begin, end), (low, high) in product(some, columns):
        yield group.take(np.arange(begin, end)), slice(low, high), sizes


def _scatter(
    problem: FitProblem, group: FactorGroup, found: ExpectedLogValue, slope: FloatArray
) -> None:
    """Add gradients with respect to slots to slope (entry, column)."""
    for variable, of_slot in zip(group.scope.T, found.gradients, strict=True):
        parts = group.multiplicity[:, None, None] * of_slot.reshape(len(group), slope.shape[1], -1)
        for entry in range(parts.shape[2]):
            np.add.at(slope, problem.layout.first[variable] + entry, parts[:, :, entry])


def _closed_form(
    problem: FitProblem, group: FactorGroup, entries: FloatArray, hard: float
) -> ExpectedLogValue | None:
    """Expected energies (factor and column,) by the potential itself; None if it has none, or if
    not all reals are Gaussian.

    entries: (entry, column)
    """
    slots = problem.layout.moments_or_probs(group.scope, entries)
    if slots is None:
        return None
    found = expected_log_value(group.potential, np.repeat(group.row, entries.shape[1]), slots)
    if found is None:
        return None
    impossible = found.value == -np.inf
    value = np.where(impossible, min(hard, IMPOSSIBLE), -found.value)
    return ExpectedLogValue(
        value, [np.where(impossible[:, None], 0.0, -part) for part in found.gradients]
    )


def _by_quadrature(
    problem: FitProblem, group: FactorGroup, entries: FloatArray, sizes: list[int], hard: float
) -> ExpectedLogValue:
    """Expected energies (factor and column,) on grids of nodes and states."""
    if math.prod(sizes) > MAX_GRID:
        raise UnsupportedError(
            f"a factor of {len(sizes)} variables is a grid of more than {MAX_GRID:,} points, as "
            "one with impossible states has no closed form",
            Wording("use Exact(), BP() or Gibbs()", "use --method exact, bp or gibbs"),
        )
    slots = [
        _SlotNodes.of(problem, entries, column, size)
        for column, size in zip(group.scope.T, sizes, strict=True)
    ]
    row = np.repeat(group.row, entries.shape[1])
    energies = -on_grid(group.potential, row, [slot.points for slot in slots])
    energies = np.where(energies == np.inf, min(hard, IMPOSSIBLE), energies)
    weights = [slot.weights for slot in slots]
    given = [expectation_given(energies, weights, place) for place in range(group.arity)]
    value = (slots[0].weights * given[0]).sum(axis=1)
    return ExpectedLogValue(
        value, [slot.gradient(part) for slot, part in zip(slots, given, strict=True)]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _SlotNodes:
    """Beliefs about the variables in one slot, as weighted points with scores."""

    points: NDArray[Any]  # (factor and column, point): nodes, or states
    weights: FloatArray  # (factor and column, point)
    scores: FloatArray | None  # (factor and column, point, 2): of reals, by their parameters

    @classmethod
    def of(
        cls, problem: FitProblem, entries: FloatArray, variable: NDArray[np.int32], size: int
    ) -> _SlotNodes:
        layout = problem.layout
        shape = (len(variable), entries.shape[1], size)
        points, weights = np.zeros((2, *shape))
        scores = None if layout.is_discrete[variable].any() else np.empty((*shape, 2))
        for at, batch in layout.batches(entries, variable):
            found = batch.nodes(size)
            points[at], weights[at] = found.points, found.weights
            if scores is not None and found.scores is not None:
                scores[at] = found.scores
        flat = (shape[0] * shape[1], size)
        if scores is None:
            return cls(points.reshape(flat).astype(np.int64), weights.reshape(flat), None)
        # A Gaussian may reach beyond the bounds, where a function need not be defined.
        bounds = layout.lower[variable][:, None, None], layout.upper[variable][:, None, None]
        points = np.clip(points, *bounds)
        return cls(points.reshape(flat), weights.reshape(flat), scores.reshape(*flat, 2))

    def gradient(self, given: FloatArray) -> FloatArray:
        """(factor and column, entry): of the expectation of f, given E[f | point]."""
        if self.scores is None:
            return given
        return np.einsum("ft,ft,fte->fe", given, self.weights, self.scores)
