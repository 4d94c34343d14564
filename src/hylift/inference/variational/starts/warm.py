"""Mixtures that were found before, as a place to begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas
from hylift.components.family import LEAST_PROBABILITY, LEAST_WEIGHT
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.earlier import places_among
from hylift.inference.prepared import View
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.inference.variational.problem.families import as_betas
from hylift.posterior import Posterior
from hylift.posterior.mixture import Mixture
from hylift.words import counted, option, worded


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """A mixture that was found before, about variables of the same names."""

    mixture: Mixture
    source: NDArray[np.int64]
    """(variable of the graph,): its position among the hidden variables of the mixture, or -1."""

    @classmethod
    def of(cls, posterior: Posterior, graph: FactorGraph, components: int) -> WarmStart:
        """From the posterior of an earlier run, perhaps with other evidence."""
        mixture = posterior.mixture
        if mixture is None:
            raise UnsupportedError(
                f"a warm start needs the posterior of BVI, NPVI or MeanField, not one of "
                f"'{posterior.solution.method}'"
            )
        if mixture.num_components != components:
            raise UnsupportedError(
                f"the posterior to start from has {counted(mixture.num_components, 'component')}, "
                f"not {components}",
                worded("ask for ", option("components", mixture.num_components)),
            )
        position = np.full(len(posterior.variables), -1, dtype=np.int64)
        position[mixture.hidden] = np.arange(len(mixture.hidden))
        at = places_among(posterior.variables, graph.variables)
        source = np.append(position, -1)[at]
        if not (source >= 0).any():
            raise UnsupportedError(
                "the posterior to start from is about other variables: none of its atoms, such as "
                f"'{posterior.variables.names[int(mixture.hidden[0])]}', is hidden in this model"
            )
        return cls(mixture, source)

    def betas(self, view: View, problem: Problem, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(variable,): which variables of a view had Betas, as before, or as chosen if new."""
        old = self._classes(view, problem)
        known = old >= 0
        is_beta = chosen.copy()
        is_beta[known] = self.mixture.layout.has(Betas)[old[known]]
        return is_beta & np.isfinite(problem.layout.upper - problem.layout.lower)

    def mixtures(self, view: View, problem: Problem, product: Mixtures) -> Mixtures:
        """The same mixture, over the variables of a view; the product where it knows nothing, or
        has another family."""
        count = self.mixture.num_components
        entries = np.repeat(as_betas(problem, product).entries, count, axis=2)
        old = self._classes(view, problem)
        known = np.flatnonzero(old >= 0)
        known = known[self.mixture.layout.family[old[known]] == problem.layout.family[known]]
        to = problem.layout.entries_of(known)
        entries[0, to] = self.mixture.entries[self.mixture.layout.entries_of(old[known])]
        # A state of probability zero could never come back.
        states = problem.layout.entries_of(known[problem.layout.is_discrete[known]])
        entries[0, states] = np.maximum(entries[0, states], LEAST_PROBABILITY)
        weights = np.maximum(self.mixture.weights, LEAST_WEIGHT)
        return Mixtures((weights / weights.sum())[None], entries)

    def _classes(self, view: View, problem: Problem) -> NDArray[np.int64]:
        """(variable,): the class of the old mixture that a variable of the view was in, or -1."""
        member = np.zeros(len(problem.layout), dtype=np.int64)
        member[view.variable_to_class[::-1]] = np.arange(len(view.variable_to_class))[::-1]
        position = self.source[view.hidden[member]]
        old = self.mixture.variable_to_class[position] if len(self.mixture.hidden) else position
        return np.where(position >= 0, old, -1).astype(np.int64)
