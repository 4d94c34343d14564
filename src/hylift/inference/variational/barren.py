"""What a mixture says of reals that were integrated out before it was fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.graph.barren import Barren, Trimmed
from hylift.inference.gaussian.bounds import LEAK, mass_beyond
from hylift.posterior import GaussianMixture, Marginals, Mixture
from hylift.posterior.mixture.layout import GAUSSIAN, Layout

FloatArray = NDArray[np.float64]

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
MOST_PARTS = 64
"""Gaussians of the marginal of such a real: states times components. Where there would be more,
it has one per component, with the same mean and variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A mixture and its marginals over all hidden variables of the user's graph."""

    mixture: Mixture
    marginals: Marginals

    @classmethod
    def of(cls, graph: FactorGraph, trimmed: Trimmed, small: Mixture) -> Whole:
        """small: the mixture of the trimmed graph."""
        marginals = small.marginals(trimmed.graph.variables)
        if not trimmed.barren:
            return cls(small, marginals)
        beliefs = _Beliefs.of(graph, trimmed, small)
        found = [beliefs.told(barren) for barren in reversed(trimmed.barren)]
        variable = np.concatenate([told.variable for told in found])
        first, hidden = small.layout.first, trimmed.kept[small.hidden]
        layout = Layout(
            np.concatenate([small.layout.family, np.full(len(variable), GAUSSIAN, dtype=np.int8)]),
            np.concatenate([first, first[-1] + 2 * np.arange(1, len(variable) + 1)]),
            np.concatenate([small.layout.lower, graph.variables.lower[variable]]),
            np.concatenate([small.layout.upper, graph.variables.upper[variable]]),
        )
        entries = np.stack([beliefs.mean[variable], beliefs.var[variable]], axis=1)
        own = np.arange(len(variable), dtype=np.int32) + np.int32(len(small.layout))
        order = np.argsort(everyone := np.concatenate([hidden, variable]), kind="stable")
        mixture = Mixture(
            small.weights,
            layout,
            np.concatenate([small.entries, entries.reshape(-1, small.num_components)]),
            np.concatenate([small.variable_to_class, own])[order],
            everyone[order],
        )
        batches = (*marginals.batches, *(told.marginal for told in found))
        sizes = [len(told.variable) for told in found]
        numbers = np.arange(len(marginals.batches), len(batches), dtype=np.int32)
        batch = np.concatenate([marginals.batch, np.repeat(numbers, sizes)])
        row = np.concatenate([marginals.row, *(np.arange(n, dtype=np.int32) for n in sizes)])
        return cls(mixture, Marginals(batches, batch[order], row[order]))


def has_bounds(graph: FactorGraph) -> NDArray[np.bool_]:
    """(variable,): whether it is a real with a bound on some side."""
    return np.isfinite(graph.variables.lower) | np.isfinite(graph.variables.upper)


def beyond_bounds(graph: FactorGraph, trimmed: Trimmed, small: Mixture) -> bool:
    """Whether the bounds of some real that was integrated out do matter."""
    variables, bounded = graph.variables, has_bounds(graph)
    gone = [barren.variable for barren in trimmed.barren]
    if not any(bounded[variable].any() for variable in gone):
        return False
    beliefs = _Beliefs.of(graph, trimmed, small)
    for barren in reversed(trimmed.barren):
        beliefs.told(barren)
    variable = np.concatenate(gone)
    bounds = variables.lower[variable][:, None], variables.upper[variable][:, None]
    mass = mass_beyond(*bounds, beliefs.mean[variable], np.sqrt(beliefs.var[variable]))
    return bool(mass.max() > LEAK)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Reals and their marginals."""

    variable: NDArray[np.int32]
    marginal: GaussianMixture


@dataclass(frozen=True, slots=True, eq=False)
class _Beliefs:
    """What each component believes of all variables of the user's graph, as far as known."""

    graph: FactorGraph
    small: Mixture
    mean: FloatArray  # (variable, component): of reals
    var: FloatArray  # (variable, component)
    first: NDArray[np.int64]  # (variable,): first entry of a hidden discrete variable; else -1
    observed: FloatArray  # (variable,): the value, where it is

    @classmethod
    def of(cls, graph: FactorGraph, trimmed: Trimmed, small: Mixture) -> _Beliefs:
        mean, var = np.zeros((2, graph.num_variables, small.num_components))
        evidence, observed = graph.evidence, np.zeros(graph.num_variables)
        hard = evidence.is_hard
        observed[evidence.variable[hard]] = evidence.value[hard]
        mean[:] = observed[:, None]
        is_real = trimmed.graph.variables.num_states[small.hidden] == 0
        reals = trimmed.kept[small.hidden[is_real]]
        mean[reals], var[reals] = small.moments(small.hidden[is_real])
        first = np.full(graph.num_variables, -1)
        first[trimmed.kept[small.hidden]] = small.layout.first[small.variable_to_class]
        return cls(graph, small, mean, var, first, observed)

    def told(self, barren: Barren) -> _Told:
        """The reals of some factors given all others of their scopes, which are known by now."""
        factors = len(barren.group)
        parameters = barren.given_others()
        num_joint = int(np.prod(parameters[0].shape[1:]))
        width = max(1, BLOCK // (num_joint * self.small.num_components * barren.group.arity))
        parts = [
            self._parts(barren, parameters, slice(begin, begin + width))
            for begin in range(0, factors, width)
        ]
        share, mean, var = (np.concatenate(part) for part in zip(*parts, strict=True))
        self.mean[barren.variable] = centre = (share * mean).sum(axis=1)
        spread = ((mean - centre[:, None]) ** 2 + var) * share
        self.var[barren.variable] = spread.sum(axis=1)
        weights = self.small.weights
        if share.shape[1] * share.shape[2] <= MOST_PARTS:
            flat = (factors, -1)
            marginal = GaussianMixture(
                (share * weights).reshape(flat), mean.reshape(flat), var.reshape(flat)
            )
        else:
            of = barren.variable
            marginal = GaussianMixture(weights, self.mean[of], self.var[of])
        return _Told(barren.variable, marginal)

    def _parts(
        self, barren: Barren, parameters: tuple[FloatArray, ...], some: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Probability of each joint state of the other variables, and mean and variance of the real
        in it: (factor, joint state, component)."""
        group = barren.group
        scope, row = group.scope[some], group.row[some]
        num_discrete = parameters[0].ndim - 1
        offset, coefficients, own = (part[row] for part in parameters)
        states = offset.shape[1:]
        size, components = len(scope), self.small.num_components
        share = np.ones((size, 1, components))
        for slot in range(num_discrete):
            probs = self._probs(scope[:, slot], states[slot])
            share = (share[:, :, None] * probs[:, None]).reshape(size, -1, components)
        others = scope[:, [s for s in barren.others if s >= num_discrete]]
        factors = coefficients.reshape(size, share.shape[1], -1)
        mean = offset.reshape(size, -1, 1) + np.einsum("fjo,fok->fjk", factors, self.mean[others])
        var = own.reshape(size, -1, 1) + np.einsum("fjo,fok->fjk", factors**2, self.var[others])
        return share, mean, var

    def _probs(self, variable: NDArray[np.int32], num_states: int) -> FloatArray:
        """(factor, state, component): of one discrete variable per factor."""
        hidden = self.first[variable] >= 0
        at = np.where(hidden, self.first[variable], 0)[:, None] + np.arange(num_states)
        at = np.minimum(at, len(self.small.entries) - 1)
        known = self.observed[variable][:, None] == np.arange(num_states)
        return np.where(hidden[:, None, None], self.small.entries[at], known[:, :, None])
