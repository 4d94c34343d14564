"""Counting as a rewrite: leaves summed out, twins counted, and the way back.

Leaves that are summed out have marginals that depend on several counts. One of each class of
look-alike leaves stays in the graph, with its probabilities given the counts as its only factor:
this changes nothing for the others, and its marginal is that of all of them.
"""

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
from hylift.potentials import Table
from hylift.rewrite.counting.counts import (
    Classes,
    Counted,
    count_twins,
    drawn,
    find_classes,
    moved,
)
from hylift.rewrite.counting.leaves import (
    WithoutDiscreteLeaves,
    eliminate_discrete_leaves,
)
from hylift.rewrite.rewritten import Rewritten
from hylift.rewrite.state_map import KNOWN, SAME, Entries, WayBack
from hylift.words import counted as number_of

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
    leaves: WithoutDiscreteLeaves
    counts: Counted
    """Of the graph without leaves."""
    place: Numbers
    """(variable of the counts' graph,): its id in the other graph."""
    maximise: bool
    """True if states of leaves are the best ones; else they are drawn."""

    def entries(self, ids: NDArray[Any], size: NDArray[Any]) -> Entries:
        classes = self.counts.classes
        number = classes.number[self.leaves.new_id[ids]]
        parts = []
        for n, k, those in classes.shapes():
            own = np.flatnonzero(np.isin(number, those))
            share = drawn(n, k, 1)
            at = np.indices((len(own), *share.shape)).reshape(3, -1)
            parts.append((own[at[0]], at[1], at[2], np.tile(share.reshape(-1), len(own))))
        place, there, here, shares = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Entries(place, there, here, shares)

    def values(self, values: NDArray[Any], rng: np.random.Generator) -> Floats:
        own = None if self.maximise else rng
        return self.leaves.restored(self.counts.restored(values[..., self.place], own), own)

    def in_other(
        self, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]
    ) -> tuple[tuple[FactorGroup, ...], float]:
        found = []
        for group in groups:
            for part, _ in self.leaves.restated(group):
                number, first = self.counts.classes.alike(part)
                times = np.bincount(number, part.multiplicity).astype(np.float64)
                for last, which in self.counts.restated(part.take(first)):
                    found.append(
                        FactorGroup.unchecked(
                            last.potential,
                            self.place[last.scope],
                            last.row,
                            times[which],
                            last.label,
                        )
                    )
        return merge_groups(found), 0.0


def counts(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph with twins counted, and leaves beside them summed out; None without twins.

    graph: ground, without evidence.
    """
    if (graph.variables.multiplicity != 1).any():
        return None
    small = eliminate_discrete_leaves(graph, maximise=maximise)
    classes = find_classes(small.graph)
    if not len(classes):
        return None
    keep = _apart(small, classes)
    if keep.any():
        is_member = np.full(graph.num_variables, -1, dtype=np.int32)
        is_member[small.kept] = classes.number
        small = eliminate_discrete_leaves(graph, keep, maximise=maximise)
        classes = Classes(is_member[small.kept], classes.size, classes.num_states)
    counted = count_twins(small.graph, classes, maximise=maximise)
    beside = [] if maximise else _representatives(small, counted)
    stays = np.sort(np.concatenate([small.kept[counted.kept], *(one.leaf for one in beside)]))
    place = np.concatenate(
        [
            np.searchsorted(stays, small.kept[counted.kept]),
            len(stays) + np.arange(len(counted.classes)),
        ]
    ).astype(np.int32)
    groups = [moved(group, place[group.scope]) for group in counted.graph.groups]
    groups += [one.factors(place, stays) for one in beside]
    smaller = FactorGraph.unchecked(
        _variables(graph.variables, stays, counted),
        groups,
        Evidence.none(),
        counted.graph.log_constant,
    )
    back = _way_back(small, counted, beside, stays, place, maximise=maximise)
    return Rewritten("counts", smaller, back, _summary(small, counted), keeps_maximum=False)


def _apart(small: WithoutDiscreteLeaves, classes: Classes) -> NDArray[np.bool_]:
    """(variable,): whether it is a leaf without a twin beside it."""
    new_id = small.new_id
    apart = np.zeros(len(new_id), dtype=bool)
    for one in small.eliminated:
        near = (classes.number[new_id[one.group.scope[:, one.others]]] >= 0).any(axis=1)
        apart[one.group.scope[~near][:, one.slots]] = True
    return apart


@dataclass(frozen=True, slots=True, eq=False)
class _Representatives:
    """Leaves that stay for all that look alike, with their probabilities given their neighbours."""

    leaf: Ids  # (representative,): its id in the graph before
    log_probs: Table  # its last slot is that of the leaf
    scope: Numbers  # (representative, other slot): variables of the counts' graph
    row: Numbers  # (representative,)
    alike: Ids  # (leaf,): ids in the graph before of all that they represent
    by: Ids  # (leaf,): which of `leaf` it is represented by

    def factors(self, place: Numbers, stays: Ids) -> FactorGroup:
        own = np.searchsorted(stays, self.leaf)
        return FactorGroup(self.log_probs, np.column_stack([place[self.scope], own]), self.row)


def _representatives(small: WithoutDiscreteLeaves, counted: Counted) -> list[_Representatives]:
    found, new_id = [], small.new_id
    for one in small.eliminated:
        scope, row = new_id[one.group.scope[:, one.others]], one.group.row
        for slot in one.slots:
            probs = [np.ascontiguousarray(each) for each in np.moveaxis(one.probs(slot), -1, 0)]
            number, first = counted.classes.alike(moved(one.group, scope))
            own = one.group.scope[:, slot].astype(np.int64)
            # The mean over members that may be drawn, a state of the leaf at a time.
            means = [
                counted.restated(FactorGroup(Table(each), scope[first], row[first]))
                for each in probs
            ]
            for parts in zip(*means, strict=True):
                part, which = parts[0]
                values = np.stack([_table(each).log_table for each, _ in parts], axis=-1)
                with np.errstate(divide="ignore"):
                    table = Table(np.log(values))
                place = np.full(len(first), -1)
                place[which] = np.arange(len(which))
                some = np.flatnonzero(place[number] >= 0)
                by = place[number[some]]
                leaf = own[first[which]]
                found.append(_Representatives(leaf, table, part.scope, part.row, own[some], by))
    return found


def _table(group: FactorGroup) -> Table:
    assert isinstance(group.potential, Table)
    return group.potential


def _way_back(
    small: WithoutDiscreteLeaves,
    counted: Counted,
    beside: Sequence[_Representatives],
    stays: Ids,
    place: Numbers,
    *,
    maximise: bool,
) -> CountMap:
    num_before, number = len(small.new_id), counted.classes.number
    variable = np.full(num_before, KNOWN, dtype=np.int32)
    table = np.full(num_before, SAME, dtype=np.int64)
    variable[stays] = np.arange(len(stays))
    member = np.flatnonzero(number >= 0)
    variable[small.kept[member]] = len(stays) + number[member]
    table[small.kept[member]] = COUNT
    for one in beside:
        variable[one.alike] = variable[one.leaf][one.by]
    return CountMap(variable, table, small, counted, place, maximise)


def _variables(before: Variables, stays: Ids, counted: Counted) -> Variables:
    """The variables that stay, and then the counts."""
    old, new = before.take(stays), counted.graph.variables
    of_counts = new.domain_id[len(counted.kept) :] + len(old.domains)
    return Variables(
        (*old.domains, *new.domains),
        np.concatenate([old.domain_id, of_counts]),
        Names((*old.names.blocks, new.names.blocks[-1])),
        np.ones(len(stays) + len(of_counts)),
    )


def _summary(small: WithoutDiscreteLeaves, counted: Counted) -> str:
    members = number_of(int(counted.classes.size.sum()), "variable")
    text = f"{members} in {number_of(len(counted.classes), 'count')}"
    num_leaves = len(small.new_id) - len(small.kept)
    return text if not num_leaves else f"{text}, beside {number_of(num_leaves, 'leaf', 'leaves')}"
