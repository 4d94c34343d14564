"""Hard clusters: discrete variables that hard factors tie, as one variable of their joint states.

Products of independent variables cannot follow a hard factor: they have to put all their mass on
one of the ways to satisfy it. A cluster has a state for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph.domains import categorical
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, merge_groups
from hylift.graph.variables import Variables
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.segments import counts_up, first_of_each, number_lists, offsets, ranges
from hylift.potentials import Table
from hylift.potentials.quadratic import as_table
from hylift.rewrite.relations import JointStates, Possible, joint_states, relations_of
from hylift.rewrite.rewritten import KNOWN, SAME, Rewritten, StateMap
from hylift.words import counted

Ids = NDArray[np.int64]

MOST_STATES = 1 << 12
"""Joint states of a cluster; larger ones stay as they are."""
MOST_ENTRIES = 1 << 14
"""Entries of a factor between clusters; where there would be more, its largest cluster stays as it
is."""
MOST_WORK = 1 << 23
"""Entries of all factors of clusters together, each factor counted by itself."""


def hard_clusters(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph with variables that hard factors tie joined; None where there are none.

    graph: ground, without evidence. Raises an error where no joint state is possible.
    """
    relations = relations_of(graph)
    if not relations or not graph.is_ground:
        return None
    possible = Possible.of(graph, relations)
    num_states = graph.variables.num_states
    is_known = (possible.count == 1) & (num_states > 1)
    state = np.zeros(graph.num_variables, dtype=np.int64)
    owner = np.repeat(np.arange(graph.num_variables), num_states)[possible.state]
    state[owner] = counts_up(num_states)[possible.state]
    known = StateMap.of_kept(np.flatnonzero(~is_known), np.where(is_known, state, 0))
    smaller = _moved(graph, known, graph.variables.take(np.flatnonzero(~is_known)))
    clusters = _clusters(smaller, possible.take(smaller, ~is_known))
    texts = []
    if is_known.any():
        num_known = int(np.count_nonzero(is_known))
        verb = "has one possible state" if num_known == 1 else "have one possible state each"
        texts.append(f"{counted(num_known, 'variable')} {verb}")
    found, back = smaller, known
    if clusters is not None:
        variables = _variables(smaller.variables, clusters)
        found = _summed(_moved(smaller, clusters.map, variables), clusters)
        back = known.then(clusters.map, variables.num_states)
        texts.append(
            f"{counted(int(np.count_nonzero(clusters.map.is_mapped)), 'variable')} in "
            f"{counted(len(clusters.size), 'cluster')} of up to "
            f"{counted(int(clusters.size.max()), 'joint state')}"
        )
    return Rewritten("hard clusters", found, back, "; ".join(texts)) if texts else None


def _moved(graph: FactorGraph, states: StateMap, variables: Variables) -> FactorGraph:
    """The same distribution over the variables that the map leads to."""
    groups, constant = states.in_other(graph.groups, variables.num_states)
    kept, more = _without_constants(groups)
    total = graph.log_constant + constant + more
    return FactorGraph.unchecked(variables, kept, Evidence.none(), total)


def _summed(graph: FactorGraph, clusters: _Clusters) -> FactorGraph:
    """The graph with tables of the same variables, clusters among them, added up: they would be
    loops, where the rules were about different members."""
    is_cluster = np.zeros(graph.num_variables, dtype=bool)
    is_cluster[np.searchsorted(clusters.kept, clusters.first)] = True
    found: list[FactorGroup] = []
    sorted_: list[FactorGroup] = []
    for group in graph.groups:
        touches = is_cluster[group.scope].any(axis=1)
        whole = as_table(group.potential)
        if whole is None or not touches.any():
            found.append(group)
            continue
        if not touches.all():
            found.append(group.take(np.flatnonzero(~touches)))
        some = group.take(np.flatnonzero(touches))
        orders = np.argsort(some.scope, axis=1).astype(np.int32)
        which, _ = group_rows(orders)
        for number, order in enumerate(orders[first_members(which)].tolist()):
            own = some.take(np.flatnonzero(which == number))
            table = Table(whole.log_table.transpose(0, *(1 + slot for slot in order)))
            sorted_.append(replace(own, potential=table, scope=own.scope[:, order]))
    added = [_added(group) for group in merge_groups(sorted_)]
    return replace(graph, groups=merge_groups([*found, *added]))


def _added(group: FactorGroup) -> FactorGroup:
    """A factor for each scope, the sum of those that have it."""
    alike, count = group_rows(group.scope)
    if count == len(group):
        return group
    order = np.argsort(alike, kind="stable")
    values = group.potential.flat[group.row[order]] * group.multiplicity[order, None]
    sums = np.add.reduceat(values, offsets(np.bincount(alike, minlength=count))[:-1], axis=0)
    number, _ = group_rows(np.ascontiguousarray(sums + 0.0).view(np.int32))
    rows = first_members(number)
    return FactorGroup(
        group.potential.with_flat(sums[rows]), group.scope[first_members(alike)], number,
        label=group.label,
    )  # fmt: skip


def _without_constants(groups: Sequence[FactorGroup]) -> tuple[list[FactorGroup], float]:
    """Factors without tables that are the same everywhere, and the sum of those."""
    kept, constant = [], 0.0
    for group in groups:
        table = as_table(group.potential)
        if table is not None:
            flat = table.flat
            same = (flat == flat[:, :1]).all(axis=1) & np.isfinite(flat[:, 0])
            gone = same[group.row]
            constant += float(group.multiplicity[gone] @ flat[group.row[gone], 0])
            group = group if not gone.any() else group.take(np.flatnonzero(~gone))
        if len(group):
            kept.append(group)
    return kept, constant


@dataclass(frozen=True, slots=True, eq=False)
class _Clusters:
    """Clusters of a graph; its other variables stay."""

    map: StateMap
    first: Ids  # (cluster,): its first member, increasing
    size: Ids  # (cluster,): its joint states
    kept: Ids
    """(variable of the new graph,): the variable, or the first member of the cluster."""


def _clusters(graph: FactorGraph, possible: Possible) -> _Clusters | None:
    """The clusters that are small enough, and whose factors are."""
    found = joint_states(possible, relations_of(graph), MOST_STATES)
    stays = np.zeros(graph.num_variables, dtype=bool)
    for group in graph.groups:
        if group.potential.quadratic() is None:
            stays[group.scope] = True
    chosen = [_take(one, np.asarray(~stays[one.member].any(axis=1))) for one in found]
    cluster = np.full(graph.num_variables, -1)
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(one.ptr) for one in chosen)])
    start = 0
    for one in chosen:
        cluster[one.member] = start + np.arange(len(one.member))[:, None]
        start += len(one.member)
    keep = _affordable(graph, cluster, sizes)
    start, small = 0, []
    for one in chosen:
        small.append(_take(one, keep[start : start + len(one.member)]))
        start += len(one.member)
    small = [one for one in small if len(one.member)]
    return _joined(graph, small) if small else None


def _take(found: JointStates, keep: NDArray[np.bool_]) -> JointStates:
    """Some of the parts."""
    count = np.diff(found.ptr)
    states = found.states[np.repeat(keep, count)]
    return JointStates(found.member[keep], offsets(count[keep]), states)


def _affordable(graph: FactorGraph, cluster: Ids, sizes: Ids) -> NDArray[np.bool_]:
    """(cluster,): whether the factors between clusters stay small with it."""
    keep = np.ones(len(sizes), dtype=bool)
    num_states = graph.variables.num_states
    while keep.any():
        own = np.append(keep, False)[cluster]
        new = np.where(own, graph.num_variables + cluster, np.arange(graph.num_variables))
        size = np.where(own, np.append(sizes, 0)[cluster], num_states).astype(np.float64)
        total, too_large = 0.0, np.zeros(len(sizes), dtype=bool)
        for group in graph.groups:
            scope = group.scope[:, : group.potential.num_discrete_slots]
            touched = np.flatnonzero(own[scope].any(axis=1))
            scope = np.take_along_axis(
                scope[touched], np.argsort(new[scope[touched]], axis=1), axis=1
            )
            again = np.zeros(scope.shape, dtype=bool)
            again[:, 1:] = new[scope[:, 1:]] == new[scope[:, :-1]]
            entries = np.where(again, 1.0, size[scope]).prod(axis=1)
            several = (~again).sum(axis=1) > 1
            total += float(entries.sum())
            wide = scope[several & (entries > MOST_ENTRIES)]
            if len(wide):
                largest = np.where(own[wide], size[wide], 0.0).argmax(axis=1)
                too_large[cluster[wide[np.arange(len(wide)), largest]]] = True
        if not too_large.any() and total > MOST_WORK:
            too_large = keep & (sizes == sizes[keep].max())
        if not too_large.any():
            break
        keep &= ~too_large
    return keep


def _joined(graph: FactorGraph, found: Sequence[JointStates]) -> _Clusters:
    """The clusters as variables; those with the same joint states share their tables."""
    num_states = graph.variables.num_states
    variable = np.full(graph.num_variables, KNOWN, dtype=np.int64)
    table = np.full(graph.num_variables, SAME, dtype=np.int64)
    tables: list[NDArray[np.int32]] = []
    first, size, end = [], [], 0
    for one in found:
        num_members, count = one.member.shape[1], np.diff(one.ptr)
        # Equal lists of states, of members with equally many: the tables of the first will do.
        part = np.repeat(np.arange(len(count)), num_members * (1 + count))
        items = np.empty(len(part), dtype=np.int64)
        begin = offsets(num_members * (1 + count))
        items[ranges(begin[:-1], np.full(len(count), num_members))] = num_states[
            one.member
        ].reshape(-1)
        items[ranges(begin[:-1] + num_members, num_members * count)] = one.states.reshape(-1)
        shape, _ = number_lists(part, items)
        example = first_of_each(shape)
        base = np.empty(len(example), dtype=np.int64)
        for number, at in enumerate(example.tolist()):
            base[number] = end
            tables.append(one.states[one.ptr[at] : one.ptr[at + 1]].T.reshape(-1))
            end += len(tables[-1])
        table[one.member] = base[shape][:, None] + np.arange(num_members) * count[:, None]
        first.append(one.member[:, 0])
        size.append(count)
        variable[one.member] = one.member[:, :1]
    is_other = table == SAME
    variable[is_other] = np.flatnonzero(is_other)
    kept, place = np.unique(variable, return_inverse=True)
    firsts, sizes = np.concatenate(first), np.concatenate(size)
    order = np.argsort(firsts)
    states = StateMap(place.reshape(-1).astype(np.int32), table, np.concatenate(tables))
    return _Clusters(states, firsts[order], sizes[order], kept)


def _variables(before: Variables, clusters: _Clusters) -> Variables:
    """The variables of the new graph; a cluster is named like its first member."""
    same = before.take(clusters.kept)
    distinct, which = np.unique(clusters.size, return_inverse=True)
    domain_id = same.domain_id.copy()
    at = np.searchsorted(clusters.kept, clusters.first)
    domain_id[at] = len(same.domains) + which
    domains = (*same.domains, *(categorical(int(count)) for count in distinct))
    return Variables(domains, domain_id, same.names, same.multiplicity)
