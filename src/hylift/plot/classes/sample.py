"""Which classes of a large lifted graph are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph


def sample(graph: FactorGraph, predicate: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """(circle,): classes that hang together, with all predicates among them where there is room.

    The largest class is the first. Then factors lead from what is chosen to what is not: those
    first that lead to a predicate of which there is nothing yet, then those that lead to the
    largest classes.
    """
    if graph.num_variables <= count:
        return np.arange(graph.num_variables)
    sampler = _Sampler.of(graph, predicate)
    chosen = np.zeros(graph.num_variables, dtype=bool)
    while (room := count - int(chosen.sum())) > 0:
        absent = sampler.absent(chosen)
        more = sampler.neighbours(chosen, absent, room)
        chosen[more if len(more) else sampler.largest(chosen, absent)] = True
    return np.flatnonzero(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Sampler:
    """A lifted graph as it is walked from class to class."""

    rank: NDArray[np.int64]  # (class,): 0 is the largest; of one size, the one with most factors
    predicate: NDArray[np.int32]  # (class,)
    scopes: tuple[NDArray[np.int32], ...]  # per group of factors with several slots

    @classmethod
    def of(cls, graph: FactorGraph, predicate: NDArray[np.int32]) -> _Sampler:
        num_slots = np.zeros(graph.num_variables)
        for group in graph.groups:
            num_slots += np.bincount(group.scope.ravel(), minlength=graph.num_variables)
        rank = np.empty(graph.num_variables, dtype=np.int64)
        rank[np.lexsort([-num_slots, -graph.variables.multiplicity])] = np.arange(len(rank))
        scopes = tuple(group.scope for group in graph.groups if group.arity > 1)
        return cls(rank, predicate, scopes)

    def absent(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(class,): whether no class of its predicate is chosen."""
        present = np.zeros(int(self.predicate.max()) + 1, dtype=bool)
        present[self.predicate[chosen]] = True
        return ~present[self.predicate]

    def largest(self, chosen: NDArray[np.bool_], absent: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The largest class that is not chosen, of an absent predicate if there is one."""
        free = np.flatnonzero(absent if absent.any() else ~chosen)
        return free[[np.argmin(self.rank[free])]]

    def neighbours(
        self, chosen: NDArray[np.bool_], absent: NDArray[np.bool_], room: int
    ) -> NDArray[np.int32]:
        """What is missing of the best factor that has a chosen class; nothing if there is none."""
        # A place is kept for each absent predicate: factors may never lead there.
        spare = room - len(np.unique(self.predicate[absent]))
        best, least = np.zeros(0, dtype=np.int32), (2, 0)
        for scope in self.scopes:
            inside = chosen[scope]
            missing = (~inside).sum(axis=1)
            leads_on = np.asarray(absent[scope].any(axis=1))  # to an absent predicate
            fits = inside.any(axis=1) & (missing > 0) & (missing <= spare + leads_on)
            factors = np.flatnonzero(fits)
            if not len(factors):
                continue
            rank = np.where(inside, len(self.rank), self.rank[scope])[factors].min(axis=1)
            first = np.lexsort([rank, ~leads_on[factors]])[0]
            key = (int(not leads_on[factors[first]]), int(rank[first]))
            if key < least:
                slots = scope[factors[first]]
                best, least = slots[~chosen[slots]], key
        return best
