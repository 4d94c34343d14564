"""From what chains have kept to marginals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.sampling.grids import DEGREE, lay_edges, positive_density
from hylift.inference.sampling.kernels.arrays import Mixtures, Reals, Record
from hylift.inference.sampling.kernels.records import gather, spread_on_grids
from hylift.inference.search.kernels.arrays import Terms
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior import Categorical, GaussianMixture
from hylift.posterior.distributions import BatchedDistribution

FloatArray = NDArray[np.float64]

ROOM = 1 << 25
"""Numbers that all mixtures, or all grids, of all chains may take."""

MOST_COMPONENTS = 32
"""Of the mixture of a real."""

MOST_PANELS, LEAST_PANELS = 64, 4
"""Of the grid of a real that bounds cut off."""

MOST_PLACES = 8
"""Of densities of a real, seen while warming up, around which its grid is laid."""


def room_to_warm_up(values: FloatArray, num_scores: int, reals: Reals, num_chains: int) -> Record:
    """A record that keeps the last values only, and where reals with bounds were; values: (stored
    draw, variable)."""
    size, none = len(reals.variable), np.zeros((0, 0))
    places = 0
    if reals.has_bounds.any():
        places = int(np.clip(ROOM // (2 * 3 * num_chains * size), 1, MOST_PLACES))
    return Record(
        values,
        np.zeros(num_scores),
        Mixtures.empty(size, 2 * places),
        np.full(size, -1, dtype=np.int64),
        none,
        none,
        none,
        none,
        np.zeros(0),
        np.zeros(0),
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
        warm: list[Record],
        values: FloatArray,
    ) -> Recorded:
        """Empty records; is_cut: (component of reals,). warm: those of warming up. values: (chain,
        stored draw, variable)."""
        num_chains, size = len(values), len(reals.variable)
        grid_step = _cut_steps(terms, reals, is_cut)
        least = 2 * 3 * (num_chains + 1) * max(size, 1)
        num_components = int(np.clip(ROOM // least, 1, MOST_COMPONENTS))
        least = DEGREE * (num_chains + 2) * max(len(grid_step), 1)
        num_panels = int(np.clip(ROOM // least, LEAST_PANELS, MOST_PANELS))
        at = reals.variable[grid_step]
        places = warm[0].mixtures
        most = places.weight.shape[1] // 2
        for record in warm:
            others = Mixtures.empty(size, 0) if record is warm[0] else record.mixtures
            gather(places, others, most)
        edges = lay_edges(places, grid_step, variables.lower[at], variables.upper[at], num_panels)
        nodes, node_weight = gauss_legendre_nodes(edges, DEGREE)
        grid = np.full(size, -1, dtype=np.int64)
        grid[grid_step] = np.arange(len(grid_step))
        records = [
            Record(
                values[chain],
                np.zeros(int(terms.variable["num_states"].sum())),
                Mixtures.empty(size, 2 * num_components),
                grid,
                edges,
                nodes,
                node_weight,
                np.zeros(nodes.shape),
                np.zeros(len(grid_step)),
                np.zeros(len(grid_step)),
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
            whole.added[:] += other.added
            whole.coarse[:] += other.coarse
            gather(whole.mixtures, other.mixtures, self.num_components)
        spread_on_grids(self.terms, self.reals, whole)
        return [*self._discrete(whole), *self._cut(whole), *self._mixtures(whole)]

    @property
    def coarse_share(self) -> FloatArray:
        """(grid,): how much of each density is narrower than its panels, once all are added."""
        whole = self.records[0]
        return whole.coarse / np.maximum(whole.added, 1.0)

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
        some = np.flatnonzero(whole.added > 0.0)
        if not len(some):
            return []
        panels = whole.density[some].reshape(len(some), -1, DEGREE)
        density = positive_density(self.edges[some], panels)
        return [(self.reals.variable[self.grid_step[some]], density)]

    def _mixtures(self, whole: Record) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        found: list[tuple[NDArray[Any], BatchedDistribution]] = []
        mixtures = whole.mixtures
        on_grid = np.zeros(len(whole.grid), dtype=bool)
        on_grid[self.grid_step[whole.added > 0.0]] = True
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
    """Reals with a bound, but for those in components to which bounds do not matter, and will not
    because there are no states to change that."""
    component = np.empty(len(reals.variable), dtype=np.int64)
    sizes = np.diff(reals.component_ptr)
    component[reals.steps] = np.repeat(np.arange(reals.num_components), sizes)
    record = terms.variable[reals.variable]
    has_bound = np.isfinite(record["lower"]) | np.isfinite(record["upper"])
    return np.flatnonzero(has_bound & ((is_cut | reals.has_states)[component] > 0))
