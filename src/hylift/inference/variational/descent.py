"""The one loop that takes an optimiser down an objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from hylift.archive import Arrays
from hylift.errors import DivergentModelError
from hylift.inference.control import Control
from hylift.inference.variational.kept import arrays_of, state_of
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers import Optimiser, State
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.proper.improper import LIST_ALL, ImproperDirection
from hylift.words import worded

CALM = 5
"""Accepted steps in a row that change next to nothing, after which a start has converged."""
ROUGH = 1e-4
"""Relative fall of the objective in three steps, below which it is not worth to go on roughly."""
BLOWN = 1e-2
"""Share of the largest variance there may be, that no proper model comes to."""
CHECK_EVERY = 10

Until = Literal["converged", "rough", "the end"]


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

    until: 'rough' stops where going on is not worth it, 'the end' only after all steps.
    """
    if not control.look():
        return state, False
    loop = control.loop()
    values, converged = [float(state.at.value.min())], False
    if (earlier := loop.earlier) is not None:
        state, values = state_of(earlier.arrays), earlier.arrays["values"].tolist()
        if earlier.is_done:
            return state, bool(earlier.arrays["converged"])

    def arrays() -> Arrays:
        own = {"values": np.array(values), "converged": np.array(converged)}
        return arrays_of(state) | own

    while len(values) <= most_steps:
        count = len(values)
        state = optimiser.step(objective, state)
        values.append(float(state.at.value.min()))
        go_on = control.record(values[-1], what, count / most_steps)
        if not np.isfinite(values[-1]):
            control.ended = "diverged"
            return state, False
        if count % CHECK_EVERY == 0 or not go_on or count == most_steps:
            check_held(objective.problem, state.q)
        converged = until == "converged" and bool((state.calm >= CALM).all())
        fall = values[-4] - values[-1] if len(values) > 3 else np.inf
        if converged or (until == "rough" and fall < ROUGH * max(1.0, abs(values[-1]))):
            break
        if not go_on:
            loop.leave(arrays)
            return state, False
        loop.keep(arrays)
    loop.finish(arrays)
    return state, converged


def again(objective: Objective, state: State) -> State:
    """The state at another objective, such as one of another accuracy."""
    return replace(
        state,
        at=objective.evaluate(state.q),
        step=0,
        rho=np.full(state.q.num_starts, 0.2),
        calm=np.zeros_like(state.calm),
        memory=None,
    )


def check_held(problem: Problem, q: Mixtures) -> None:
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


def runaway(problem: Problem, variable: int, entries: np.ndarray) -> DivergentModelError:
    """The error for a real that diverges, with the most probable states of its neighbours."""
    terms, layout, variables = problem.terms, problem.layout, problem.graph.variables
    term_of = np.repeat(np.arange(len(terms)), np.diff(terms.slot_ptr))
    touching = np.isin(term_of, term_of[terms.slots == variable])
    around = np.unique(terms.slots[touching])
    around = around[layout.is_discrete[around]][:4]
    states = {}
    for neighbour in around.tolist():
        probs = entries[layout.first[neighbour] : layout.first[neighbour + 1]]
        states[neighbour] = int(np.argmax(probs))
    found = ImproperDirection.of(variables, {variable: 1.0}, states, context="inference diverges: ")
    return found.error(remedy=worded(found.remedy, LIST_ALL))
