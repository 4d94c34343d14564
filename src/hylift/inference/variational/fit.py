"""A mixture fitted to a graph, from a coarse view of it to the finest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas
from hylift.inference.bounds import LEAK, mass_beyond
from hylift.inference.control import Control
from hylift.inference.prepared import View
from hylift.inference.variational.descent import again, descend
from hylift.inference.variational.hard import price, with_certain_zeros
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.objective.accuracy import MOST_POINTS, Ladder, with_error
from hylift.inference.variational.optimisers import NaturalGradient, NaturalNewton, Optimiser, State
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.inference.variational.problem.families import (
    as_betas,
    betas,
)
from hylift.inference.variational.stand import Fit, Settings, Stand
from hylift.inference.variational.starts.mean_field import (
    coordinate_ascent,
    gaussian_product,
    is_closed_form,
    neutral,
    settled_means,
)
from hylift.inference.variational.starts.random import (
    FEW_SWEEPS,
    apart,
    displaced,
    num_vertices,
    random_starts,
    ranked_products,
)
from hylift.inference.variational.starts.warm import WarmStart
from hylift.proper.gaussian import GaussianForm

SEARCH_STEPS = 20
HIDES = 2e-3
"""Relative difference between accuracies that shows a narrow component between the nodes."""
FEW_STEPS = 10
"""Steps that tell single products apart."""

Phase = Literal["search", "final"]


class Fitter:
    """Fits one view after the other, each from what was found in the one before."""

    def __init__(
        self,
        settings: Settings,
        control: Control,
        rng: np.random.Generator,
        is_beta: NDArray[np.bool_] | None = None,
    ) -> None:
        """is_beta: (ground variable,), whether it has Betas, where that is known beforehand."""
        self.settings, self.control, self.rng, self.is_beta = settings, control, rng, is_beta
        self.stand: Stand | None = None
        self.single: Mixtures | None = None
        """The best single product, where one was looked for."""
        self._objectives: dict[tuple[str, float], Objective] = {}

    def fit(self, views: Iterator[View], start: WarmStart | None = None) -> Fit:
        """What is found in the last view, or in the one in which time has run out."""
        for level, view in enumerate(views):
            self.control.enter_level(view.graph.num_variables, level)
            if self.stand is not None:
                stand = self._finer(view, self.stand)
            elif start is not None:
                stand = self._warm(view, start)
            else:
                stand = self._first(view)
            self.stand = self._improved(stand, is_last=view.is_last)
            if not self.control.should_continue():
                break
        assert self.stand is not None
        return self._finished(view, self.stand)

    def _first(self, view: View) -> Stand:
        problem, product, form = self._prepared(view)
        hard, count = price(problem), self.settings.components
        if form is not None and count == 1:
            return self._begun(problem, hard, product, is_gaussian=True)
        if form is not None and view.shift is not None:
            starts = displaced(product, form, count, self.settings.restarts)
            return self._ranked(problem, hard, starts, SEARCH_STEPS, is_gaussian=True)
        if self.settings.by_coordinates and is_closed_form(problem):
            return self._by_coordinates(problem, hard, product)
        return self._searched(problem, hard, self._products(problem, hard, product))

    def _warm(self, view: View, start: WarmStart) -> Stand:
        problem, product, _ = self._prepared(view)
        if self.settings.reals == "auto":
            chosen = problem.layout.has(Betas)
            problem = problem.with_betas(start.betas(view, problem, chosen))
        q = start.mixtures(view, problem, product)
        hard = price(problem)
        if self.settings.by_coordinates and is_closed_form(problem):
            return self._by_coordinates(problem, hard, q, alone=True)
        return self._begun(problem, hard, q, is_gaussian=False)

    def _prepared(self, view: View) -> tuple[Problem, Mixtures, GaussianForm | None]:
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
            look, hard = self.control.should_continue, price(problem)
            product, _, at_rest = coordinate_ascent(
                problem, neutral(problem), hard, most_sweeps=FEW_SWEEPS, go_on=look
            )
            if not at_rest and look():
                single = Objective(problem, "bethe", "search", hard)
                product = settled_means(single, product, look)
        if self.is_beta is None:
            is_beta = betas(problem, product, self.settings.reals)
        else:
            is_beta = np.zeros(len(problem.layout), dtype=bool)
            is_beta[view.variable_to_class[self.is_beta]] = True
        problem = problem.scaled(product).with_betas(is_beta)
        return problem, product, None if is_beta.any() else form

    def _finer(self, view: View, coarse: Stand) -> Stand:
        """The same beliefs in a finer view, with what the optimiser remembers."""
        assert view.parent is not None
        self.single = None  # what was found in a coarser view
        problem = self._problem(view)
        problem = problem.with_betas(coarse.problem.layout.has(Betas)[view.parent])
        problem = replace(problem, limits=coarse.problem.limits.take(view.parent))
        source = coarse.problem.layout.entries_of(view.parent)
        state = coarse.candidates[0]
        entries = np.ascontiguousarray(state.q.entries[:, source])
        if coarse.is_gaussian and self.settings.components == 1:
            form = GaussianForm.solved(view.graph)
            assert form is not None
            entries = gaussian_product(problem, form).entries
        q = Mixtures(state.q.weights, entries)
        hard = coarse.hard
        if self.settings.by_coordinates and is_closed_form(problem) and not coarse.is_gaussian:
            return self._by_coordinates(problem, hard, q, alone=True)
        at = self._objective(problem, "search", hard).evaluate(q)
        memory = state.memory and state.memory.spread(
            source, problem.share_of_parent(coarse.problem, view.parent)
        )
        state = replace(state, q=q, at=at, memory=memory)
        stand = Stand(problem, hard, (state,), coarse.is_gaussian)
        return self._anew_if_better(view, stand) if view.is_last else stand

    def _anew_if_better(self, view: View, stand: Stand) -> Stand:
        """The stand, unless a single product that knows of no coarser view is better already.

        Members of a coarse class may lie in different modes, and what was found for all of them
        together in none.
        """
        if stand.is_gaussian or not self.control.should_continue():
            return stand
        problem, product, form = self._prepared(view)
        hard = price(problem)
        if form is not None:
            return stand
        products = self._products(problem, hard, product)
        self.single = products[0]
        single = self._copies(problem, products[0])
        value = self._objective(problem, "search", hard).evaluate(single).value
        is_better = value[0] < stand.candidates[0].at.value[0]
        return self._searched(problem, hard, products) if is_better else stand

    def _products(self, problem: Problem, hard: float, product: Mixtures) -> list[Mixtures]:
        """Single products, the best first."""
        count = max(self.settings.components, num_vertices(problem))
        return ranked_products(
            problem, self.rng, hard, product, count, self.control.should_continue
        )

    def _copies(self, problem: Problem, product: Mixtures) -> Mixtures:
        """A mixture whose components are all the same."""
        count = self.settings.components
        entries = np.repeat(as_betas(problem, product).entries, count, axis=2)
        return Mixtures(np.full((1, count), 1.0 / count), entries)

    def _problem(self, view: View) -> Problem:
        scopes = self.settings.entropy == "bethe" and self.settings.components > 1
        return Problem.of(view.graph, np.zeros(view.graph.num_variables, bool), scopes=scopes)

    def _objective(self, problem: Problem, phase: Phase, hard: float) -> Objective:
        """The objective of a problem, laid out once."""
        accuracy = getattr(Ladder.of(problem, self.settings.components), phase)
        known = self._objectives.get((accuracy, hard))
        if known is None or known.problem is not problem:
            settings = self.settings
            known = Objective(problem, settings.entropy, accuracy, hard, settings.tolerance)
            self._objectives[accuracy, hard] = known
        return known

    def _begun(self, problem: Problem, hard: float, q: Mixtures, *, is_gaussian: bool) -> Stand:
        state = self.settings.optimiser.begin(self._objective(problem, "search", hard), q)
        return Stand(problem, hard, (state,), is_gaussian)

    def _by_coordinates(
        self, problem: Problem, hard: float, q: Mixtures, *, alone: bool = False
    ) -> Stand:
        """The best product that coordinate ascent finds, from q and from some random states.

        Of all starts, only that which is best after a few sweeps is followed to the end.
        """
        count = 0 if alone else self.settings.restarts - 1

        if count:
            count = max(count, num_vertices(problem))
            look = self.control.should_continue
            q = ranked_products(problem, self.rng, hard, q, count, look)[0]
            value = float(self._objective(problem, "search", hard).evaluate(q).value[0])
            self.control.record(value, "sweeping", 0.0)
        most = self.settings.max_steps
        q, _, converged = coordinate_ascent(
            problem, q, hard, most_sweeps=most, control=self.control
        )
        state = NaturalNewton().begin(self._objective(problem, "final", hard), q)
        return Stand(problem, hard, (state,), False, converged)

    def _searched(self, problem: Problem, hard: float, products: list[Mixtures]) -> Stand:
        """Candidates from random starts, the best first."""
        settings = self.settings
        self.single = products[0]
        if not self.control.should_continue():
            copies = self._copies(problem, products[0])
            return self._begun(problem, hard, copies, is_gaussian=False)
        starts = random_starts(problem, settings.restarts, settings.components, self.rng, products)
        if settings.components == 1:
            starts.entries[0] = as_betas(problem, products[0]).entries[0]
        few = settings.components == 1 and not problem.functions
        most = FEW_STEPS if few else SEARCH_STEPS
        return self._ranked(problem, hard, starts, most, is_gaussian=False)

    def _ranked(
        self, problem: Problem, hard: float, starts: Mixtures, most: int, *, is_gaussian: bool
    ) -> Stand:
        """Where a few steps lead from each start, the best first."""
        optimiser = self._searcher()
        objective = self._objective(problem, "search", hard)
        found: list[State] = []
        for some in objective.portions(starts):
            state, _ = descend(
                objective, optimiser, optimiser.begin(objective, some), self.control,
                until="converged", most_steps=most, what="searching",
            )  # fmt: skip
            found += [state.take([start]) for start in range(some.num_starts)]
            if not self.control.should_continue():
                break
        value = [float(state.at.value[0]) for state in found]
        if self.control.should_continue():
            final = self._objective(problem, "final", hard)
            value = [float(final.evaluate(state.q).value[0]) for state in found]
        order = np.argsort(np.nan_to_num(value, nan=np.inf), kind="stable")
        return Stand(problem, hard, tuple(found[at] for at in order), is_gaussian)

    def _searcher(self) -> Optimiser:
        """The optimiser of many starts at once."""
        if isinstance(self.settings.optimiser, NaturalNewton):
            return NaturalGradient()
        return self.settings.optimiser

    def _improved(self, stand: Stand, *, is_last: bool) -> Stand:
        """The stand after as many steps as its view is worth."""
        settings = self.settings
        known = stand.is_gaussian and settings.components == 1
        if known or (settings.by_coordinates and is_closed_form(stand.problem)):
            if known:
                self.control.record(float(stand.candidates[0].at.value[0]), "solved", 1.0)
            return replace(stand, converged=stand.converged or known)
        if not is_last:
            state, _ = descend(
                self._objective(stand.problem, "search", stand.hard), settings.optimiser,
                stand.candidates[0], self.control, until="rough", most_steps=SEARCH_STEPS,
                what="coarse",
            )  # fmt: skip
            return replace(stand, candidates=(state,))
        best: tuple[float, State, bool, tuple[float, float] | None] | None = None
        for candidate in stand.candidates:
            state, converged = self._refined(stand, candidate)
            judged, relative = None, np.inf
            if self.control.should_continue():
                judged = self._with_error(stand.problem, state.q, stand.hard)
                relative = judged[1] / max(1.0, abs(judged[0]))
            if best is None or relative < best[0]:
                best = (relative, state, converged, judged)
            if relative <= HIDES or not self.control.should_continue():
                break
        assert best is not None
        _, state, converged, judged = best
        stand = replace(stand, candidates=(state,), converged=converged, judged=judged)
        return self._no_worse_than_one(stand)

    def _no_worse_than_one(self, stand: Stand) -> Stand:
        """The stand, or what is found from a single product if that alone is better.

        A mixture over many parts that nothing connects has the same weights in all of them, and is
        easily worse than the best product of each.
        """
        problem, hard, look = stand.problem, stand.hard, self.control.should_continue
        is_bethe = self.settings.entropy == "bethe" and self.settings.components > 1
        if not is_bethe or stand.is_gaussian or not is_closed_form(problem) or not look():
            return stand
        if self.single is None:
            return stand
        product, _, _ = coordinate_ascent(problem, self.single, hard, go_on=look)
        objective = self._objective(problem, "final", hard)
        single = self.settings.optimiser.begin(objective, self._copies(problem, product))
        if not single.at.value[0] < stand.candidates[0].at.value[0] or not look():
            return stand
        nearby = self.settings.optimiser.begin(objective, apart(problem, single.q, self.rng))
        state, converged = self._refined(stand, nearby)
        if not state.at.value[0] <= single.at.value[0]:
            state, converged = single, True
        return replace(stand, candidates=(state,), converged=converged, judged=None)

    def _refined(self, stand: Stand, state: State) -> tuple[State, bool]:
        """The state after its last steps, with the final accuracy."""
        settings, problem = self.settings, stand.problem
        needs_nodes = problem.functions or (settings.entropy == "bethe" and settings.components > 1)
        if stand.is_gaussian and needs_nodes:
            state, _ = descend(
                self._objective(problem, "search", stand.hard), settings.optimiser, state,
                self.control, until="converged", most_steps=settings.max_steps, what="searching",
            )  # fmt: skip
        objective = self._objective(problem, "final", stand.hard)
        optimiser = settings.optimiser
        if isinstance(optimiser, NaturalNewton):
            if state.step >= optimiser.natural_steps:
                optimiser = NaturalNewton(0)
            state = again(objective, state)
        return descend(
            objective, optimiser, state, self.control,
            until="converged", most_steps=settings.max_steps, what="refining",
        )  # fmt: skip

    def _with_error(self, problem: Problem, q: Mixtures, hard: float) -> tuple[float, float]:
        ladder = Ladder.of(problem, self.settings.components)
        most = MOST_POINTS if self.control.ended is None else MOST_POINTS / 100
        return with_error(problem, self.settings.entropy, q, ladder, hard, most)

    def _finished(self, view: View, stand: Stand) -> Fit:
        problem, q = stand.problem, stand.q
        if stand.is_gaussian and self.settings.components > 1:
            # The mean of a centred Gaussian is 0: the whole mixture moves to where it is so.
            entries = q.entries.copy()
            entries[:, 0::2] -= (q.weights[:, None] * entries[:, 0::2]).sum(axis=2, keepdims=True)
            q = Mixtures(q.weights, entries)
        hard = stand.hard
        if problem.has_hard:
            final = self._objective(problem, "final", np.inf)
            if (certain := with_certain_zeros(problem, q, final, self.rng)) is not None:
                q, hard = self._kept_feasible(certain, final), np.inf
        value, error = stand.judged or (np.nan, np.nan)
        if stand.judged is None or q is not stand.q:
            value, error = self._with_error(problem, q, hard)
        is_feasible = hard == np.inf
        solved = stand.is_gaussian and self.settings.components == 1
        return Fit(view, problem, q, value, error, stand.converged, is_feasible, solved)

    def _kept_feasible(self, q: Mixtures, final: Objective) -> Mixtures:
        """A mixture after the steps that its zeros leave to it."""
        optimiser = NaturalGradient()
        state, _ = descend(
            final, optimiser, optimiser.begin(final, q), self.control,
            until="converged", most_steps=SEARCH_STEPS, what="keeping what is impossible at zero",
        )  # fmt: skip
        return state.q
