"""Quasi-Newton steps (L-BFGS) in unconstrained coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.variational.kernels.update import moved, quasi_newton, slopes
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.optimisers.base import (
    Memory,
    State,
    calmer,
)
from hylift.inference.variational.optimisers.natural import NaturalGradient
from hylift.inference.variational.problem import FloatArray, Mixtures

MEMORY = 10
SUFFICIENT = 1e-4
"""Share of the predicted fall that a step must bring (Armijo)."""
MOST_TRIES = 4
GIVE_UP = 2
"""How much calmer a state is after a step that failed in both ways."""
LONGEST = 3.0
"""Longest first step, in units of the Fisher information, without a memory of steps."""


@dataclass(frozen=True, slots=True)
class NaturalNewton:
    """Natural gradient steps at first, then quasi-Newton steps, which finish faster.

    The inverse Fisher information is the matrix that L-BFGS starts from. Where a quasi-Newton
    step fails, the next one is natural again.
    """

    natural_steps: int = 20

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
    memory = state.memory or _empty(slope)
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
    calm = calmer(problem, state, np.ones(1, dtype=bool), new, there)
    return State(
        new,
        there,
        state.step + 1,
        state.rho,
        calm,
        _remember(memory, length * direction[0], new_slope[0] - slope[0]),
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


def _empty(slope: FloatArray) -> Memory:
    shape = (MEMORY, *slope.shape[1:])
    return Memory(np.zeros(shape), np.zeros(shape), 0, -1)


def _natural_instead(objective: Objective, state: State) -> State:
    """A natural step in place of one that failed, without memory of those before.

    If that fails too, nothing but the errors of the quadrature is left.
    """
    new = NaturalGradient().step(objective, replace(state, memory=None))
    return replace(new, calm=new.calm + (new.q is state.q) * GIVE_UP)


def _remember(memory: Memory, step: FloatArray, change: FloatArray) -> Memory:
    """The memory with one more step, if the slope has risen along it."""
    curvature = float((step * change).sum())
    if not curvature > 1e-12 * np.sqrt(float((step**2).sum()) * float((change**2).sum())):
        return memory
    newest = (memory.newest + 1) % MEMORY
    steps, changes = memory.steps.copy(), memory.changes.copy()
    steps[newest], changes[newest] = step, change
    return Memory(steps, changes, min(memory.count + 1, MEMORY), newest)
