"""Observed reals, sorted into clusters of similar values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.lifting.coarse.kernels.intervals import best_cuts, moments
from hylift.lifting.coloring.kernels.grouping import group_pairs
from hylift.lifting.coloring.parameters import TOLERANCE, snapped
from hylift.lifting.explanation.predicates import Predicates

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

    A cluster stands for a value that is known as N(mean, variance) only. Where a cluster is split,
    its larger part keeps the number and the other gets a new one: numbers only grow.
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
        value, error = evidence.value[ids], snapped(evidence.var[ids], tolerance)
        predicates = Predicates.of(variables.names)
        predicate = predicates.of_variable[evidence.variable[ids]]
        cluster, count = group_pairs(predicate, error.view(np.uint64))

        order = np.lexsort((value, cluster)) if count > 1 else np.argsort(value, kind="stable")
        in_order, same = cluster[order], snapped(value, tolerance)[order]
        is_new = (np.diff(in_order) > 0) | (np.diff(same) != 0)
        values = SortedValues(
            ids[order],
            value[order],
            variables.multiplicity[evidence.variable[ids[order]]],
            np.concatenate([np.zeros(min(len(ids), 1), dtype=np.int64), np.cumsum(is_new)]),
        )
        of_observation = np.full(len(evidence), -1, dtype=np.int32)
        of_observation[ids] = cluster
        begin, end = (np.searchsorted(in_order, np.arange(count), side) for side in SIDES)
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

    def split(self, chosen: NDArray[Any]) -> EvidenceClusters:
        """The clusters, each chosen one divided in two by optimal one-dimensional 2-means.

        chosen: bool (cluster,). Equal values are never separated, so that a cluster of one distinct
        value stays whole.
        """
        if np.shape(chosen) != (len(self),) or np.asarray(chosen).dtype != np.bool_:
            raise ModelError(
                f"which of {len(self)} clusters to split is said by as many truth values, "
                f"not by an array of {np.asarray(chosen).dtype} of shape {np.shape(chosen)}"
            )
        old = np.flatnonzero(chosen & (self.num_distinct > 1))
        begin, end = self.begin[old], self.end[old]
        cut = best_cuts(*self._columns(), begin, end)
        lower_is_larger = cut - begin >= end - cut
        kept = np.where(lower_is_larger, begin, cut), np.where(lower_is_larger, cut, end)
        new = np.where(lower_is_larger, cut, begin), np.where(lower_is_larger, end, cut)
        return self._with_parts(old, kept, new)

    def _with_parts(
        self, old: IntArray, kept: tuple[IntArray, IntArray], new: tuple[IntArray, IntArray]
    ) -> EvidenceClusters:
        """The clusters `old`, each reduced to the interval `kept`, and the intervals `new`."""

        def renewed(column: NDArray[Any], of_kept: Any, of_new: NDArray[Any]) -> NDArray[Any]:
            column = np.concatenate([column, of_new])
            column[old] = of_kept
            return column

        before = self.mean, self.variance, self.num_distinct
        after = zip(_moments(self.sorted, *kept), _moments(self.sorted, *new), strict=True)
        mean, variance, num_distinct = (
            renewed(column, *parts) for column, parts in zip(before, after, strict=True)
        )
        sizes = new[1] - new[0]
        first = np.cumsum(sizes) - sizes
        places = np.repeat(new[0] - first, sizes) + np.arange(sizes.sum())
        cluster = self.cluster.copy()
        cluster[self.sorted.observation[places]] = np.repeat(len(self) + np.arange(len(old)), sizes)
        return replace(
            self,
            cluster=cluster,
            predicate=renewed(self.predicate, self.predicate[old], self.predicate[old]),
            error=renewed(self.error, self.error[old], self.error[old]),
            mean=mean,
            variance=variance,
            num_distinct=num_distinct,
            begin=renewed(self.begin, kept[0], new[0]),
            end=renewed(self.end, kept[1], new[1]),
        )

    def _columns(self) -> tuple[FloatArray, FloatArray, IntArray]:
        return self.sorted.value, self.sorted.weight, self.sorted.distinct


def _moments(
    values: SortedValues, begin: IntArray, end: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    return moments(values.value, values.weight, values.distinct, begin, end)
