"""From a fitted mixture to a posterior, and how far to trust it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.components import Layout
from hylift.graph import FactorGraph
from hylift.inference.bounds import LEAK
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.terms import has_repeats
from hylift.inference.variational.hard import price
from hylift.inference.variational.leaves import Restored, mass_lost
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.objective.functions import needs_quadrature
from hylift.inference.variational.problem.families import mass_outside
from hylift.inference.variational.stand import Fit, Settings
from hylift.inference.variational.starts.mean_field import coordinate_ascent, neutral
from hylift.inference.variational.tied import note_on_tied_reals
from hylift.numerics.grouping import first_members, group_pairs
from hylift.posterior import (
    Assignment,
    LogPartition,
    Mixture,
    Posterior,
)
from hylift.posterior.answers import Kind
from hylift.progress import Progress
from hylift.rewrite.leaves import WithoutLeaves
from hylift.rewrite.parts import parts_of
from hylift.words import counted, method_call, option, worded

LEAKS = 1e-9
"""Mass of a Gaussian beyond the bounds of its real that still counts as none."""
SEPARATED = -1000.0
"""Coefficient of the mixing entropy from which on Bethe weights are not to be trusted."""
ALONE = 0.999
"""Weight from which on a component is the only one."""


def posterior_of(
    prepared: Prepared,
    small: WithoutLeaves,
    name: str,
    settings: Settings,
    fit: Fit,
    control: Control,
    request: Request,
) -> Posterior:
    """What was found, with the kind of its log Z and what the user should know.

    small: the graph that was fitted, without reals that could be integrated out.
    """
    view, graph = fit.view, prepared.source
    whole = Restored.of(graph, small, mixture_of(fit))
    kind, notes = _trust(settings, fit, mixture_of(fit))
    kind = _trust_in_leaves(graph, small, fit, kind, notes)
    _note_parts(settings, view, notes)
    if (
        control.not_interrupted()
        and (tied := note_on_tied_reals(view, mixture_of(fit))) is not None
    ):
        notes.append(tied)
    if fit.is_closed_form and request.lift == "coarse-to-fine" and control.level == 0:
        notes.append(
            "The best product of a Gaussian model is known in closed form, which leaves "
            "coarse-to-fine lifting nothing to save: the exact lifting was solved at once."
        )
    answer = Answer(
        control.ended or ("converged" if fit.converged else "max_steps"),
        fit.value,
        notes,
        _Search(prepared, small, fit, request.progress),
        LogPartition(-fit.value, kind, fit.error),
        whole.marginals,
        whole.mixture,
    )
    return finish(name, prepared, request, control, answer)


def mixture_of(fit: Fit) -> Mixture:
    """The mixture that was found, over the variables of the user's graph."""
    view, layout, entries = fit.view, fit.problem.layout, fit.q.entries[0]
    if view.shift is None:
        return Mixture(fit.q.weights[0], layout, entries, view.variable_to_class, view.hidden)
    # Members of a class that have different means are classes of their own.
    place = np.ascontiguousarray(view.shift).view(np.uint64)
    classes, count = group_pairs(view.variable_to_class, place)
    first = first_members(classes)
    old = view.variable_to_class[first]
    shifted = np.empty((2 * count, entries.shape[1]))
    shifted[0::2] = entries[0::2][old] + view.shift[first][:, None]
    shifted[1::2] = entries[1::2][old]
    variables = view.ground.variables.take(first)
    own = Layout.of(variables, np.zeros(count, dtype=bool))
    return Mixture(fit.q.weights[0], own, shifted, classes, view.hidden)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A search for the best assignment, from the modes of a mixture."""

    prepared: Prepared
    small: WithoutLeaves
    """The graph that was fitted."""
    fit: Fit
    progress: Progress

    def __call__(
        self,
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment:
        from hylift.inference.search import polish

        assert mixture is not None
        modes = [mixture.mode()[0][None], mixture.component_modes(), mixture.marginal_modes()[None]]
        # The best product of a Gaussian is known to have the mode of the mixture.
        if mixture.num_components > 1 and self.fit.view.shift is None:
            modes.append(self._product_mode(seconds)[None])
        starts = np.stack([*{mode.tobytes(): mode for mode in np.concatenate(modes)}.values()])
        ground = self.prepared.ground
        best = polish(ground, starts, seconds=seconds, go_on=go_on, progress=self.progress)
        return self.prepared.assignment(best.values, -best.log_density)

    def _product_mode(self, seconds: float | None) -> NDArray[np.float64]:
        """(hidden variable,): the mode of a single product, which often has the best states."""
        problem, view = self.fit.problem, self.fit.view
        problem = problem.with_betas(np.zeros(len(problem.layout), dtype=bool))
        late = np.inf if seconds is None else time.perf_counter() + seconds
        product, _, _ = coordinate_ascent(
            problem, neutral(problem), price(problem), go_on=lambda: time.perf_counter() < late
        )
        found = Mixture(
            np.ones(1), problem.layout, product.entries[0], view.variable_to_class, view.hidden
        )
        return Restored.of(self.prepared.source, self.small, found).mixture.marginal_modes()


def _trust(settings: Settings, fit: Fit, mixture: Mixture) -> tuple[Kind, list[str]]:
    """The kind of -F as a statement about log Z, and what the user should know."""
    notes: list[str] = []
    kind: Kind = "lower bound"
    leak, by_quadrature = largest_leak(mixture), needs_quadrature(fit.problem)
    if settings.entropy == "bethe" and settings.components > 1:
        on_forest = fit.view.prepared.is_forest
        has_reals = len(fit.problem.layout.reals) > 0
        if on_forest and has_reals and leak <= LEAKS and not by_quadrature:
            notes.append("The graph is a forest: log Z is at least this, up to the error stated.")
        if has_reals or not on_forest:
            kind = "estimate"
            if leak <= LEAKS and fit.is_feasible and not by_quadrature:
                _note_bound(fit, notes)
        _note_separation(fit, notes)
        _note_repeats(fit, notes)
    if by_quadrature:
        kind = "estimate"
        notes.append("Functions of your own are integrated by quadrature, so log Z is an estimate.")
    if leak > LEAKS:
        kind = "estimate"
        notes.append(
            worded(
                "Gaussian components reach beyond the bounds of their reals, by a mass of up to "
                f"{leak:.2g}, so log Z is an estimate; ",
                option("reals", "beta"),
                " keeps them inside.",
            )
        )
    if not fit.is_feasible:
        kind = "estimate"
        notes.append(
            "The mixture does not satisfy all hard constraints, which count with a large finite "
            "weight here; the MAP assignment does where one could be found. More components or "
            "restarts may help."
        )
    return kind, notes


def _trust_in_leaves(
    graph: FactorGraph, small: WithoutLeaves, fit: Fit, kind: Kind, notes: list[str]
) -> Kind:
    """The kind of log Z with what was integrated out; says so, and what that has beyond bounds."""
    if not small.eliminated:
        return kind
    names = graph.variables.names
    first, count = (
        names[int(small.eliminated[0].variable[0])],
        graph.num_variables - len(small.kept),
    )
    were = "was" if count == 1 else "were"
    notes.append(
        f"{counted(count, 'real')} that nothing else depends on, such as '{first}', {were} "
        "integrated out first."
    )
    lost = mass_lost(graph, small, mixture_of(fit))
    worst = int(np.argmax(lost))
    if not lost[worst] > LEAKS:
        return kind
    if lost[worst] > LEAK:
        notes.append(
            f"There was no time to look after the bounds of '{names[worst]}', which matter: it was "
            "integrated out as if it had none, and its marginal reaches beyond them."
        )
    else:
        notes.append(
            f"Those among them that have bounds were integrated out as if they had none: "
            f"'{names[worst]}' has {lost[worst]:.2g} of its mass beyond, so log Z is an estimate."
        )
    return "estimate"


def _note_parts(settings: Settings, view: View, notes: list[str]) -> None:
    """Says that one mixture is spread over parts that have states of their own."""
    if settings.components == 1 or not (view.ground.variables.num_states > 0).any():
        return
    part, _ = parts_of(view.ground)
    count = len(np.unique(part[view.ground.variables.num_states > 0]))
    if count > settings.components:
        notes.append(
            worded(
                f"The model falls into {count:,} parts with states that nothing connects, and one "
                f"mixture of {settings.components} products is spread over all of them: a part may "
                "be in a poor place. Compare with ",
                method_call("Gibbs"),
                ", or infer such a part by itself.",
            )
        )


def _note_bound(fit: Fit, notes: list[str]) -> None:
    """Says what is certain about log Z, beside the estimate."""
    bound = -Objective(fit.problem, "jensen", "final", np.inf).evaluate(fit.q).value[0]
    if np.isfinite(bound):
        digit = 10.0 ** (np.floor(np.log10(max(abs(bound), 1e-300))) - 5)
        below = np.floor(bound / digit) * digit
        notes.append(f"log Z is at least {below:.6g}, by Jensen's inequality for the same mixture.")


def _note_repeats(fit: Fit, notes: list[str]) -> None:
    """Says so where several factors have the same variables, each of which the Bethe entropy
    counts."""
    if has_repeats(fit.view.ground):
        notes.append(
            worded(
                "Several factors have the same variables, and the Bethe approximation counts the "
                "entropy of each: ",
                method_call("BVI", merge_factors=True),
                " counts it once, which is often better.",
            )
        )


def _note_separation(fit: Fit, notes: list[str]) -> None:
    """Says so where the Bethe entropy misjudges how components share the probability."""
    graph = fit.view.graph
    factors = sum(float(group.multiplicity.sum()) for group in graph.groups)
    mixing = factors + float((graph.variables.multiplicity * (1 - graph.degree)).sum())
    alone = fit.q.weights[0].max() > ALONE
    if mixing < SEPARATED or (alone and mixing < 0):
        died = "All weight went to one component. " if alone else ""
        notes.append(
            f"{died}This graph has many more links than variables, and there the Bethe "
            "approximation misjudges the weights of components that are far apart: compare with "
            "NPVI, or with one component."
        )


def largest_leak(mixture: Mixture) -> float:
    """The largest mass that a real has beyond its bounds."""
    beyond = mass_outside(mixture.layout, mixture.weights, mixture.entries)
    return float(beyond.max(initial=0.0))
