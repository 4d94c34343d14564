"""Counting as a rewrite: twins counted, what hangs on them summed out, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, merge_groups
from hylift.graph.names import Names
from hylift.graph.variables import Variables
from hylift.rewrite.counting.counts import Counted, drawn
from hylift.rewrite.counting.leaves import restated
from hylift.rewrite.counting.representatives import representatives
from hylift.rewrite.counting.steps import Steps
from hylift.rewrite.rewritten import KNOWN, SAME, Entries, Rewritten, WayBack

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]

COUNT = 0
"""`CountMap.table` of a variable that is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class CountMap(WayBack):
    """Members as draws without replacement from their counts, leaves given their neighbours."""

    variable: Numbers
    table: Ids
    steps: Steps
    place: Numbers
    """(variable of the counts' graph,): its id in the other graph."""
    maximise: bool
    """True if the values of leaves are the best ones; else they are drawn."""

    def entries(self, ids: NDArray[Any], size: NDArray[Any]) -> Entries:
        classes = self.steps.counts.classes
        number = self.steps.number[ids]
        parts = []
        for n, k, those in classes.shapes():
            own = np.flatnonzero(np.isin(number, those))
            share = drawn(n, k, 1)
            at = np.indices((len(own), *share.shape)).reshape(3, -1)
            parts.append((own[at[0]], at[1], at[2], np.tile(share.reshape(-1), len(own))))
        place, there, here, shares = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Entries(place, there, here, shares)

    def values(self, values: NDArray[Any], rng: np.random.Generator) -> Floats:
        steps, own = self.steps, None if self.maximise else rng
        found = steps.counts.restored(values[..., self.place], own)
        return steps.reals.restored(steps.leaves.restored(found, own), own)

    def in_other(
        self, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]
    ) -> tuple[tuple[FactorGroup, ...], float]:
        found, counts = [], self.steps.counts
        without_reals = (part for group in groups for part in restated(self.steps.reals, group))
        for group in without_reals:
            for part in restated(self.steps.leaves, group):
                number, first = counts.classes.alike(part)
                times = np.bincount(number, part.multiplicity).astype(np.float64)
                for last, which in counts.restated(part.take(first)):
                    scope = self.place[last.scope]
                    found.append(last.changed(scope=scope, multiplicity=times[which]))
        return merge_groups(found), 0.0


def counts(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph with twins counted, and leaves beside them summed out; None without twins.

    graph: ground, without evidence.
    """
    if not graph.is_ground:
        return None
    steps = Steps.of(graph, maximise=maximise)
    if steps is None:
        return None
    beside = [] if maximise else representatives(steps)
    stays = np.unique(np.concatenate([steps.kept, *(one.leaf for one in beside)]))
    num_counts = len(steps.counts.classes)
    place = np.concatenate([np.searchsorted(stays, steps.kept), len(stays) + np.arange(num_counts)])
    place = place.astype(np.int32)
    groups = [group.changed(scope=place[group.scope]) for group in steps.counts.graph.groups]
    groups += [one.factors(place, stays) for one in beside]
    smaller = FactorGraph.unchecked(
        _variables(graph.variables, stays, steps.counts),
        groups,
        Evidence.none(),
        steps.counts.graph.log_constant,
    )
    number = steps.number
    variable = np.full(graph.num_variables, KNOWN, dtype=np.int32)
    variable[stays] = np.arange(len(stays))
    for one in beside:
        variable[one.alike] = variable[one.leaf][one.by]
    variable = np.where(number >= 0, len(stays) + number, variable).astype(np.int32)
    table = np.where(number >= 0, COUNT, SAME).astype(np.int64)
    back = CountMap(variable, table, steps, place, maximise)
    return Rewritten("counts", smaller, back, steps.summary, keeps_maximum=False)


def _variables(before: Variables, stays: Ids, counted: Counted) -> Variables:
    """The variables that stay, and then the counts."""
    new = counted.graph.variables
    of_counts, names = new.domain_id[len(counted.kept) :], Names(new.names.blocks[-1:])
    return before.take(stays).with_more(new.domains, of_counts, names)
