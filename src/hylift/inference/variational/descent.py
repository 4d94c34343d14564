"""The one loop that takes an optimiser down an objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hylift.archive import Arrays
from hylift.errors import DivergentModelError
from hylift.inference.control import Control
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers import Optimiser, State
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.posterior import Result
from hylift.proper.improper import LIST_ALL, ImproperDirection
from hylift.words import worded

CALM = 5
"""Accepted steps in a row that change next to nothing, after which a start has converged."""
ROUGH = 1e-4
"""Relative fall of the objective in three steps, below which more rough steps are not worth it."""
BLOWN = 1e-2
"""Share of the largest variance allowed, which no proper model comes to."""
CHECK_EVERY = 10

Until = Literal["converged", "rough"]


@dataclass(slots=True, eq=False)
class _Descent:
    """The steps of an optimiser from one state."""

    objective: Objective
    optimiser: Optimiser
    state: State
    until: Until
    most_steps: int
    what: str
    values: list[float]
    """The objective of the best start, before the first step and after each."""

    def step(self) -> StepInfo:
        self.state = self.optimiser.step(self.objective, self.state)
        value = float(self.state.at.value.min())
        self.values.append(value)
        count = len(self.values) - 1
        result: Result | None = None
        if not np.isfinite(value):
            result = "diverged"
        elif self.until == "converged" and bool((self.state.calm >= CALM).all()):
            result = "converged"
        elif count >= self.most_steps or self._is_rough():
            result = "max_steps"
        if count % CHECK_EVERY == 0 and result != "diverged":
            check_held(self.objective.problem, self.state.q)
        return StepInfo(value, self.what, count / self.most_steps, result)

    def _is_rough(self) -> bool:
        if self.until != "rough" or len(self.values) < 4:
            return False
        return self.values[-4] - self.values[-1] < ROUGH * max(1.0, abs(self.values[-1]))

    def arrays(self) -> Arrays:
        return self.state.arrays() | {"values": np.array(self.values)}

    def restore(self, arrays: Arrays) -> None:
        self.state, self.values = State.restored(arrays), arrays["values"].tolist()


def descend(
    objective: Objective,
    optimiser: Optimiser,
    state: State,
    control: Control,
    *,
    until: Until,
    most_steps: int,
    what: str,
) -> tuple[State, bool]:
    """The state after at most so many steps, and whether all of its starts have converged.

    until: 'rough' stops where going on is not worth it.
    """
    if not control.should_continue():
        return state, False
    values = [float(state.at.value.min())]
    descent = _Descent(objective, optimiser, state, until, most_steps, what, values)
    result = run_steps(descent, control)
    if result not in ("converged", "diverged"):
        check_held(objective.problem, descent.state.q)
    return descent.state, result == "converged"


def again(objective: Objective, state: State) -> State:
    """The state at another objective, such as one of another accuracy."""
    return replace(
        state,
        at=objective.evaluate(state.q),
        step=0,
        rho=np.full(len(state.rho), 0.2),
        calm=np.zeros_like(state.calm),
        memory=None,
    )


def check_held(problem: FitProblem, q: Mixtures) -> None:
    """Raise if the variance of a real diverges, because the density is improper in it."""
    layout = problem.layout
    reals = np.flatnonzero(~layout.is_discrete & ~np.isfinite(layout.upper - layout.lower))
    if not len(reals):
        return
    at = layout.first[reals] + 1
    growth = q.entries[:, at] / problem.limits.most[reals][:, None]
    if growth.max() < BLOWN:
        return
    start, place, k = np.unravel_index(np.argmax(growth), growth.shape)
    raise runaway(problem, int(reals[place]), q.entries[start, :, k])


def runaway(problem: FitProblem, variable: int, entries: np.ndarray) -> DivergentModelError:
    """The error for a real that diverges, with the most probable states of its neighbours."""
    terms, layout, variables = problem.terms, problem.layout, problem.graph.variables
    term_of = np.repeat(np.arange(len(terms.base)), np.diff(terms.slot_ptr))
    touching = np.isin(term_of, term_of[terms.slots == variable])
    around = np.unique(terms.slots[touching])
    around = around[layout.is_discrete[around]][:4]
    states = {}
    for neighbour in around.tolist():
        probs = entries[layout.first[neighbour] : layout.first[neighbour + 1]]
        states[neighbour] = int(np.argmax(probs))
    found = ImproperDirection.of(variables, {variable: 1.0}, states, context="inference diverges: ")
    return found.error(remedy=worded(found.remedy, LIST_ALL))
