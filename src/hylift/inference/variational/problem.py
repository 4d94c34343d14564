"""A graph made ready for variational inference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.variational.scopes import Scopes
from hylift.inference.variational.terms import Terms, energy_terms
from hylift.posterior.mixture.layout import BETA, Layout

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

    @classmethod
    def of(cls, graph: FactorGraph, is_beta: NDArray[np.bool_], *, scopes: bool) -> Problem:
        terms, functions, constant = energy_terms(graph)
        return cls(
            graph,
            Layout.of(graph.variables, is_beta),
            terms,
            functions,
            constant,
            Scopes.of(graph) if scopes else None,
        )

    @property
    def multiplicity(self) -> FloatArray:
        """(variable,)"""
        return self.graph.variables.multiplicity

    @property
    def betas(self) -> NDArray[np.int64]:
        """Ids of the variables whose components are Betas."""
        return self.layout.of_family(BETA)

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
