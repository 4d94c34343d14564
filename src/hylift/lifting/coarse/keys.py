"""Kinds of factors when real evidence is known only by its cluster."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, Part
from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.structure import LiftingInput
from hylift.numerics.grouping import group_pairs
from hylift.numerics.segments import first_of_each, inverse
from hylift.numerics.sparse import connected
from hylift.potentials import REAL
from hylift.potentials.alike import RowClasses


@dataclass(frozen=True, slots=True, eq=False)
class Absorbed:
    """The observations of reals that each factor of a conditioned graph has absorbed."""

    first: NDArray[np.int64]  # (factor + 1,): its first entry in `observation`
    observation: NDArray[np.int32]  # in the order of the slots; of a measurement: itself
    places: tuple[tuple[NDArray[np.int64], NDArray[np.int32]], ...]
    """Factors with a first observation, and that observation; with a second one; and so on."""

    @classmethod
    def of(cls, given: LiftingInput) -> Absorbed:
        graph = given.source
        observed = _observation_of_variable(graph)
        columns, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
        for _, part, _ in _placed_parts(given):
            if part.source < 0:
                found = part.factors.astype(np.int32)[:, None]
            else:
                slots = _observed_slots(graph, part, real=True)
                scope = graph.groups[part.source].scope
                found = observed[scope[part.factors[:, None], slots]]
            columns.append(found.ravel())
            sizes.append(np.full(len(found), found.shape[1]))
        first, observation = np.cumsum(np.concatenate(sizes)), np.concatenate(columns)
        size = np.diff(first)
        places = []
        for place in range(int(size.max(initial=0))):
            factors = np.flatnonzero(size > place)
            places.append((factors, observation[first[factors] + place]))
        return cls(first, observation, tuple(places))

    def mask(self, num_observations: int) -> NDArray[np.bool_]:
        """(observation,): whether any factor has absorbed it."""
        return np.bincount(self.observation, minlength=num_observations) > 0


@dataclass(frozen=True, slots=True, eq=False)
class FactorKinds:
    """A kind for each factor, such that factors of one exact kind have one kind."""

    kind: NDArray[np.int32]  # (factor,)
    num_kinds: int
    by_key: NDArray[np.int32]
    """(factor,): kinds before those with factors of one exact kind were joined."""
    num_keys: int


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceKeys:
    """Keys that determine the kind of a factor when real evidence is known only by its cluster.

    Two factors have one key when they come from one group, with equal parameters there, the same
    slots observed, the same states in discrete ones, and the same clusters in real ones. Keys of
    factors of one exact kind are joined, since evidence that makes no difference to the factors
    must not separate them. So kinds nest as clusters do, and the exact ones refine them all.
    """

    absorbed: Absorbed
    clusters: EvidenceClusters
    """The coarsest ones, of what was absorbed."""
    base: NDArray[np.int32]  # (factor,): the key without clusters
    num_bases: int
    links: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Factors of one exact kind that have absorbed different values; usually there are none."""

    @classmethod
    def of(cls, given: LiftingInput) -> EvidenceKeys:
        structure, num_observations = given.structure, len(given.source.evidence)
        absorbed = Absorbed.of(given)
        clusters = EvidenceClusters.of(
            given.source, absorbed.mask(num_observations), given.tolerance
        )
        base, num_bases = _bases(given)
        leader = first_of_each(structure.kind)[structure.kind]
        differs = base != base[leader]
        distinct = np.zeros(num_observations, dtype=np.int64)
        distinct[clusters.sorted.observation] = clusters.sorted.distinct
        for place, (factors, observation) in enumerate(absorbed.places):
            same = ~differs[factors]  # and so the leader has absorbed as many
            factors, observation = factors[same], observation[same]
            other = absorbed.observation[absorbed.first[leader[factors]] + place]
            differs[factors] = distinct[observation] != distinct[other]
        linked = np.flatnonzero(differs)
        return cls(absorbed, clusters, base, num_bases, (linked, leader[linked]))

    def kinds(self, clusters: EvidenceClusters) -> FactorKinds:
        """Kinds for these clusters."""
        key, count = self.base, self.num_bases
        for factors, observation in self.absorbed.places:
            column = np.zeros(len(key), dtype=np.uint64)
            column[factors] = clusters.cluster[observation] + 1
            key, count = group_pairs(key, column)
        return self._joined(key, count)

    def refined(
        self, kinds: FactorKinds, clusters: EvidenceClusters, num_before: int
    ) -> FactorKinds:
        """Kinds for clusters that were split once, from the kinds before.

        num_before: number of clusters before the split. Factors of a kind had the same clusters,
        and a cluster is divided in two at most; so those that stay keep their kind and the others
        get one new kind.
        """
        key, count = kinds.by_key.copy(), kinds.num_keys
        for factors, observation in self.absorbed.places:
            moving = factors[clusters.cluster[observation] >= num_before]
            num_moving = np.bincount(key[moving], minlength=count)
            is_split = (num_moving > 0) & (num_moving < np.bincount(key[factors], minlength=count))
            child = np.where(is_split, count - 1 + np.cumsum(is_split), np.arange(count))
            key[moving] = child[key[moving]]
            count += int(np.count_nonzero(is_split))
        return self._joined(key, count)

    def _joined(self, key: NDArray[np.int32], count: int) -> FactorKinds:
        """Kinds from keys, those of linked factors joined."""
        if not len(self.links[0]):
            return FactorKinds(key, count, key, count)
        left, right = (key[factors] for factors in self.links)
        kind = connected(count, np.stack([left, right], axis=1))
        return FactorKinds(kind[key], int(kind.max()) + 1, key, count)


def _placed_parts(given: LiftingInput) -> Iterator[tuple[int, Part, slice]]:
    """Group of the conditioned graph, part of it, and where its factors are among all."""
    begin = 0
    for group, parts in enumerate(given.conditioned.parts):
        for part in parts:
            end = begin + len(part.factors)
            yield group, part, slice(begin, end)
            begin = end


def _observation_of_variable(graph: FactorGraph) -> NDArray[np.int32]:
    """(variable,): its observation, -1 where there is none."""
    return inverse(graph.evidence.variable, graph.num_variables, np.int32)


def _observed_slots(graph: FactorGraph, part: Part, *, real: bool) -> list[int]:
    """Slots of the source that were observed, those of reals or the others."""
    states = graph.groups[part.source].potential.slot_states
    return [slot for slot in part.slots if (states[slot] == REAL) == real]


def _bases(given: LiftingInput) -> tuple[NDArray[np.int32], int]:
    """(factor,): dense numbers of keys without clusters, and how many there are.

    Factors that have absorbed no reals have their exact kinds.
    """
    graph, structure = given.source, given.structure
    number = np.zeros(structure.num_factors, dtype=np.int32)
    key = structure.kind.copy()
    absorbing: dict[int, list[tuple[slice, list[NDArray[Any]]]]] = {}
    classes = functools.cache(
        lambda source: RowClasses.of(graph.groups[source].potential, given.tolerance)
    )
    for group, part, factors in _placed_parts(given):
        number[factors] = 2 + part.source  # of measurements: 1
        if part.source < 0:
            key[factors] = 0
        elif not _observed_slots(graph, part, real=True):
            number[factors] = 0
        else:
            columns = _part_columns(given, classes(part.source), group, part, factors)
            absorbing.setdefault(part.source, []).append((factors, columns))
    for parts in absorbing.values():
        size = sum(place.stop - place.start for place, _ in parts)
        joined = zip(*(columns for _, columns in parts), strict=True)
        found = _dense((np.concatenate(column) for column in joined), size)
        for place, _ in parts:
            key[place], found = np.split(found, [place.stop - place.start])
    columns = [number, key]
    if not len(structure.weight):
        # All multiplicities are 1, or they have become a matter of kinds.
        groups = given.conditioned.graph.groups
        columns.append(np.concatenate([np.zeros(0), *(group.multiplicity for group in groups)]))
    base = _dense(columns, len(number))
    return base, int(base.max(initial=-1)) + 1


def _part_columns(
    given: LiftingInput, rows: RowClasses, group: int, part: Part, factors: slice
) -> list[NDArray[Any]]:
    """Columns that distinguish factors from one group, without the values of observed reals.

    Equally many columns for all parts. Exchangeable slots count as one, so that it does not matter
    which of them was observed.
    """
    graph, size = given.source, len(part.factors)
    source = graph.groups[part.source]
    row_class = rows.row_to_class[source.row[part.factors]]
    observed = _observation_of_variable(graph)
    left = [slot for slot in range(source.arity) if slot not in part.slots]
    columns = [np.full(size, group), np.full(size, len(left)), row_class]
    orbits = rows.orbits(source.potential)
    columns += [orbits[row_class, slot] for slot in (*part.slots, *left)]
    discrete = _observed_slots(graph, part, real=False)
    for slot in (*part.slots, *left):
        if slot in discrete:
            columns.append(graph.evidence.value[observed[source.scope[part.factors, slot]]])
        else:
            columns.append(np.full(size, -1))
    edges = given.structure.first[factors.start] + np.arange(size) * len(left)
    for slot in range(source.arity):
        exists = slot < len(left)
        columns.append(given.structure.orbit[edges + slot] if exists else np.full(size, -1))
    return columns


def _dense(columns: Iterable[NDArray[Any]], size: int) -> NDArray[np.int32]:
    """Dense numbers of the distinct rows of a table."""
    number = np.zeros(size, dtype=np.int32)
    for column in columns:
        if size and (column != column[0]).any():
            number, _ = group_pairs(number, column.astype(np.float64).view(np.uint64))
    return number
