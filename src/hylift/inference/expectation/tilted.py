"""Active parts and tilted distributions, which a step of expectation propagation updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.layout import Sites
from hylift.inference.message.layout import Work


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """The parts of the graph that have not converged, and what is in them."""

    parts: NDArray[np.bool_]  # (part,)
    work: Work
    """Its sites."""
    components: Ids
    variables: Work

    @classmethod
    def of(cls, sites: Sites, parts: NDArray[np.bool_]) -> Active:
        discrete = sites.points.graph.variables.num_states > 0
        variables = np.flatnonzero(parts[sites.part_of_variable] & discrete)
        held = np.diff(sites.points.first)[variables]
        ptr = sites.terms.incidence.ptr
        some = np.flatnonzero(parts[sites.part])
        return cls(
            parts,
            Work.of(some, sites.cost[some]),
            np.flatnonzero(parts[sites.of_component]),
            Work.of(variables, 2 * held * (ptr[variables + 1] - ptr[variables])),
        )

    @property
    def sites(self) -> Ids:
        return self.work.ids


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """Of each site: moments of its coordinates, and the way to those of its tilted distribution."""

    mean: FloatArray  # (site's coordinate,)
    covariance: FloatArray  # (site's matrix entry,)
    cavity: FloatArray  # (entry,)
    precision_step: FloatArray
    linear_step: FloatArray
    candidate: FloatArray  # (entry,): messages
    log_norm: FloatArray  # (site,)
    change: FloatArray  # (site,)
    status: Ids  # (site,)
    given: Sequence[FloatArray]
    """Log-weights, means and covariances of states, of sites without closed form."""

    @classmethod
    def room(cls, sites: Sites) -> Tilted:
        dims, entries = int(sites.dim_ptr[-1]), int(sites.matrix_ptr[-1])
        held, count = int(sites.points.place[-1]), len(sites)
        return cls(
            np.zeros(dims), np.zeros(entries), np.zeros(held), np.zeros(entries), np.zeros(dims),
            np.zeros(held), np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64),
            [np.zeros(int(ptr[-1])) for ptr in sites.given_ptr],
        )  # fmt: skip
