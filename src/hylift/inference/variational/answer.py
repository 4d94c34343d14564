"""From a fitted mixture to a posterior, with the leaves that were eliminated before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import mass_beyond
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.variational.fitted import Fit, Settings
from hylift.inference.variational.joint import JointGaussians
from hylift.inference.variational.problem import FloatArray, Mixtures
from hylift.inference.variational.products import Ascent
from hylift.inference.variational.trust import (
    LEAKS,
    kind_and_notes,
    kind_with_leaves,
    log_partition_of,
    note_on_tied_reals,
)
from hylift.numerics.segments import number_rows, slices
from hylift.posterior import (
    Assignment,
    GaussianMixture,
    Marginals,
    Mixture,
    Posterior,
)
from hylift.posterior.draws import Draws
from hylift.progress import Progress
from hylift.rewrite.leaves import ConstantLeaves, Remaining
from hylift.rewrite.parts import parts_of

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
NUM_DRAWS, CHAINS, MOST_STORED = 4000, 4, 1 << 24
"""Draws of a mixture of joint Gaussians, at most, as so many chains; and numbers of a chain."""
MOST_PARTS = 64
"""Gaussians of the marginal of such a real: states times components. Where there would be more,
it has one per component, with the same mean and variance."""


def posterior_of(
    prepared: Prepared,
    whole: Restored,
    name: str,
    settings: Settings,
    fit: Fit,
    control: Control,
    request: Request,
) -> Posterior:
    """The posterior of a fit, with the kind of its log Z and notes for the user."""
    graph, found, small = prepared.source, whole.fitted, whole.reduced
    kind, has_bound, notes = kind_and_notes(settings, fit, found)
    if small.eliminated:
        kind = kind_with_leaves(graph, small, whole.lost, kind, notes)
    has_bound &= float(whole.lost.max(initial=0.0)) <= LEAKS
    log_partition = log_partition_of(settings, fit, kind, notes, has_bound=has_bound)
    if control.not_interrupted() and fit.joint is None:
        notes += note_on_tied_reals(fit.view, found)
    if fit.is_closed_form and request.lift == "coarse-to-fine" and control.level == 0:
        notes.append(
            "The best product of a Gaussian model is known in closed form, which leaves "
            "coarse-to-fine lifting nothing to save: the exact lifting was solved at once."
        )
    draws = None
    if fit.joint is not None and "marginals" in request.tasks:
        values = joint_draws(fit.joint, fit.q, prepared, small, request.seed)
        draws = Draws(graph.variables, prepared.hidden, values)
    answer = Answer(
        control.ended or ("converged" if fit.converged else "max_steps"),
        fit.value,
        notes,
        _Search(prepared, small, fit, whole.mixture, request.progress),
        log_partition,
        whole.marginals,
        whole.mixture if fit.joint is None else None,  # which is one of products
        draws,
    )
    return finish(name, prepared, request, control, answer)


def joint_draws(
    joint: JointGaussians,
    q: Mixtures,
    prepared: Prepared,
    small: Remaining[ConstantLeaves],
    seed: int,
) -> FloatArray:
    """(chain, draw, hidden variable): independent draws of a mixture, with the leaves again."""
    num_variables, rng = prepared.source.num_variables, np.random.default_rng((seed, 1))
    size = int(np.clip(MOST_STORED // max(num_variables, 1), 1, NUM_DRAWS // CHAINS)) * CHAINS
    evidence, left = small.graph.evidence, np.zeros((size, small.graph.num_variables))
    left[:, evidence.variable[evidence.is_hard]] = evidence.value[evidence.is_hard]
    left[:, small.graph.is_hidden] = joint.draws(q, size, rng)
    values = small.restored(left, rng)
    return values[:, prepared.hidden].reshape(CHAINS, size // CHAINS, -1)


def mixture_of(fit: Fit) -> Mixture:
    """The mixture that was found, over the variables of the user's graph."""
    view, layout, entries = fit.view, fit.problem.layout, fit.q.entries[0]
    weights, part = _ground_parts(fit)
    classes = view.variable_to_class
    found = Mixture.by_parts(weights, layout, entries, classes, view.hidden, part)
    return found if view.shift is None else found.shifted(view.shift)


def _ground_parts(fit: Fit) -> tuple[FloatArray, NDArray[np.int32]]:
    """(part, component): weights of the parts of the ground graph; and (hidden variable,): the part
    that it is in."""
    problem, view = fit.problem, fit.view
    of = problem.part[view.variable_to_class]
    below = np.zeros(len(of), dtype=np.int64)
    if (problem.copies > 1).any():
        below = np.where(problem.copies[of] > 1, parts_of(view.ground)[0], 0).astype(np.int64)
    number, example = number_rows(of.astype(np.int64), below)
    weights = fit.q.weights[0][of[example]] if len(of) else fit.q.weights[0]
    return weights, number.astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A search for the best assignment, from the modes of a mixture."""

    prepared: Prepared
    small: Remaining[ConstantLeaves]
    """The graph that was fitted."""
    fit: Fit
    whole: Mixture
    """The mixture, or where its components are no products, one with the same marginals."""
    progress: Progress

    def __call__(
        self,
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment:
        from hylift.inference.search import polish

        mixture = mixture or self.whole
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
        problem = problem.with_betas()
        late = np.inf if seconds is None else time.perf_counter() + seconds
        ascent = Ascent.of(problem, problem.hard_penalty)
        found = ascent.follow(problem.neutral(), go_on=lambda: time.perf_counter() < late)
        product = Mixture(
            np.ones(1), problem.layout, found.entries[0], view.variable_to_class, view.hidden
        )
        return Restored.of(self.prepared.source, self.small, product).mixture.marginal_modes()


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """A mixture and its marginals over all hidden variables of the user's graph."""

    fitted: Mixture
    reduced: Remaining[ConstantLeaves]
    """The graph of the fitted mixture, without reals that could be integrated out."""
    mixture: Mixture
    marginals: Marginals
    lost: FloatArray
    """(variable,): what these reals have beyond their bounds, at most in one of the components."""

    @classmethod
    def of(cls, graph: FactorGraph, reduced: Remaining[ConstantLeaves], small: Mixture) -> Restored:
        """small: the mixture of the graph without leaves."""
        marginals, lost = small.marginals(reduced.graph.variables), np.zeros(graph.num_variables)
        if not reduced.eliminated:
            return cls(small, reduced, small, marginals, lost)
        beliefs = _Beliefs.of(graph, reduced, small)
        found = [beliefs.restore(leaves) for leaves in reduced.eliminated]
        gone = [leaves.variables for leaves in reduced.eliminated]
        variable = np.concatenate(gone)
        hidden = reduced.kept[small.hidden]
        lower, upper = graph.variables.lower[variable], graph.variables.upper[variable]
        mean, sd = beliefs.mean[variable], np.sqrt(beliefs.var[variable])
        lost[variable] = mass_beyond(lower[:, None], upper[:, None], mean, sd).max(axis=1)
        layout = small.layout.with_gaussians(lower, upper)
        entries = np.stack([beliefs.mean[variable], beliefs.var[variable]], axis=1)
        own = np.arange(len(variable), dtype=np.int32) + np.int32(len(small.layout))
        order = np.argsort(everyone := np.concatenate([hidden, variable]), kind="stable")
        part = np.concatenate([small.parts(), beliefs.part[variable]])[order]
        mixture = Mixture.by_parts(
            beliefs.weights,
            layout,
            np.concatenate([small.entries, entries.reshape(-1, small.num_components)]),
            np.concatenate([small.variable_to_class, own])[order],
            everyone[order],
            part,
        )
        batches, sizes = (*marginals.batches, *found), [len(ids) for ids in gone]
        numbers = np.arange(len(marginals.batches), len(batches), dtype=np.int32)
        batch = np.concatenate([marginals.batch, np.repeat(numbers, sizes)])
        row = np.concatenate([marginals.row, *(np.arange(n, dtype=np.int32) for n in sizes)])
        whole = Marginals(batches, batch[order], row[order])
        return cls(small, reduced, mixture, whole, lost)


def has_bounds(graph: FactorGraph) -> NDArray[np.bool_]:
    """(variable,): whether it is a real with a bound on some side."""
    return np.isfinite(graph.variables.lower) | np.isfinite(graph.variables.upper)


@dataclass(frozen=True, slots=True, eq=False)
class _Beliefs:
    """Means, variances and probabilities of all known variables under each component."""

    graph: FactorGraph
    small: Mixture
    mean: FloatArray  # (variable, component): of reals
    var: FloatArray  # (variable, component)
    first: NDArray[np.int64]  # (variable,): first entry of a hidden discrete variable; else -1
    observed: FloatArray  # (variable,): the value, where it is
    part: NDArray[np.int32]  # (variable,): whose weights it has; -1 where it is not known yet
    weights: FloatArray  # (part, component)

    @classmethod
    def of(cls, graph: FactorGraph, reduced: Remaining[ConstantLeaves], small: Mixture) -> _Beliefs:
        mean, var = np.zeros((2, graph.num_variables, small.num_components))
        evidence, observed = graph.evidence, np.zeros(graph.num_variables)
        hard = evidence.is_hard
        observed[evidence.variable[hard]] = evidence.value[hard]
        mean[:] = observed[:, None]
        is_real = reduced.graph.variables.num_states[small.hidden] == 0
        reals = reduced.kept[small.hidden[is_real]]
        mean[reals], var[reals] = small.moments(small.hidden[is_real])
        first = np.full(graph.num_variables, -1)
        first[reduced.kept[small.hidden]] = small.layout.first[small.variable_to_class]
        part = np.full(graph.num_variables, -1, dtype=np.int32)
        part[reduced.kept[small.hidden]] = small.parts()
        return cls(graph, small, mean, var, first, observed, part, small.part_weights)

    def restore(self, leaves: ConstantLeaves) -> GaussianMixture:
        """Marginals of reals given all others of their scopes, which are known by now."""
        parameters = leaves.given_others()
        self.part[leaves.variables] = self._parts_of(leaves)
        num_parts = int(np.prod(parameters[0].shape[1:])) * self.small.num_components
        kept: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for some in slices(len(leaves.group), BLOCK // (num_parts * leaves.group.arity)):
            share, mean, var = self._parts(leaves, parameters, some)
            of = leaves.variables[some]
            self.mean[of] = centre = (share * mean).sum(axis=1)
            self.var[of] = (((mean - centre[:, None]) ** 2 + var) * share).sum(axis=1)
            if num_parts <= MOST_PARTS:
                flat = (len(of), -1)
                weights = self.weights[self.part[of]][:, None]
                parts = (share * weights).reshape(flat), mean.reshape(flat), var.reshape(flat)
                kept.append(parts)
        if kept:
            return GaussianMixture(*(np.concatenate(p) for p in zip(*kept, strict=True)))
        of = leaves.variables
        return GaussianMixture(self.weights[self.part[of]], self.mean[of], self.var[of])

    def _parts(
        self, leaves: ConstantLeaves, parameters: tuple[FloatArray, ...], some: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Probability of each joint state of the other variables, and mean and variance of the real
        in it: (factor, joint state, component)."""
        group = leaves.group
        scope, row = group.scope[some], group.row[some]
        num_discrete = parameters[0].ndim - 1
        offset, coefficients, own = (part[row] for part in parameters)
        states = offset.shape[1:]
        size, components = len(scope), self.small.num_components
        share = np.ones((size, 1, components))
        part = self.part[leaves.variables[some]]
        for slot in range(num_discrete):
            probs = self._probs(scope[:, slot], states[slot], part)
            share = (share[:, :, None] * probs[:, None]).reshape(size, -1, components)
        others = scope[:, [s for s in leaves.others if s >= num_discrete]]
        factors = coefficients.reshape(size, share.shape[1], -1)
        means, variances = self._moments(others, part)
        mean = offset.reshape(size, -1, 1) + np.einsum("fjo,fok->fjk", factors, means)
        var = own.reshape(size, -1, 1) + np.einsum("fjo,fok->fjk", factors**2, variances)
        return share, mean, var

    def _parts_of(self, leaves: ConstantLeaves) -> NDArray[np.int32]:
        """(factor,): the part of a real that it depends on, or else of a discrete variable; where
        there is none, and components are all the same, the first part."""
        # Of states in other parts the probabilities are all that is needed; reals come last.
        part = self.part[leaves.group.scope[:, list(leaves.others)[::-1]]]
        if not part.shape[1]:
            return np.zeros(len(part), dtype=np.int32)
        first = np.take_along_axis(part, (part >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.maximum(first, 0)

    def _moments(
        self, others: NDArray[np.int32], part: NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray]:
        """(factor, other, component): means and variances; of reals in other parts than that of the
        factor (factor,), those of all components together."""
        mean, var = self.mean[others], self.var[others]
        apart = (self.part[others] != part[:, None]) & (self.part[others] >= 0)
        if not apart.any():
            return mean, var
        weights = self.weights[self.part[others[apart]]]
        centre = (weights * mean[apart]).sum(axis=1, keepdims=True)
        spread = (weights * (var[apart] + (mean[apart] - centre) ** 2)).sum(axis=1, keepdims=True)
        mean[apart], var[apart] = centre, spread
        return mean, var

    def _probs(
        self, variable: NDArray[np.int32], num_states: int, part: NDArray[np.int32]
    ) -> FloatArray:
        """(factor, state, component): of one discrete variable per factor; in another part than
        that of the factor (factor,), those of all components together."""
        hidden = self.first[variable] >= 0
        at = np.where(hidden, self.first[variable], 0)[:, None] + np.arange(num_states)
        at = np.minimum(at, len(self.small.entries) - 1)
        known = self.observed[variable][:, None] == np.arange(num_states)
        probs = self.small.entries[at]
        apart = np.flatnonzero(hidden & (self.part[variable] != part))
        if len(apart):
            weights = self.weights[self.part[variable[apart]]]
            probs[apart] = np.einsum("fsk,fk->fs", probs[apart], weights)[:, :, None]
        return np.where(hidden[:, None, None], probs, known[:, :, None])
