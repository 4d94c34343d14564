"""A fitted mixture of products, fitted on with a joint Gaussian for the reals of each component."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components.family import LEAST_WEIGHT
from hylift.components.gaussian import LEAK
from hylift.errors import IntractableError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.expectation.averaged import CERTAIN, climbed
from hylift.inference.prepared import View
from hylift.inference.settings import check_ground
from hylift.inference.variational.answer import has_bounds, mixture_of
from hylift.inference.variational.descent import descend
from hylift.inference.variational.fitted import Fit, Settings
from hylift.inference.variational.joint import JointGaussians
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers import chosen_parts
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures, mass_outside
from hylift.inference.variational.state import State
from hylift.rewrite.leaves import ConstantLeaves, Remaining, eliminate_leaves
from hylift.words import option, worded

ROUNDS = 3
"""Descents, each with means that are settled again before and after."""
MODE_SWEEPS = 20
"""Of coordinate ascent, towards a mode."""
SAME_MODE = 0.1
"""Largest difference of a probability between modes that count as one."""
COPY, NEGLIGIBLE = 5.0, 20.0
"""Nats by which a copy of the best mode counts for less than it, and by which others no longer
count."""


def check_taken(graph: FactorGraph) -> None:
    """Raise unless the reals of a ground graph are Gaussian given the states, but for bounds."""
    remedy = worded("leave ", option("joint"), " out")
    check_ground("a joint Gaussian needs a ground graph", graph, remedy)
    for group in graph.groups:
        if group.potential.quadratic() is None and group.potential.num_reals and len(group):
            raise UnsupportedError(
                "a joint Gaussian needs tables and conditional quadratics: it cannot take the "
                f"functions of {group.named()}",
                remedy,
            )


def check_inside(fit: Fit) -> None:
    """Raise if a joint Gaussian reaches far beyond the bounds of a real."""
    mixture = mixture_of(fit)
    beyond = mass_outside(mixture.layout, mixture.class_weights(), mixture.entries)
    if len(beyond) and beyond.max() > LEAK:
        name = fit.view.graph.variables.names[int(np.argmax(beyond))]
        raise UnsupportedError(
            f"'{name}' has bounds that matter, which a joint Gaussian cannot keep",
            worded("leave ", option("joint"), " out"),
        )


def without_simple_leaves(graph: FactorGraph) -> Remaining[ConstantLeaves]:
    """The graph without leaves that have no bounds, and depend on one other real at most: their
    variances need no covariances of others."""
    keep = has_bounds(graph)
    is_real = graph.is_hidden & (graph.variables.num_states == 0)
    for group in graph.groups:
        keep[group.scope[is_real[group.scope].sum(axis=1) > 2].ravel()] = True
    return eliminate_leaves(graph, keep)


def jointly(fit: Fit, settings: Settings, control: Control) -> Fit:
    """The fit with joint Gaussians: from its states and means, and from several modes, the better
    in each part of the graph. Modes begin at the best single product, too, and so the bound is
    never below that of mean field."""
    view = View.whole(fit.view.prepared)
    nowhere = np.zeros(view.graph.num_variables, dtype=bool)
    problem = FitProblem.of(view.graph, nowhere, scopes=False)
    joint = JointGaussians.of(problem)
    hard = np.inf if fit.is_feasible else problem.hard_penalty
    objective = Objective(problem, "tracey", "final", hard, settings.tolerance, joint)
    control.enter_level(view.graph.num_variables, control.level + 1)
    q = _on_ground(fit, problem)
    single = q if fit.single is None else _on_ground(fit.single, problem)
    best, converged = _improved(objective, q, settings, control)
    modes = _modes(joint, single, settings, control)
    found, is_done = _improved(objective, modes, settings, control)
    copies = np.repeat(modes.entries[:, :, :1], settings.components, axis=2)
    alone = State.of(objective, Mixtures.even(copies, problem.num_parts), 0.1)
    for other in (found, alone):
        is_better = other.at.by_part < best.at.by_part
        q, at = chosen_parts(problem, is_better, (other.q, other.at), (best.q, best.at))
        best = replace(best, q=q, at=at)
    value, q = float(best.at.value[0]), joint.settled(best.q, variances=True)
    # Both are bounds, whichever mixture is reported.
    value = min(value, fit.value) if fit.is_feasible else value
    done = converged and is_done
    fitted = Fit(view, problem, q, value, 0.0, done, fit.is_feasible, False, joint=joint)
    check_inside(fitted)
    return fitted


def _modes(
    joint: JointGaussians, single: Mixtures, settings: Settings, control: Control
) -> Mixtures:
    """The best states that coordinate ascent finds in each part, from those of a single product,
    from even and from random ones, as components; where there are fewer, the best again."""
    sites, rng = joint.sites, np.random.default_rng(0)
    first = np.unique(sites.points.first[:-1][np.diff(sites.points.first) > 0])
    size = np.diff(np.append(first, sites.points.first[-1]))
    even = np.repeat(1.0 / size, size)
    found = [climbed(sites, np.ascontiguousarray(single.entries[0, joint.states, 0]), MODE_SWEEPS)]
    for number in range(settings.restarts):
        if not control.should_continue():
            break
        start = even.copy()
        if number:
            start *= 1.0 - CERTAIN
            start[first + (rng.random(len(first)) * size).astype(np.int64)] += CERTAIN
        found.append(climbed(sites, start, MODE_SWEEPS))
    part = sites.part_of_variable[sites.points.variable]
    bound, probs = np.stack([one.bound for one in found]), np.stack([one.probs for one in found])
    rank, count = _distinct(bound, probs, part, settings.components)
    entries = np.repeat(single.entries[:, :, :1], settings.components, axis=2)
    entries[0, joint.states] = probs[rank[:, part], np.arange(len(part))].T
    height = np.take_along_axis(bound, rank, axis=0).T
    is_copy = np.arange(settings.components) >= count[:, None]
    weights = special.softmax(np.where(is_copy, height - COPY, height), axis=1)
    weights = np.maximum(weights, LEAST_WEIGHT)
    q = Mixtures((weights / weights.sum(axis=1, keepdims=True))[None], entries)
    return joint.settled(q)


def _distinct(
    bound: FloatArray, probs: FloatArray, part: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(component, part): the starts with the highest bounds of each part among those whose states
    differ, the first again where there are fewer; and (part,) how many there are.

    bound: (start, part); probs: (start, point); part: (point,)
    """
    order = np.argsort(-bound, axis=0, kind="stable")
    num_starts, num_parts = bound.shape
    is_new = np.ones((num_starts, num_parts), dtype=bool)
    every = np.arange(len(part))
    for late in range(1, num_starts):
        for early in range(late):
            off = np.abs(probs[order[late][part], every] - probs[order[early][part], every])
            differs = np.zeros(num_parts)
            np.maximum.at(differs, part, off)
            is_new[late] &= (differs > SAME_MODE) | ~is_new[early]
    is_new &= np.take_along_axis(bound, order, axis=0) > bound.max(axis=0) - NEGLIGIBLE
    is_new[0] = True
    kept = np.argsort(~is_new, axis=0, kind="stable")
    number = np.minimum(is_new.sum(axis=0), count)
    place = np.where(np.arange(count)[:, None] < number, kept[np.arange(count) % num_starts], 0)
    return np.take_along_axis(order, place, axis=0), number


def _on_ground(fit: Fit, problem: FitProblem) -> Mixtures:
    """The mixture of a fit, over the variables of the ground graph."""
    found = mixture_of(fit)
    entries = found.entries[found.layout.entries_of(found.variable_to_class)]
    weights = np.ones((problem.num_parts, found.num_components)) / found.num_components
    weights[problem.part] = found.weights_of()
    return Mixtures(weights[None], np.ascontiguousarray(entries[None]))


def _improved(
    objective: Objective, q: Mixtures, settings: Settings, control: Control
) -> tuple[State, bool]:
    """The state after descents, and whether the last of them converged."""
    optimiser, converged = settings.optimiser, False
    state = _settled(objective, optimiser.begin(objective, q))
    if not np.isfinite(state.at.value).all():
        raise IntractableError("the reals have no proper Gaussian distribution beside these states")
    for _ in range(ROUNDS):
        before = state.at.value[0]
        state, converged = descend(
            objective, optimiser, replace(state, step=0, memory=None), control,
            until="converged", most_steps=settings.max_steps, what="joint Gaussians",
        )  # fmt: skip
        state = _settled(objective, state)
        small = settings.tolerance * objective.problem.part_size.sum()
        if before - state.at.value[0] <= small or not control.should_continue():
            break
    return state, converged


def _settled(objective: Objective, state: State) -> State:
    """The state with the best means of components by themselves, where these are better."""
    assert objective.joint is not None
    q = objective.joint.settled(state.q)
    at = objective.evaluate(q)
    better: NDArray[np.bool_] = at.by_part < state.at.by_part
    q, at = chosen_parts(objective.problem, better, (q, at), (state.q, state.at))
    return replace(state, q=q, at=at, calm=np.zeros_like(state.calm))
