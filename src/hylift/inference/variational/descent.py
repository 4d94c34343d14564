"""The one loop that takes an optimiser down an objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import DivergentModelError
from hylift.inference import held
from hylift.inference.control import Control
from hylift.inference.held import Held, checked
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers import MANY_PARTS, Optimiser
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.inference.variational.state import State
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
    settled: NDArray[np.bool_]
    """(start, part): was calm at some step."""
    offset: float
    """Of the objective, for parts that are settled already."""

    def step(self) -> StepInfo:
        self.state = self.optimiser.step(self.objective, self.state)
        value = float(self.state.at.by_part.sum(axis=1).min()) + self.offset
        self.values.append(value)
        count = len(self.values) - 1
        result: Result | None = None
        if not np.isfinite(value):
            result = "diverged"
        self.settled |= self.state.calm >= CALM
        if result is not None:
            pass
        elif self.until == "converged" and bool(self.settled.all()):
            result = "converged"
        elif count >= self.most_steps or self._is_rough() or self.leaves_few:
            result = "max_steps"
        if count % CHECK_EVERY == 0 and result != "diverged":
            check_held(self.objective.problem, self.state.q)
        return StepInfo(value, self.what, count / self.most_steps, result)

    @property
    def leaves_few(self) -> bool:
        """True if it is worth setting the few parts apart that are still moving."""
        if self.until != "converged" or len(self.settled) > 1:
            return False
        return self.settled.size >= MANY_PARTS and 0.5 <= self.settled.mean() < 1.0

    def _is_rough(self) -> bool:
        if self.until != "rough" or len(self.values) < 4:
            return False
        return self.values[-4] - self.values[-1] < ROUGH * max(1.0, abs(self.values[-1]))

    def arrays(self) -> held.State:
        values = Held(np.array(self.values), may_be_nan=True, free_axis=0)
        return {**self.state.arrays(), "values": values, "settled": self.settled}

    def restore(self, arrays: Arrays) -> None:
        self.state = self.state.restored(self.objective, arrays)
        own = checked(self.arrays(), arrays)
        self.values, self.settled = own["values"].tolist(), own["settled"]
        if not self.values:
            raise ValueError("'values' is empty")


def descend(
    objective: Objective,
    optimiser: Optimiser,
    state: State,
    control: Control,
    *,
    until: Until,
    most_steps: int,
    what: str,
    offset: float = 0.0,
) -> tuple[State, bool]:
    """The state after at most so many steps, and whether all of its starts have converged.

    until: 'rough' stops where going on is not worth it. offset: to add to recorded values.
    """
    if not control.should_continue():
        return state, False
    values = [float(state.at.value.min()) + offset]
    settled = np.zeros(state.calm.shape, dtype=bool)
    descent = _Descent(
        objective, optimiser, state, until, most_steps, what, values, settled, offset
    )
    result = run_steps(descent, control)
    left = most_steps - len(descent.values) + 1
    if result == "max_steps" and descent.leaves_few and left > 0:
        return _descend_in_few(descent, control, left)
    if result not in ("converged", "diverged"):
        check_held(objective.problem, descent.state.q)
    return descent.state, result == "converged"


def _descend_in_few(descent: _Descent, control: Control, most_steps: int) -> tuple[State, bool]:
    """The same with steps of the parts only that are still moving."""
    objective, state = descent.objective, descent.state
    problem, is_left = objective.problem, ~descent.settled[0]
    few = objective.restricted(is_left)
    entries = problem.layout.entries_of(np.flatnonzero(is_left[problem.part]))
    q = Mixtures(
        np.ascontiguousarray(state.q.weights[:, is_left]),
        np.ascontiguousarray(state.q.entries[:, entries]),
    )
    memory, parts = state.memory, np.flatnonzero(is_left)
    if memory is not None:
        rows = np.concatenate([parts, problem.num_parts + entries])
        memory = memory.spread(rows, np.ones(len(rows)), parts)
    at = few.evaluate(q)
    rho = np.ascontiguousarray(state.rho[:, is_left])
    calm = np.ascontiguousarray(state.calm[:, is_left])
    start = replace(state, q=q, at=at, rho=rho, calm=calm, memory=memory)
    offset = descent.values[-1] - float(at.value[0])
    found, converged = descend(
        few, descent.optimiser, start, control,
        until=descent.until, most_steps=most_steps, what=descent.what, offset=offset,
    )  # fmt: skip
    whole = Mixtures(state.q.weights.copy(), state.q.entries.copy())
    whole.weights[:, is_left], whole.entries[:, entries] = found.q.weights, found.q.entries
    at = objective.evaluate(whole)
    return replace(state, q=whole, at=at, step=found.step, memory=None), converged


def again(objective: Objective, state: State) -> State:
    """The state at another objective, such as one of another accuracy."""
    return replace(
        state,
        at=objective.evaluate(state.q),
        step=0,
        rho=np.full(state.rho.shape, 0.2),
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
    touching = np.isin(terms.term, terms.term[terms.slots == variable])
    around = np.unique(terms.slots[touching])
    around = around[layout.is_discrete[around]][:4]
    states = {}
    for neighbour in around.tolist():
        probs = entries[layout.first[neighbour] : layout.first[neighbour + 1]]
        states[neighbour] = int(np.argmax(probs))
    found = ImproperDirection.of(variables, {variable: 1.0}, states, context="inference diverges: ")
    return found.error(remedy=worded(found.remedy, LIST_ALL))
