"""A graph made ready for variational inference."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Layout, Limits
from hylift.components.kernels.nodes import moments_of
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.terms import Terms
from hylift.inference.variational.problem.scopes import Scopes
from hylift.inference.variational.problem.terms import energy_terms
from hylift.lifting import Beliefs

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The terms of a free energy over the variables of a graph, ground or lifted."""

    graph: FactorGraph
    """Conditioned: of hidden variables only."""
    layout: Layout
    terms: Terms
    functions: tuple[FactorGroup, ...]
    """Factors whose expectations have no closed form."""
    log_constant: float
    scopes: Scopes | None
    """Of the Bethe entropy; None where they are not needed."""
    limits: Limits
    betas: NDArray[np.int64]
    """Variables whose components are Betas."""
    num_ground: float
    """Ground variables that the variables stand for."""

    @classmethod
    def of(cls, graph: FactorGraph, is_beta: NDArray[np.bool_], *, scopes: bool) -> Problem:
        found = Scopes.of(graph) if scopes else None
        if found is not None:
            found.check_size(graph)
        terms, functions, constant = energy_terms(graph)
        layout = Layout.of(graph.variables, is_beta)
        return cls(
            graph,
            layout,
            terms,
            functions,
            constant,
            found,
            Limits.of(layout),
            np.flatnonzero(is_beta),
            float(graph.variables.multiplicity.sum()),
        )

    def with_betas(self, is_beta: NDArray[np.bool_]) -> Problem:
        """The same problem with Beta components for these reals, and Gaussian ones for others."""
        if np.array_equal(is_beta, self.layout.has(Betas)):
            return self
        layout = Layout.of(self.graph.variables, is_beta)
        return replace(self, layout=layout, betas=np.flatnonzero(is_beta))

    def scaled(self, product: Mixtures) -> Problem:
        """The same problem with variances limited around those of a product of Gaussians."""
        reals = self.layout.reals
        var = np.ones(len(self.layout))
        var[reals] = product.entries[0, self.layout.first[reals] + 1, 0]
        return replace(self, limits=self.limits.scaled(var))

    def share_of_parent(self, coarser: Problem, parent: NDArray[np.int32]) -> FloatArray:
        """(entry,): which part of the members of its parent class a class has."""
        share = self.multiplicity / coarser.multiplicity[parent]
        return np.repeat(share, np.diff(self.layout.first))

    @property
    def multiplicity(self) -> FloatArray:
        """(variable,)"""
        return self.graph.variables.multiplicity

    @property
    def has_hard(self) -> bool:
        """Whether something may be impossible."""
        return bool(self.functions) or self.terms.has_hard


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Candidates for q, one per start: Σ_k w_k Π_i q_i^k, with parameters as `Layout` says."""

    weights: FloatArray  # (start, component)
    entries: FloatArray  # (start, entry, component)

    @property
    def num_starts(self) -> int:
        return len(self.weights)

    @property
    def num_components(self) -> int:
        return self.weights.shape[1]

    def take(self, starts: NDArray[np.int64] | list[int]) -> Mixtures:
        """Some of the candidates."""
        return Mixtures(self.weights[starts], self.entries[starts])


def beliefs_of(problem: Problem, q: Mixtures) -> Beliefs:
    """The first of the candidates, as lifting wants to know it: means, variances, probabilities."""
    layout, count = problem.layout, q.num_components
    moments = np.empty_like(q.entries[:1])
    moments_of(layout.family, layout.first, layout.lower, layout.upper, q.entries[:1], moments)
    size = len(layout)
    mean, var = np.zeros((count, size)), np.ones((count, size))
    reals, discrete = layout.reals, layout.discrete
    mean[:, reals] = moments[0, layout.first[reals]].T
    var[:, reals] = moments[0, layout.first[reals] + 1].T
    width = layout.size[discrete]
    probs = np.zeros((size, int(width.max(initial=0)), count))
    at = layout.entries_of(discrete)
    row = np.repeat(discrete, width)
    probs[row, at - layout.first[row]] = q.entries[0, at]
    return Beliefs(q.weights[0], mean, var, np.moveaxis(probs, 2, 0))
