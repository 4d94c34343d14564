"""What an optimiser is: frozen settings, and steps from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.steps import largest_move
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem

STILL_MOVE = 1e-2
"""Largest move of a mean, in standard deviations, or of a probability, that counts as none."""


class Memory(Protocol):
    """What an optimiser remembers of its steps."""

    def spread(self, source: NDArray[np.int64], share: FloatArray) -> Memory:
        """The same over finer classes; source, share: (entry,), where each entry comes from, and
        its part in the slope."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where an optimiser stands with each of its starts."""

    q: Mixtures
    at: Evaluation
    """The objective at q."""
    step: int
    """Steps taken."""
    rho: FloatArray
    """(start,): length of the next step."""
    calm: NDArray[np.int64]
    """(start,): accepted steps in a row that changed next to nothing."""
    memory: Memory | None = None

    def take(self, starts: list[int]) -> State:
        """Some of the starts, without memory of steps."""
        return State(
            self.q.take(starts),
            self.at.take(starts),
            self.step,
            self.rho[starts],
            self.calm[starts],
        )

    @classmethod
    def of(cls, objective: Objective, q: Mixtures, rho: float) -> State:
        """The state in which all starts begin."""
        size = q.num_starts
        return cls(q, objective.evaluate(q), 0, np.full(size, rho), np.zeros(size, dtype=np.int64))


class Optimiser(Protocol):
    """Takes all starts of a state a step further."""

    @property
    def name(self) -> str: ...

    def begin(self, objective: Objective, q: Mixtures) -> State: ...

    def step(self, objective: Objective, state: State) -> State: ...


def moves(problem: Problem, q: Mixtures, new: Mixtures) -> FloatArray:
    """(start,): the largest change of a mean, in standard deviations, or of a probability."""
    found = np.empty(q.num_starts)
    largest_move(problem.layout.family, problem.layout.first, q.entries, new.entries, found)
    return found


def calmer(
    objective: Objective,
    state: State,
    accepted: NDArray[np.bool_],
    new: Mixtures,
    there: Evaluation,
) -> NDArray[np.int64]:
    """(start,): how many accepted steps in a row have changed next to nothing.

    Steps that were not accepted say nothing.
    """
    problem = objective.problem
    small = objective.tolerance * problem.num_ground + 1e-12 * np.abs(there.value)
    still = np.abs(there.value - state.at.value) <= small
    still &= moves(problem, state.q, new) < STILL_MOVE
    return np.where(accepted, np.where(still, state.calm + 1, 0), state.calm)
