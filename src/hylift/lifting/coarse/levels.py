"""Liftings from coarse to fine: by clusters of evidence that are split, and by distance."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import Conditioned, FactorGraph
from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.keys import Absorbed, EvidenceKeys, FactorKinds
from hylift.lifting.coloring import Partition, next_colors, stable_coloring, tie
from hylift.lifting.lift import Lifting
from hylift.lifting.structure import LiftingInput, Structure
from hylift.numerics.grouping import group_pairs
from hylift.potentials.alike import TOLERANCE
from hylift.progress import Progress, silent

MAX_CLASS_SHARE = 0.1
"""Classes per variable above which the next lifting by distance is the exact one."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A lifting that knows real evidence only by its cluster, and its relation to the one before.

    Where factors of a class have different parameters, the lifted graph has their mean. For a
    quadratic in one observed real that is its expectation when the value has the mean and the
    variance of the values, all of one cluster, that members of the class have absorbed.
    """

    lifting: Lifting
    parent: NDArray[np.int32]
    """(class,): class of the level before that it is part of; empty at the first level."""
    clusters: EvidenceClusters
    splittable: NDArray[np.bool_]
    """(cluster,): true if it varies by more than epsilon, in a way that matters to some class."""
    is_last: bool
    coloring: Partition
    """Classes of variables, and of factors that differ only in evidence of one cluster."""
    structure: Structure
    """Of `lifting.ground`."""
    absorbed: Absorbed
    """The observations that the factors of `lifting.ground` have absorbed."""


Choose = Callable[[Level], NDArray[np.bool_] | None]
"""The clusters (cluster,) to split next; entries of clusters that cannot be split are ignored. None
if the next level is to be the last."""


def every_cluster(level: Level) -> NDArray[np.bool_]:
    """All clusters at once, as in Algorithm 1 of the paper."""
    return np.ones(len(level.clusters), dtype=bool)


def coarse_to_fine(
    graph: FactorGraph | Conditioned,
    *,
    epsilon: float = 0.0,
    choose: Choose = every_cluster,
    tolerance: float = TOLERANCE,
    progress: Progress = silent,
) -> Iterator[Level]:
    """Ever finer liftings: at first all observed reals of a predicate count as one value.

    Each next level splits clusters of evidence in two, those that `choose` picks and whose variance
    exceeds `epsilon` (in squared units of the values), and resumes color passing. Levels are
    computed on demand, so that `choose` may use what was inferred at the level before; if it picks
    nothing, all clusters are split, and if it returns None, all are split to the end.

    With epsilon = 0 the last level is the lifting that `lift` finds; without real evidence it is
    the only one.
    """
    if not isinstance(epsilon, numbers.Real) or not 0 <= epsilon < np.inf:
        raise ModelError(
            "epsilon, the variance up to which observed values count as one, must be finite and "
            f"non-negative, not {epsilon!r}"
        )
    progress(0.0, "absorbing evidence")
    return _levels(LiftingInput.of(graph, tolerance), float(epsilon), choose, progress)


def _levels(
    given: LiftingInput, epsilon: float, choose: Choose, progress: Progress
) -> Iterator[Level]:
    progress(0.0, "passing colors")
    ladder = _Ladder.of(given, epsilon)
    clusters = ladder.keys.clusters
    kinds, num_values = ladder.keys.kinds(clusters), clusters.num_distinct.sum()
    level = ladder.level(clusters, kinds, stable_coloring(given.structure, kinds.kind))
    while True:
        done = 1.0 if level.is_last else len(level.clusters) / num_values
        progress(done, f"{len(level.clusters)} clusters of evidence")
        yield level
        if level.is_last:
            return
        clusters, finer = ladder.divided(level, kinds, choose)
        before = level.coloring
        while not before.differs(finer.kind).any():
            level, kinds = ladder.with_clusters(level, clusters, finer), finer
            clusters, finer = ladder.divided(level, kinds, choose)
        coloring = stable_coloring(given.structure, finer.kind, before)
        level, kinds = ladder.level(clusters, finer, coloring, before), finer


@dataclass(frozen=True, slots=True, eq=False)
class _Ladder:
    """The inputs that all levels share."""

    given: LiftingInput
    keys: EvidenceKeys
    final: NDArray[np.int32]
    """(factor,): kinds of the last level."""
    epsilon: float

    @classmethod
    def of(cls, given: LiftingInput, epsilon: float) -> _Ladder:
        keys = EvidenceKeys.of(given)
        final = given.structure.kind
        if epsilon > 0:
            final = keys.kinds(_divided_to_the_end(keys.clusters, epsilon)).kind
        return cls(given, keys, final, epsilon)

    def level(
        self,
        clusters: EvidenceClusters,
        kinds: FactorKinds,
        coloring: Partition,
        before: Partition | None = None,
    ) -> Level:
        """The level of a coloring; before: the coloring of the level before."""
        structure = self.given.structure
        unlike = _mixed(kinds, coloring, self.final)
        is_exact = not unlike.any()
        if self.epsilon > 0 and is_exact:
            is_exact = not _mixed(kinds, coloring, structure.kind).any()
        classes = coloring
        if not is_exact and not all(structure.averages):
            classes = tie(structure, coloring.variable, kinds.kind)
        return Level(
            Lifting.of(self.given, classes, is_exact=is_exact),
            _parents(before.variable if before else None, coloring),
            clusters,
            self._splittable(clusters, kinds, unlike),
            not unlike.any(),
            coloring,
            structure,
            self.keys.absorbed,
        )

    def divided(
        self, level: Level, kinds: FactorKinds, choose: Choose
    ) -> tuple[EvidenceClusters, FactorKinds]:
        """The clusters, some of them split, and their kinds of factors."""
        chosen = choose(level) if level.splittable.any() else None
        if chosen is None:
            # Also where values equal to the tolerance have led to parameters that are not.
            clusters = _divided_to_the_end(level.clusters, self.epsilon)
            final, count = group_pairs(self.final, np.zeros(len(self.final), dtype=np.uint64))
            return clusters, FactorKinds(final, count, final, count)
        chosen = level.clusters.checked(chosen) & level.splittable
        clusters = level.clusters.split(chosen if chosen.any() else level.splittable)
        return clusters, self.keys.refined(kinds, clusters, len(level.clusters))

    def with_clusters(self, level: Level, clusters: EvidenceClusters, kinds: FactorKinds) -> Level:
        """The same level, with clusters and kinds that make no difference to its classes."""
        splittable = self._splittable(clusters, kinds, _mixed(kinds, level.coloring, self.final))
        return replace(level, clusters=clusters, splittable=splittable)

    def _splittable(
        self, clusters: EvidenceClusters, kinds: FactorKinds, unlike: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        matters = np.zeros(len(clusters), dtype=bool)
        for factors, observation in self.keys.absorbed.places:
            matters[clusters.cluster[observation[unlike[kinds.kind[factors]]]]] = True
        return matters & _varying(clusters, self.epsilon)


def _mixed(kinds: FactorKinds, coloring: Partition, wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """(kind,): whether it has a class of factors with different wanted kinds."""
    mixed = np.zeros(kinds.num_kinds, dtype=bool)
    mixed[kinds.kind[coloring.differs(wanted)]] = True
    return mixed


def _varying(clusters: EvidenceClusters, epsilon: float) -> NDArray[np.bool_]:
    return (clusters.variance > epsilon) & (clusters.num_distinct > 1)


def _divided_to_the_end(clusters: EvidenceClusters, epsilon: float) -> EvidenceClusters:
    """Clusters none of which varies by more than epsilon; the order of splits does not matter."""
    while (varying := _varying(clusters, epsilon)).any():
        clusters = clusters.split(varying)
    return clusters


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """A lifting whose classes look alike up to a distance, counted in factors."""

    lifting: Lifting
    distance: int
    parent: NDArray[np.int32]
    """(class,): class of the lifting before that it is part of; empty for the first."""
    is_last: bool
    """True for the exact lifting, whose members look alike at any distance."""


def by_distance(
    graph: FactorGraph, *, tolerance: float = TOLERANCE, progress: Progress = silent
) -> Iterator[Surroundings]:
    """Ever finer liftings: after one round of color passing, after two, …, and the exact one.

    Where no two variables look exactly alike, most may still have the same kinds of factors, and
    these the same kinds of neighbours. Objectives of variational inference on such a lifting are
    those of the graph when all members of a class have the same beliefs.
    """
    progress(0.0, "absorbing evidence")
    given = LiftingInput.of(graph, tolerance)
    s = given.structure
    color, count, distance = s.color, s.num_colors, 0
    before: NDArray[np.int32] | None = None
    while True:
        progress(0.3, f"passing colors, round {distance + 1}")
        new, new_count, _ = next_colors(s, s.kind, color)
        distance += 1
        is_last = new_count == count or new_count > MAX_CLASS_SHARE * s.num_variables
        found = stable_coloring(s) if is_last else tie(s, new, s.kind)
        if is_last:
            progress(1.0, "lifted")
        lifting = Lifting.of(given, found, is_exact=is_last)
        yield Surroundings(lifting, distance, _parents(before, found), is_last)
        if is_last:
            return
        color, count, before = new, new_count, found.variable


def _parents(before: NDArray[np.int32] | None, coloring: Partition) -> NDArray[np.int32]:
    """(class,): the class before that each is part of; empty if there was none."""
    return np.zeros(0, dtype=np.int32) if before is None else before[coloring.first_variable]
