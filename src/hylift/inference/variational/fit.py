"""A mixture fitted to a graph, from a coarse view of it to the finest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas
from hylift.components.gaussian import LEAK, mass_beyond
from hylift.inference.control import Control
from hylift.inference.prepared import View
from hylift.inference.variational.descent import again, descend
from hylift.inference.variational.fitted import MOST_POINTS, Fit, Objectives, Settings
from hylift.inference.variational.hard import with_certain_zeros
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers import NaturalGradient, NaturalNewton, chosen_parts
from hylift.inference.variational.problem import FitProblem, Mixtures, as_betas, choose_betas
from hylift.inference.variational.products import (
    FEW_SWEEPS,
    MOST_SWEEPS,
    gaussian_product,
    settled_means,
)
from hylift.inference.variational.starts import WarmStart, apart, displaced, random_starts
from hylift.inference.variational.state import State
from hylift.proper.gaussian import GaussianForm

SEARCH_STEPS = 20
HIDES = 2e-3
"""Relative difference between accuracies that shows a narrow component between the nodes."""
FEW_STEPS = 10
"""Steps after which single products are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class FitState:
    """A problem, and the progress of the search in it: a state per candidate, the best first."""

    problem: FitProblem
    hard: float
    candidates: tuple[State, ...]
    is_gaussian: bool
    """True if the best product is known in closed form, and with it the mean."""
    converged: bool = False
    value_and_error: tuple[float, float] | None = None
    """Free energy of the best, and its numerical error, where known."""

    @property
    def q(self) -> Mixtures:
        return self.candidates[0].q


class Fitter:
    """Fits one view after the other, each from what was found in the one before."""

    def __init__(
        self,
        settings: Settings,
        control: Control,
        rng: np.random.Generator,
        is_beta: NDArray[np.bool_] | None = None,
        known: Fit | None = None,
    ) -> None:
        """is_beta: (ground variable,), whether it has Betas, where that is known beforehand.
        known: the fit of a single product, where there is one."""
        self.settings, self.control, self.rng, self.is_beta = settings, control, rng, is_beta
        self._go_on = control.should_continue
        self.known = known
        self.state: FitState | None = None
        self.single: Mixtures | None = None
        """The best single product, where one was looked for."""
        self.objectives = Objectives(settings)

    def fit(self, views: Iterator[View], start: WarmStart | None = None) -> Fit:
        """The fit to the last view, or to the one in which time has run out."""
        for level, view in enumerate(views):
            self.control.enter_level(view.graph.num_variables, level)
            if self.state is not None:
                state = self._finer(view, self.state)
            elif start is not None:
                state = self._warm(view, start)
            else:
                state = self._first(view)
            self.state = self._improved(state, is_last=view.is_last)
            if not self.control.should_continue():
                break
        assert self.state is not None
        return self._finished(view, self.state)

    def _first(self, view: View) -> FitState:
        problem, product, form = self._prepared(view)
        hard, count = problem.hard_penalty, self.settings.components
        if form is not None and count == 1:
            return self._begun(problem, hard, product, is_gaussian=True)
        if form is not None and view.shift is not None:
            starts = displaced(product, form, count, self.settings.restarts)
            return self._ranked(problem, hard, starts, SEARCH_STEPS, is_gaussian=True)
        if self.settings.by_coordinates and problem.has_exact_updates:
            return self._by_coordinates(problem, hard, product)
        return self._searched(problem, hard, self._products(problem, hard, product))

    def _warm(self, view: View, start: WarmStart) -> FitState:
        problem, product, _ = self._prepared(view)
        if self.settings.reals == "auto":
            chosen = problem.layout.has(Betas)
            problem = problem.with_betas(start.betas(view, problem, chosen))
        q = start.mixtures(view, problem, product)
        hard = problem.hard_penalty
        if self.settings.by_coordinates and problem.has_exact_updates:
            return self._by_coordinates(problem, hard, q, alone=True)
        return self._begun(problem, hard, q, is_gaussian=False)

    def _prepared(self, view: View) -> tuple[FitProblem, Mixtures, GaussianForm | None]:
        """The problem of a view with the families of its reals, a good single product of Gaussians,
        and the form that has it as its best one, if there is such a form."""
        problem = self._problem(view)
        form = GaussianForm.solved(view.graph)
        if form is not None:
            layout = problem.layout
            leak = mass_beyond(layout.lower, layout.upper, form.means, np.sqrt(form.var))
            form = None if leak.max() > LEAK else form
        if form is not None:
            product = gaussian_product(problem, form)
        else:
            ascent, go_on = self.objectives.ascent(problem, problem.hard_penalty), self._go_on
            found = ascent.follow(problem.neutral(), most_sweeps=FEW_SWEEPS, go_on=go_on)
            product = found.q
            if not found.at_rest.all() and go_on():
                product = settled_means(ascent.objective, product, go_on)
        if self.is_beta is None:
            is_beta = choose_betas(problem, product, self.settings.reals)
        else:
            is_beta = np.zeros(len(problem.multiplicity), dtype=bool)
            is_beta[view.variable_to_class[self.is_beta]] = True
        problem = problem.scaled(product).with_betas(is_beta)
        return problem, product, None if is_beta.any() else form

    def _finer(self, view: View, coarse: FitState) -> FitState:
        """The same beliefs in a finer view, with what the optimiser remembers."""
        assert view.parent is not None
        self.single = None  # what was found in a coarser view
        problem = self._problem(view)
        problem = problem.with_betas(coarse.problem.layout.has(Betas)[view.parent])
        problem = replace(problem, limits=coarse.problem.limits.take(view.parent))
        source = coarse.problem.layout.entries_of(view.parent)
        state = coarse.candidates[0]
        entries = np.ascontiguousarray(state.q.entries[:, source])
        is_gaussian = coarse.is_gaussian
        if is_gaussian and self.settings.components == 1:
            form = GaussianForm.solved(view.graph)
            is_gaussian = form is not None
            if form is not None:
                entries = gaussian_product(problem, form).entries
        # A part has the weights of the one that its variables were in.
        parts = np.zeros(problem.num_parts, dtype=np.int64)
        parts[problem.part] = coarse.problem.part[view.parent]
        q = Mixtures(np.ascontiguousarray(state.q.weights[:, parts]), entries)
        hard = coarse.hard
        if self.settings.by_coordinates and problem.has_exact_updates and not is_gaussian:
            return self._by_coordinates(problem, hard, q, alone=True)
        memory = state.memory
        if memory is not None:
            # The part of the members of its parent class that a class has.
            share = problem.multiplicity / coarse.problem.multiplicity[view.parent]
            alike = 1.0 / np.bincount(parts)[parts]
            rows = np.concatenate([parts, coarse.problem.num_parts + source])
            shares = np.concatenate([alike, np.repeat(share, problem.layout.size)])
            memory = memory.spread(rows, shares, parts)
        at = self.objectives.at(problem, "search", hard).evaluate(q)
        rho, calm = state.rho[:, parts], state.calm[:, parts]
        state = replace(state, q=q, at=at, memory=memory, rho=rho, calm=calm)
        found = FitState(problem, hard, (state,), is_gaussian)
        return self._anew_if_better(view, found) if view.is_last else found

    def _anew_if_better(self, view: View, state: FitState) -> FitState:
        """The state, unless a single product that knows of no coarser view is better already.

        Members of a coarse class may lie in different modes, and what was found for all of them
        together in none.
        """
        if state.is_gaussian or not self._go_on():
            return state
        problem, product, form = self._prepared(view)
        hard = problem.hard_penalty
        if form is not None:
            return state
        products = self._products(problem, hard, product)
        self.single = products.take([0])
        single = self._copies(problem, self.single)
        value = self.objectives.at(problem, "search", hard).evaluate(single).value
        is_better = value[0] < state.candidates[0].at.value[0]
        return self._searched(problem, hard, products) if is_better else state

    def _products(self, problem: FitProblem, hard: float, product: Mixtures) -> Mixtures:
        """Single products, the best first."""
        ascent = self.objectives.ascent(problem, hard)
        count = max(self.settings.components, ascent.num_vertices)
        return ascent.ranked_products(product, self.rng, count, self._go_on)

    def _copies(self, problem: FitProblem, product: Mixtures) -> Mixtures:
        """A mixture whose components are all the same."""
        count = self.settings.components
        entries = np.repeat(as_betas(problem, product).entries, count, axis=2)
        return Mixtures.even(entries, problem.num_parts)

    def _problem(self, view: View) -> FitProblem:
        nowhere = np.zeros(view.graph.num_variables, dtype=bool)
        ground = view.variable_to_class, view.ground
        return FitProblem.of(view.graph, nowhere, scopes=self.settings.needs_grids, ground=ground)

    def _begun(
        self, problem: FitProblem, hard: float, q: Mixtures, *, is_gaussian: bool
    ) -> FitState:
        state = self.settings.optimiser.begin(self.objectives.at(problem, "search", hard), q)
        return FitState(problem, hard, (state,), is_gaussian)

    def _by_coordinates(
        self, problem: FitProblem, hard: float, q: Mixtures, *, alone: bool = False
    ) -> FitState:
        """The best product that coordinate ascent finds, from q and from some random states.

        Of all starts, only that which is best after a few sweeps is followed to the end.
        """
        count = 0 if alone else self.settings.restarts - 1
        ascent = self.objectives.ascent(problem, hard)
        if count:
            count = max(count, ascent.num_vertices)
            q = ascent.ranked_products(q, self.rng, count, self._go_on).take([0])
            share = min(1.0, len(self.control.steps) / MOST_SWEEPS)
            self.control.record(float(ascent.objective.evaluate(q).value[0]), "sweeping", share)
        most = self.settings.max_steps
        found = ascent.follow(q, most_sweeps=most, control=self.control)
        state = NaturalNewton().begin(self.objectives.at(problem, "final", hard), found.q)
        return FitState(problem, hard, (state,), False, bool(found.at_rest.all()))

    def _searched(self, problem: FitProblem, hard: float, products: Mixtures) -> FitState:
        """Candidates from random starts, the best first."""
        settings = self.settings
        self.single = products.take([0])
        if not self._go_on():
            single = as_betas(problem, self.single)  # which is cheaper than copies of it
            return self._begun(problem, hard, single, is_gaussian=False)
        starts = random_starts(problem, settings.restarts, settings.components, self.rng, products)
        few = settings.components == 1 and not problem.functions
        most = FEW_STEPS if few else SEARCH_STEPS
        return self._ranked(problem, hard, starts, most, is_gaussian=False)

    def _ranked(
        self, problem: FitProblem, hard: float, starts: Mixtures, most: int, *, is_gaussian: bool
    ) -> FitState:
        """The states after a few steps from each start, the best first; in each part of the graph
        by itself."""
        optimiser = self.settings.optimiser
        if isinstance(optimiser, NaturalNewton):  # whose later steps take one start at a time
            optimiser = NaturalGradient()
        objective = self.objectives.at(problem, "search", hard)
        found: list[State] = []
        for some in objective.portions(starts):
            state, _ = descend(
                objective, optimiser, optimiser.begin(objective, some), self.control,
                until="converged", most_steps=most, what="searching",
            )  # fmt: skip
            found += [state.take([start]) for start in range(some.num_starts)]
            if not self._go_on():
                break
        values = [state.at.by_part[0] for state in found]
        if self._go_on():
            final = self.objectives.at(problem, "final", hard)
            values = [final.evaluate(state.q).by_part[0] for state in found]
        order = np.argsort(np.nan_to_num(np.array(values), nan=np.inf), axis=0, kind="stable")
        ranked = State.ranked(found, order, problem.entry_part)
        return FitState(problem, hard, ranked, is_gaussian)

    def _improved(self, state: FitState, *, is_last: bool) -> FitState:
        """The state after as many steps as its view is worth."""
        settings = self.settings
        known = state.is_gaussian and settings.components == 1
        if known or (settings.by_coordinates and state.problem.has_exact_updates):
            if known:
                self.control.record(float(state.candidates[0].at.value[0]), "solved", 1.0)
            return replace(state, converged=state.converged or known)
        if not is_last:
            found, _ = descend(
                self.objectives.at(state.problem, "search", state.hard), settings.optimiser,
                state.candidates[0], self.control, until="rough", most_steps=SEARCH_STEPS,
                what="coarse",
            )  # fmt: skip
            return replace(state, candidates=(found,))
        best: tuple[float, State, bool, tuple[float, float] | None] | None = None
        for candidate in state.candidates:
            found, converged = self._refined(state, candidate)
            reached, relative = None, np.inf
            if self._go_on():
                reached = self._with_error(state.problem, found.q, state.hard)
                relative = reached[1] / max(1.0, abs(reached[0]))
            if best is None or relative < best[0]:
                best = (relative, found, converged, reached)
            if relative <= HIDES or not self._go_on():
                break
        assert best is not None
        _, found, converged, reached = best
        state = replace(state, candidates=(found,), converged=converged, value_and_error=reached)
        return self._no_worse_than_one(state)

    def _no_worse_than_one(self, state: FitState) -> FitState:
        """The state, with what is found from a single product where that alone is better."""
        problem, hard, settings = state.problem, state.hard, self.settings
        may_be = settings.entropy != "jensen" and not state.is_gaussian
        product = self.single if self.known is None else self.known.q
        if not may_be or not problem.has_exact_updates or product is None or not self._go_on():
            return state
        if self.known is None:
            product = self.objectives.ascent(problem, hard).follow(product, go_on=self._go_on).q
        elif not np.array_equal(self.known.problem.multiplicity, problem.multiplicity):
            return state
        objective = self.objectives.at(problem, "final", hard)
        single = settings.optimiser.begin(objective, self._copies(problem, product))
        known = again(objective, state.candidates[0])
        is_better = single.at.by_part < known.at.by_part
        if not is_better.any() or not self._go_on():
            return state
        nearby = apart(problem, single.q, self.rng)
        q, _ = chosen_parts(problem, is_better, (nearby, single.at), (known.q, known.at))
        found, converged = self._refined(state, settings.optimiser.begin(objective, q))
        for other in (single, known):
            is_better = other.at.by_part < found.at.by_part
            q, at = chosen_parts(problem, is_better, (other.q, other.at), (found.q, found.at))
            found = replace(found, q=q, at=at)
        return replace(state, candidates=(found,), converged=converged, value_and_error=None)

    def _refined(self, state: FitState, candidate: State) -> tuple[State, bool]:
        """A candidate after its last steps, with the final accuracy."""
        settings, problem = self.settings, state.problem
        if not self._go_on():
            return candidate, False
        if state.is_gaussian and (problem.functions or settings.needs_grids):
            candidate, _ = descend(
                self.objectives.at(problem, "search", state.hard), settings.optimiser, candidate,
                self.control, until="converged", most_steps=settings.max_steps, what="searching",
            )  # fmt: skip
        objective = self.objectives.at(problem, "final", state.hard)
        optimiser = settings.optimiser
        if isinstance(optimiser, NaturalNewton):
            if candidate.step >= optimiser.natural_steps:
                optimiser = NaturalNewton(0)
            candidate = again(objective, candidate)
        return descend(
            objective, optimiser, candidate, self.control,
            until="converged", most_steps=settings.max_steps, what="refining",
        )  # fmt: skip

    def _with_error(self, problem: FitProblem, q: Mixtures, hard: float) -> tuple[float, float]:
        most = MOST_POINTS if self.control.ended is None else MOST_POINTS / 100
        return self.objectives.value_and_error(problem, q, hard, most)

    def _finished(self, view: View, state: FitState) -> Fit:
        problem, q = state.problem, state.q
        if state.is_gaussian and self.settings.components > 1:
            # The mean of a centred Gaussian is 0: the whole mixture moves to where it is so.
            entries, weights = q.entries.copy(), q.weights[:, problem.part]
            entries[:, 0::2] -= (weights * entries[:, 0::2]).sum(axis=2, keepdims=True)
            q = Mixtures(q.weights, entries)
        hard = state.hard
        if problem.has_hard:
            final = self.objectives.at(problem, "final", np.inf)
            if (certain := with_certain_zeros(problem, q, final, self.rng)) is not None:
                q, hard = self._kept_feasible(certain, final), np.inf
        if state.value_and_error is None or q is not state.q:
            value, error = self._with_error(problem, q, hard)
        else:
            value, error = state.value_and_error
        solved = state.is_gaussian and self.settings.components == 1
        if q.num_components < self.settings.components:
            q = Mixtures.even(np.repeat(q.entries, self.settings.components, 2), problem.num_parts)
        return Fit(view, problem, q, value, error, state.converged, hard == np.inf, solved)

    def _kept_feasible(self, q: Mixtures, final: Objective) -> Mixtures:
        """A mixture after the steps that its zeros leave to it."""
        optimiser = NaturalGradient()
        state, _ = descend(
            final, optimiser, optimiser.begin(final, q), self.control,
            until="converged", most_steps=SEARCH_STEPS, what="enforcing hard constraints",
        )  # fmt: skip
        return state.q
