"""Quasi-Newton steps (L-BFGS) in unconstrained coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.steps import moved, slopes, step_taken
from hylift.errors import UnsupportedError
from hylift.inference.variational.kernels.quasi_newton import quasi_newton
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.optimisers.base import (
    State,
    calmer,
)
from hylift.inference.variational.optimisers.natural import SHORTEST, NaturalGradient
from hylift.inference.variational.problem import FloatArray, Mixtures

MEMORY = 10
SUFFICIENT = 1e-4
"""Share of the predicted fall that a step must bring (Armijo)."""
MOST_TRIES = 4
GIVE_UP = 2
"""How much calmer a state is after a step that failed in both ways."""
LONGEST = 3.0
"""Longest first step, in units of the Fisher information, without a memory of steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """The last steps of one start in unconstrained coordinates, and what they did to the slope."""

    steps: FloatArray  # (place, weight or entry, component)
    changes: FloatArray  # (place, weight or entry, component)
    count: int
    newest: int

    @classmethod
    def none(cls, slope: FloatArray) -> Curvature:
        shape = (MEMORY, *slope.shape[1:])
        return cls(np.zeros(shape), np.zeros(shape), 0, -1)

    def spread(self, source: NDArray[np.int64], share: FloatArray) -> Curvature:
        rows = np.concatenate([[0], 1 + source])
        parts = np.concatenate([[1.0], share])[:, None]
        # In the order in which kernels expect them: another one would be compiled for anew.
        steps = np.ascontiguousarray(self.steps[:, rows])
        changes = np.ascontiguousarray(self.changes[:, rows] * parts)
        return Curvature(steps, changes, self.count, self.newest)

    def remember(self, step: FloatArray, change: FloatArray) -> Curvature:
        """The memory with one more step, if the slope has risen along it."""
        along = float((step * change).sum())
        if not along > 1e-12 * np.sqrt(float((step**2).sum()) * float((change**2).sum())):
            return self
        newest = (self.newest + 1) % MEMORY
        steps, changes = self.steps.copy(), self.changes.copy()
        steps[newest], changes[newest] = step, change
        return Curvature(steps, changes, min(self.count + 1, MEMORY), newest)


@dataclass(frozen=True, slots=True)
class NaturalNewton:
    """Natural gradient steps at first, then quasi-Newton steps, which finish faster.

    The inverse Fisher information is the matrix that L-BFGS starts from. Where a quasi-Newton
    step fails, the next one is natural again.
    """

    natural_steps: int = 20

    def __post_init__(self) -> None:
        if not isinstance(self.natural_steps, int) or self.natural_steps < 0:
            raise UnsupportedError(
                f"natural_steps must be a non-negative integer, not {self.natural_steps!r}"
            )

    @property
    def name(self) -> str:
        return "natural gradient, then L-BFGS"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        return NaturalGradient().begin(objective, q)

    def step(self, objective: Objective, state: State) -> State:
        if state.step < self.natural_steps or state.q.num_starts > 1:
            return NaturalGradient().step(objective, state)
        return _newton_step(objective, state)


def _newton_step(objective: Objective, state: State) -> State:
    problem, q, at = objective.problem, state.q, state.at
    layout, limits = problem.layout, problem.limits
    slope, inverse = tangent(objective, q, at)
    memory = state.memory if isinstance(state.memory, Curvature) else Curvature.none(slope)
    direction = np.empty_like(slope)
    size = slope.size
    quasi_newton(
        memory.steps.reshape(MEMORY, size), memory.changes.reshape(MEMORY, size), memory.count,
        memory.newest, slope.reshape(size), inverse.reshape(size), direction.reshape(size),
    )  # fmt: skip
    fall = float((slope * direction).sum())
    if not fall < 0:
        return _natural_instead(objective, state)
    length = 1.0
    if memory.count == 0:
        natural = np.sqrt(-fall)
        length = min(1.0, LONGEST / max(natural, 1e-300), float(state.rho[0]) * 2)
    new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
    for _ in range(MOST_TRIES):
        moved(
            layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
            q.weights, q.entries, direction, np.array([length]), new.weights, new.entries,
        )  # fmt: skip
        there = objective.evaluate(new)
        if there.value[0] <= at.value[0] + SUFFICIENT * length * fall:
            break
        length *= 0.4
    else:
        return _natural_instead(objective, state)
    new_slope, _ = tangent(objective, new, there)
    step = np.empty(slope.shape[1:])
    step_taken(layout.family, layout.first, q.weights, q.entries, new.weights, new.entries, step)
    calm = calmer(objective, state, np.ones(1, dtype=bool), new, there)
    return State(
        new,
        there,
        state.step + 1,
        state.rho,
        calm,
        memory.remember(step, new_slope[0] - slope[0]),
    )


def tangent(objective: Objective, q: Mixtures, at: Evaluation) -> tuple[FloatArray, FloatArray]:
    """Slope, and inverse Fisher information (start, weight or entry, component)."""
    problem = objective.problem
    slope = np.empty((q.num_starts, 1 + q.entries.shape[1], q.num_components))
    inverse = np.empty_like(slope)
    slopes(
        problem.layout.family, problem.layout.first, problem.multiplicity, q.weights, q.entries,
        at.of_weights, at.of_entries, slope, inverse,
    )  # fmt: skip
    return slope, inverse


def _natural_instead(objective: Objective, state: State) -> State:
    """A natural step in place of one that failed, without memory of those before.

    If even the shortest fail, nothing but the errors of the quadrature is left.
    """
    new = replace(state, memory=None)
    for _ in range(MOST_TRIES):
        new = NaturalGradient().step(objective, new)
        if new.q is not state.q:
            return replace(new, step=state.step + 1)
    calm = np.where(new.rho < SHORTEST, new.calm + GIVE_UP, new.calm)
    return replace(new, step=state.step + 1, calm=calm)
