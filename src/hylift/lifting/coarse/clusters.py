"""Observed reals in clusters of similar values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.graph.names import Predicates
from hylift.lifting.kernels.coarse import best_cuts, moments
from hylift.numerics.grouping import group_pairs, snapped
from hylift.numerics.segments import ranges
from hylift.potentials.alike import TOLERANCE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SortedValues:
    """Observed reals by predicate and error, and then by value.

    However clusters are split, each one is an interval of this order.
    """

    observation: IntArray  # (place,)
    value: FloatArray  # (place,)
    weight: FloatArray  # (place,): multiplicity of the variable
    distinct: IntArray  # (place,): counts the distinct values; increasing


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceClusters:
    """Clusters of the observed reals; the observations of one have one predicate and one error.

    A cluster stands for a value known only as N(mean, variance). When a cluster is split, its
    larger part keeps the number and the other gets a new one.
    """

    cluster: NDArray[np.int32]
    """(observation,): -1 for states of discrete variables, and for reals that were left out."""
    predicates: tuple[str, ...]
    predicate: NDArray[np.int32]  # (cluster,): index into `predicates`
    error: FloatArray  # (cluster,): variance of the measurement error, 0 where there is none
    mean: FloatArray  # (cluster,)
    variance: FloatArray  # (cluster,)
    num_distinct: IntArray  # (cluster,): distinct values, to the tolerance
    begin: IntArray  # (cluster,): its first place in `sorted`
    end: IntArray  # (cluster,)
    sorted: SortedValues

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        wanted: NDArray[np.bool_] | None = None,
        tolerance: float = TOLERANCE,
    ) -> EvidenceClusters:
        """One cluster for the observed reals of each predicate and each variance of the error.

        wanted: (observation,): which to sort into clusters, by default all of reals. Values equal
        to the relative tolerance count as one value.
        """
        evidence, variables = graph.evidence, graph.variables
        is_real = variables.num_states[evidence.variable] == 0
        ids = np.flatnonzero(is_real if wanted is None else is_real & wanted)
        variable = evidence.variable[ids]
        predicates = Predicates.of(variables.names)
        predicate = predicates.of_variable[variable]
        error = snapped(evidence.var[ids], tolerance)
        cluster, count = group_pairs(predicate, error.view(np.uint64))
        order, distinct = _sorted(evidence.value[ids], cluster, count, tolerance)
        multiplicity = variables.multiplicity[variable[order]]
        values = SortedValues(ids[order], evidence.value[ids[order]], multiplicity, distinct)
        sizes = np.bincount(cluster, minlength=count)
        end = np.cumsum(sizes)
        begin = end - sizes
        of_observation = np.full(len(evidence), -1, dtype=np.int32)
        of_observation[ids] = cluster
        return cls(
            of_observation,
            predicates.names,
            predicate[order[begin]],
            error[order[begin]],
            *_moments(values, begin, end),
            begin,
            end,
            values,
        )

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def sizes(self) -> IntArray:
        """(cluster,): number of observations."""
        return self.end - self.begin

    def checked(self, chosen: NDArray[Any]) -> NDArray[np.bool_]:
        """The choice of clusters to split; raises unless it is bool (cluster,)."""
        chosen = np.asarray(chosen)
        if chosen.shape != (len(self),) or chosen.dtype != np.bool_:
            raise ModelError(
                f"the choice among {len(self)} clusters must be an array of {len(self)} booleans, "
                f"not an array of {chosen.dtype} of shape {chosen.shape}"
            )
        return chosen

    def split(self, chosen: NDArray[Any]) -> EvidenceClusters:
        """The clusters, each chosen one divided in two by optimal one-dimensional 2-means.

        chosen: bool (cluster,). Equal values are never separated, so that a cluster of one distinct
        value stays whole.
        """
        values = self.sorted
        old = np.flatnonzero(self.checked(chosen) & (self.num_distinct > 1))
        new = np.arange(len(self), len(self) + len(old))
        low, high = self.begin[old], self.end[old]
        cut = best_cuts(values.value, values.weight, values.distinct, low, high)
        lower_is_larger = cut - low >= high - cut

        origin = np.concatenate([np.arange(len(self)), old])
        begin, end = self.begin[origin], self.end[origin]
        begin[old], end[old] = np.where(lower_is_larger, (low, cut), (cut, high))
        begin[new], end[new] = np.where(lower_is_larger, (cut, high), (low, cut))
        sizes = end[new] - begin[new]
        cluster = self.cluster.copy()
        cluster[values.observation[ranges(begin[new], sizes)]] = np.repeat(new, sizes)
        return EvidenceClusters(
            cluster,
            self.predicates,
            self.predicate[origin],
            self.error[origin],
            *_moments(values, begin, end),
            begin,
            end,
            values,
        )


def _sorted(
    value: FloatArray, cluster: NDArray[np.int32], count: int, tolerance: float
) -> tuple[IntArray, IntArray]:
    """The order by cluster and value, and along it the number of each distinct value."""
    value = value + 0.0  # -0.0 becomes 0.0
    order = np.argsort(value)
    same = snapped(value, tolerance, order)
    if count > 1:
        order = order[np.argsort(cluster[order], kind="stable")]
    in_order, same = cluster[order], same[order]
    is_new = (in_order[1:] != in_order[:-1]) | (same[1:] != same[:-1])
    return order, np.concatenate([np.zeros(min(len(value), 1), dtype=np.int64), is_new.cumsum()])


def _moments(
    values: SortedValues, begin: IntArray, end: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    return moments(values.value, values.weight, values.distinct, begin, end)
