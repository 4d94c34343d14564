"""A graph made ready for variational inference: the terms of its free energy, laid out flat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Gaussians, Layout, Limits
from hylift.components.gaussian import LEAK, mass_beyond
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.factors import merge_groups
from hylift.inference.terms import Terms
from hylift.inference.variational.slots import Scopes, Slots
from hylift.lifting import Beliefs
from hylift.numerics.grouping import first_members, group_pairs
from hylift.posterior.mixture import Mixture
from hylift.rewrite.kinds import Kinds
from hylift.rewrite.merge import add_up
from hylift.rewrite.parts import parts_of, some_parts

FloatArray = NDArray[np.float64]
Reals = Literal["auto", "gaussian", "beta"]

PENALTY = 20.0
"""Energy of what is impossible, while searching, beyond the largest of what is possible."""


@dataclass(frozen=True, eq=False)
class FitProblem:
    """The terms of a free energy over the variables of a graph, ground or lifted."""

    graph: FactorGraph
    """Conditioned: of hidden variables only."""
    layout: Layout
    terms: Terms
    functions: tuple[FactorGroup, ...]
    """Factors that are no tables or quadratics."""
    log_constant: float
    scopes: Scopes | None
    """Of the Bethe entropy; None where they are not needed."""
    limits: Limits
    betas: NDArray[np.int64]
    """Variables whose components are Betas."""
    multiplicity: FloatArray  # (variable,)
    part: NDArray[np.int32]
    """(variable,): the connected part of the graph that it is in; each has weights of its own."""
    copies: FloatArray
    """(part,): ground parts, all alike and independent, that it stands for."""

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        is_beta: NDArray[np.bool_],
        *,
        scopes: bool,
        ground: tuple[NDArray[np.int32], FactorGraph] | None = None,
    ) -> FitProblem:
        """ground: where the graph is lifted, the class of each variable of the ground graph."""
        part, num_parts = parts_of(graph)
        copies = np.ones(max(1, num_parts))
        if ground is not None and len(part):
            copies = _copies(part, len(copies), *ground)
        found = Scopes.of(graph) if scopes else None
        if found is not None:
            found.check_size(graph.variables)
            found = found.take(np.argsort(part[found.slots[found.slot_ptr[:-1]]], kind="stable"))
        kinds = Kinds.of(graph)
        closed = [add_up(group) for group in merge_groups(kinds.tables + kinds.quadratics)]
        variables = graph.variables
        layout = Layout.of(variables, is_beta)
        terms = Terms.of(closed, variables.num_states)
        terms = terms.take(np.argsort(part[terms.slots[terms.slot_ptr[:-1]]], kind="stable"))
        return cls(
            graph,
            layout,
            terms,
            tuple(kinds.functions),
            kinds.log_constant,
            found,
            Limits.of(layout),
            np.flatnonzero(is_beta),
            variables.multiplicity,
            part,
            copies,
        )

    @cached_property
    def slots(self) -> Slots:
        """Of the terms."""
        return Slots.of(self.layout, self.part, self.terms.slot_ptr, self.terms.slots)

    @cached_property
    def num_parts(self) -> int:
        """At least one."""
        return len(self.copies)

    @cached_property
    def part_size(self) -> FloatArray:
        """(part,): ground variables that it stands for."""
        return np.asarray(np.bincount(self.part, self.multiplicity, self.num_parts), np.float64)

    @cached_property
    def entry_part(self) -> NDArray[np.int32]:
        """(entry,): the part that it is in."""
        return np.repeat(self.part, self.layout.size)

    def with_betas(self, is_beta: NDArray[np.bool_] | None = None) -> FitProblem:
        """The same problem with Beta components for these reals, by default for none."""
        if is_beta is None:
            is_beta = np.zeros(len(self.multiplicity), dtype=bool)
        if np.array_equal(np.flatnonzero(is_beta), self.betas):
            return self
        layout = Layout.of(self.graph.variables, is_beta)
        return replace(self, layout=layout, betas=np.flatnonzero(is_beta))

    def scaled(self, product: Mixtures) -> FitProblem:
        """The same problem with variances limited around those of a product of Gaussians."""
        reals = self.layout.reals
        var = np.ones(len(self.multiplicity))
        var[reals] = product.entries[0, self.layout.first[reals] + 1, 0]
        return replace(self, limits=self.limits.scaled(var))

    def restricted(self, is_kept: NDArray[np.bool_]) -> FitProblem:
        """The problem of some of its parts (part,), without constants."""
        chosen = is_kept[self.part]
        kept, new_id = np.flatnonzero(chosen), np.cumsum(chosen, dtype=np.int32) - np.int32(1)
        terms, scopes = self.terms, self.scopes
        terms = terms.take(np.flatnonzero(chosen[terms.slots[terms.slot_ptr[:-1]]]))
        num_states = self.graph.variables.num_states[kept]
        if scopes is not None:
            scopes = scopes.take(np.flatnonzero(chosen[scopes.slots[scopes.slot_ptr[:-1]]]))
            scopes = replace(scopes, slots=new_id[scopes.slots], num_states=num_states)
        functions = (g.take(np.flatnonzero(chosen[g.scope[:, 0]])) for g in self.functions)
        layout = self.layout.take(kept)
        return replace(
            self,
            graph=some_parts(self.graph, chosen),
            layout=layout,
            terms=replace(terms, num_states=num_states, slots=new_id[terms.slots]),
            functions=tuple(replace(g, scope=new_id[g.scope]) for g in functions if len(g)),
            log_constant=0.0,
            scopes=scopes,
            limits=self.limits.take(kept),
            betas=np.flatnonzero(layout.has(Betas)),
            multiplicity=self.multiplicity[kept],
            part=(np.cumsum(is_kept, dtype=np.int32) - np.int32(1))[self.part[kept]],
            copies=self.copies[is_kept],
        )

    @property
    def has_exact_updates(self) -> bool:
        """True if every variable's best distribution, given the others, is known."""
        return not self.functions and not len(self.betas)

    @property
    def has_hard(self) -> bool:
        """True if something may be impossible."""
        return bool(self.functions) or self.terms.has_hard

    @property
    def hard_penalty(self) -> float:
        """Energy that stands for infinity while searching: more than any constraint could gain."""
        if not self.has_hard:
            return np.inf
        finite = self.terms.theta[np.isfinite(self.terms.theta)]
        return PENALTY + 2.0 * float(np.abs(finite).max(initial=0.0))

    def neutral(self) -> Mixtures:
        """One uninformative product: uniform states, the middle of each interval."""
        return self.products(self.layout.neutral()[None, :, None])

    def products(self, entries: FloatArray) -> Mixtures:
        """Single products, entries (start, entry, 1)."""
        return Mixtures(np.ones((len(entries), self.num_parts, 1)), entries)

    def weights_of(self, q: Mixtures) -> FloatArray:
        """(variable, component): weights of the first of some mixtures in the variable's part."""
        return np.asarray(q.weights[0][self.part])

    def beliefs(self, q: Mixtures) -> Beliefs:
        """The first of some mixtures as lifting wants it: means, variances, probabilities."""
        layout, (size, count) = self.layout, (len(self.multiplicity), q.num_components)
        mean, var = np.zeros((count, size)), np.ones((count, size))
        reals, discrete = layout.reals, layout.discrete
        for at, batch in layout.batches(q.entries[0], reals):
            moments = batch.moments()
            mean[:, reals[at]], var[:, reals[at]] = moments[0].T, moments[1].T
        width = layout.size[discrete]
        probs = np.zeros((size, int(width.max(initial=0)), count))
        at = layout.entries_of(discrete)
        row = np.repeat(discrete, width)
        probs[row, at - layout.first[row]] = q.entries[0, at]
        # Lifting compares beliefs with one set of weights, here the mean of all parts.
        weights = self.part_size @ q.weights[0] / max(self.part_size.sum(), 1e-300)
        return Beliefs(weights, mean, var, np.moveaxis(probs, 2, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Candidates for q, one per start: the product over parts of Σ_k w_k Π_i q_i^k, with parameters
    as `Layout` says."""

    weights: FloatArray  # (start, part, component)
    entries: FloatArray  # (start, entry, component)

    @classmethod
    def even(cls, entries: FloatArray, num_parts: int) -> Mixtures:
        """With the same weight for all components."""
        starts, _, size = entries.shape
        return cls(np.full((starts, num_parts, size), 1.0 / size), entries)

    @property
    def num_starts(self) -> int:
        return len(self.weights)

    @property
    def num_components(self) -> int:
        return self.weights.shape[2]

    def take(self, starts: NDArray[np.int64] | list[int]) -> Mixtures:
        """Some of the candidates."""
        return Mixtures(self.weights[starts], self.entries[starts])


def _copies(
    part: NDArray[np.int32], num_parts: int, to_class: NDArray[np.int32], ground: FactorGraph
) -> FloatArray:
    """(part,): parts of the ground graph that a part of the graph of classes stands for, where all
    of them have equally many members of each class; else 1."""
    below, count = parts_of(ground)
    of = part[to_class]
    above = np.zeros(count, dtype=np.int32)
    above[below] = of
    copies = np.bincount(above, minlength=num_parts).astype(np.float64)
    pair, num_pairs = group_pairs(to_class, below.astype(np.uint64))
    members = np.bincount(pair, ground.variables.multiplicity, num_pairs)
    total = np.bincount(to_class, ground.variables.multiplicity, len(part))
    example = first_members(pair)
    is_equal = members * copies[of[example]] == total[to_class[example]]
    is_split = above[below] != of
    wrong = np.concatenate([of[example[~is_equal]], of[is_split], above[below[is_split]]])
    copies[wrong] = 1.0
    return copies


def choose_betas(problem: FitProblem, product: Mixtures, reals: Reals) -> NDArray[np.bool_]:
    """(variable,): whether its components are Betas.

    'auto' picks bounded reals with more than `LEAK` of the mass of the best Gaussian product
    outside their bounds, and those in functions, which may be undefined there.
    """
    check_one_sided(problem, product)
    layout = problem.layout
    closed = ~layout.is_discrete & np.isfinite(layout.lower) & np.isfinite(layout.upper)
    if reals == "gaussian" or not closed.any():
        return np.zeros(len(closed), dtype=bool)
    if reals == "beta":
        return closed
    chosen = mass_outside(layout, problem.weights_of(product), product.entries[0]) > LEAK
    for group in problem.functions:
        chosen[group.scope.ravel()] = True
    return chosen & closed


def mass_outside(layout: Layout, weights: FloatArray, entries: FloatArray) -> FloatArray:
    """(variable,): the mass that Gaussian components have beyond the bounds; 0 for others.

    weights: (variable, component)
    """
    found = np.zeros(len(layout.family))
    bounded = np.isfinite(layout.lower) | np.isfinite(layout.upper)
    at = np.flatnonzero(layout.has(Gaussians) & bounded)
    if len(at):
        mean, var = entries[layout.first[at]], entries[layout.first[at] + 1]
        bounds = layout.lower[at][:, None], layout.upper[at][:, None]
        found[at] = (weights[at] * mass_beyond(*bounds, mean, np.sqrt(var))).sum(axis=1)
    return found


def check_one_sided(problem: FitProblem, product: Mixtures) -> None:
    """Raise an error if a real has one bound only, and that bound matters."""
    layout = problem.layout
    one_sided = np.isfinite(layout.lower) != np.isfinite(layout.upper)
    if not one_sided.any():
        return
    outside = mass_outside(layout, problem.weights_of(product), product.entries[0])
    wrong = one_sided & (outside > LEAK)
    if wrong.any():
        variables, at = problem.graph.variables, int(np.argmax(wrong))
        name, domain = variables.names[at], variables.domain(at)
        raise UnsupportedError(
            f"'{name}' is bounded on one side only, [{domain.lower:g}, {domain.upper:g}], and this "
            "bound matters: variational inference needs two bounds, for Betas between them. Give "
            f"'{name}' a second one, as far away as it can ever be"
        )


def as_betas(problem: FitProblem, q: Mixtures) -> Mixtures:
    """Mixtures of Gaussians with Betas of nearly the same moments where the problem wants them."""
    layout, reals = problem.layout, problem.betas
    if not len(reals):
        return q
    at = layout.first[reals]
    entries = q.entries.copy()
    for one in entries:
        gaussians = Gaussians(one[at], one[at + 1])
        found = Betas.matching(gaussians, layout.lower[reals], layout.upper[reals])
        one[at], one[at + 1] = found.alpha, found.beta
    return Mixtures(q.weights, entries)


def better_families(mixture: Mixture) -> NDArray[np.bool_] | None:
    """(hidden variable,): which reals should have Betas, by what was found; None if these do.

    Gaussians that reach beyond bounds should become Betas. Betas that are as narrow as they can
    be, away from the ends of their intervals, should become Gaussians.
    """
    layout = mixture.layout
    closed = np.isfinite(layout.upper - layout.lower)
    if not closed.any():
        return None
    is_beta = layout.has(Betas)
    outside = mass_outside(layout, mixture.class_weights(), mixture.entries)
    wanted = closed & (outside > LEAK)
    betas = np.flatnonzero(is_beta)
    for at, batch in layout.batches(mixture.entries, betas):
        assert isinstance(batch, Betas)
        wanted[betas[at]] = ~batch.is_too_narrow().any(axis=1)
    return None if (wanted == is_beta).all() else wanted[mixture.variable_to_class]
