"""From what chains have kept to marginals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.sampling.kernels.arrays import Mixtures, Reals, Record
from hylift.inference.sampling.kernels.records import gather
from hylift.inference.search.kernels.arrays import Terms
from hylift.posterior import Categorical, GaussianMixture, PiecewiseDensity
from hylift.posterior.distributions import BatchedDistribution
from hylift.posterior.distributions.piecewise import gauss_legendre_nodes

FloatArray = NDArray[np.float64]

ROOM = 1 << 25
"""Numbers that all mixtures, or all grids, of all chains may take."""

MOST_COMPONENTS = 32
"""Of the mixture of a real."""

MOST_PANELS, LEAST_PANELS = 48, 4
"""Of the grid of a real that bounds cut off."""

APART = 1e-3
"""Share of a grid's width that goes into keeping its edges apart."""

DEGREE = 4
"""Nodes of a panel."""

MOST_SEEN = 1 << 23
"""Numbers of the warm-up that are looked at to lay grids."""

MOST_WARM = 256
"""Draws of the warm-up of a chain that are kept, to lay grids."""


def room_to_warm_up(values: FloatArray, num_scores: int, reals: Reals) -> Record:
    """A record that keeps the last values only; values: (stored draw, variable)."""
    size, none = len(reals.variable), np.zeros((0, 0))
    return Record(
        values[:MOST_WARM],
        np.zeros(num_scores),
        np.zeros(reals.num_components, dtype=np.uint8),
        Mixtures.empty(size, 0),
        np.full(size, -1, dtype=np.int64),
        none,
        none,
        none,
        np.zeros(0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """What all chains keep, and the grids that they share."""

    variables: Variables
    terms: Terms
    reals: Reals
    edges: FloatArray  # (grid, panel + 1)
    grid_step: NDArray[np.int64]  # (grid,): its real
    records: list[Record]
    num_components: int

    @classmethod
    def room(
        cls,
        variables: Variables,
        terms: Terms,
        reals: Reals,
        is_cut: NDArray[np.uint8],
        values: FloatArray,
        num_warm: int,
    ) -> Recorded:
        """Empty records; is_cut: (component of reals,). values: (chain, stored draw, variable),
        the first of which are from warming up."""
        num_chains, size = len(values), len(reals.variable)
        grid_step = _cut_steps(terms, reals, is_cut)
        least = 2 * 3 * (num_chains + 1) * max(size, 1)
        num_components = int(np.clip(ROOM // least, 1, MOST_COMPONENTS))
        least = DEGREE * (num_chains + 2) * max(len(grid_step), 1)
        num_panels = int(np.clip(ROOM // least, LEAST_PANELS, MOST_PANELS))
        seen = values[:, :num_warm][:, :, reals.variable[grid_step]]
        at = reals.variable[grid_step]
        edges = _edges(
            seen.reshape(num_chains * num_warm, len(grid_step)),
            variables.lower[at],
            variables.upper[at],
            num_panels,
        )
        nodes, node_weight = gauss_legendre_nodes(edges, DEGREE)
        grid = np.full(size, -1, dtype=np.int64)
        grid[grid_step] = np.arange(len(grid_step))
        records = [
            Record(
                values[chain],
                np.zeros(int(terms.variable["num_states"].sum())),
                is_cut,
                Mixtures.empty(size, 2 * num_components),
                grid,
                nodes,
                node_weight,
                np.zeros(nodes.shape),
                np.zeros(nodes.shape[1]),
            )
            for chain in range(num_chains)
        ]
        return cls(variables, terms, reals, edges, grid_step, records, num_components)

    def batches(self) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        """Distributions of all variables, with the ids of those they are about.

        The records of all chains are added to that of the first.
        """
        whole = self.records[0]
        gather(whole.mixtures, Mixtures.empty(len(whole.grid), 0), self.num_components)
        for other in self.records[1:]:
            whole.probs[:] += other.probs
            whole.density[:] += other.density
            gather(whole.mixtures, other.mixtures, self.num_components)
        return [*self._discrete(whole), *self._cut(whole), *self._mixtures(whole)]

    def _discrete(self, whole: Record) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        found: list[tuple[NDArray[Any], BatchedDistribution]] = []
        for number, domain in enumerate(self.variables.domains):
            at = np.flatnonzero(self.variables.domain_id == number)
            if domain.states is not None and len(at):
                first = self.terms.variable["scores"][at]
                sums = whole.probs[first[:, None] + np.arange(domain.num_states)]
                probs = sums / sums.sum(axis=1, keepdims=True)
                found.append((at, Categorical(probs, domain.states)))
        return found

    def _cut(self, whole: Record) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        if not len(self.grid_step):
            return []
        panels = whole.density.reshape(len(self.grid_step), -1, DEGREE)
        density = PiecewiseDensity.from_gauss_legendre(self.edges, panels)
        return [(self.reals.variable[self.grid_step], density)]

    def _mixtures(self, whole: Record) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        found: list[tuple[NDArray[Any], BatchedDistribution]] = []
        on_grid, mixtures = whole.grid >= 0, whole.mixtures
        for count in np.unique(mixtures.count[~on_grid]):
            some = np.flatnonzero(~on_grid & (mixtures.count == count))
            weights = mixtures.weight[some, :count]
            mixture = GaussianMixture(
                weights / weights.sum(axis=1, keepdims=True),
                mixtures.mean[some, :count],
                mixtures.var[some, :count],
            )
            found.append((self.reals.variable[some], mixture))
        return found


def _cut_steps(terms: Terms, reals: Reals, is_cut: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Reals with a bound in components to which bounds have mattered."""
    component = np.empty(len(reals.variable), dtype=np.int64)
    sizes = np.diff(reals.component_ptr)
    component[reals.steps] = np.repeat(np.arange(reals.num_components), sizes)
    record = terms.variable[reals.variable]
    has_bound = np.isfinite(record["lower"]) | np.isfinite(record["upper"])
    return np.flatnonzero(has_bound & (is_cut[component] > 0))


def _edges(seen: FloatArray, lower: FloatArray, upper: FloatArray, num_panels: int) -> FloatArray:
    """(grid, panel + 1): between the bounds, half of them even, half at quantiles of draws.

    seen: (draw, grid). Where there is no bound, the grid ends well beyond what was seen.
    """
    low, high = seen.min(axis=0), seen.max(axis=0)
    reach = 1.0 + high - low
    low = np.where(np.isfinite(lower), lower, low - reach)
    high = np.where(np.isfinite(upper), upper, high + reach)
    half = num_panels // 2
    even = np.linspace(low, high, num_panels - half + 1, axis=1)
    levels = (np.arange(half) + 0.5) / half
    edges = np.sort(np.concatenate([even, np.quantile(seen, levels, axis=0).T], axis=1), axis=1)
    # Edges that coincide are moved apart a little.
    share = np.linspace(0.0, APART, num_panels + 1)
    edges = (1.0 - APART) * edges + APART * low[:, None] + share * (high - low)[:, None]
    edges[:, 0], edges[:, -1] = low, high
    return edges
