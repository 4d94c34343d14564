"""Counts of many slots as chains of running counts, which are variables of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph, FactorGroup, Names, merge_groups
from hylift.graph.domains import categorical
from hylift.graph.name_blocks import Numbered
from hylift.potentials import Table
from hylift.potentials.base import FloatArray
from hylift.potentials.counted import Counted
from hylift.rewrite.rewritten import Rewritten, StateMap

MAX_ENTRIES = 2**25
"""Most entries of all tables of the chains."""

PREFIX = "running count "
"""Of the names of running counts; no atom has it."""


def count_chains(graph: FactorGraph, *, maximise: bool) -> Rewritten | None:
    """The graph with a chain of tables in place of each count, which has the same distribution.

    N(k) = N(k-1) + 1 where slot k counts; counts from the last one on that makes a difference are
    one state.
    """
    found: list[FactorGroup] = []
    sizes: list[int] = []
    entries, longest = 0, 0
    for group in graph.groups:
        if not isinstance(group.potential, Counted):
            found.append(group)
            continue
        first = graph.num_variables + len(sizes)
        parts, own = _chain(group, group.potential, first)
        entries += sum(part.potential.flat.size for part in parts)
        if entries > MAX_ENTRIES:
            return None
        found += parts
        sizes += [size for size in own for _ in range(len(group))]
        longest = max(longest, len(own))
    if not sizes:
        return None
    distinct, which = np.unique(sizes, return_inverse=True)
    domains = [categorical(int(size)) for size in distinct]
    names = Names((Numbered(PREFIX, len(sizes)),))
    variables = graph.variables.with_more(domains, which, names)
    groups = merge_groups(found)
    chained = FactorGraph.unchecked(variables, groups, Evidence.none(), graph.log_constant)
    summary = f"{len(sizes):,} running counts, in chains of up to {longest:,}"
    return Rewritten("chains", chained, StateMap.same(graph.num_variables), summary)


def _chain(
    group: FactorGroup, potential: Counted, first: int
) -> tuple[list[FactorGroup], list[int]]:
    """The factors of a chain, and the states of its running counts; these are the variables from
    `first` on, those of all factors of the group side by side."""
    truth, table = [np.asarray(t) for t in potential.truth], potential.log_table
    if _num_counts(table[:, ::-1]) < _num_counts(table):  # count what does not hold
        truth, table = [~t for t in truth], table[:, ::-1]
    most = _num_counts(table)
    ids = np.arange(len(group))
    groups, sizes = [], []
    for place, (slot, holds) in enumerate(zip(potential.counted, truth, strict=True)):
        num_before, size = min(place + 1, most), min(place + 2, most)
        counts = np.minimum(np.arange(num_before)[:, None] + holds, size - 1)
        step = np.where(counts[..., None] == np.arange(size), 0.0, -np.inf)
        here, there = first + place * len(group) + ids, first + (place - 1) * len(group) + ids
        of: list[NDArray[Any]] = [*([there] if place else []), group.scope[:, slot], here]
        groups.append(_hard(step if place else step[0], np.stack(of, axis=1), group.label))
        sizes.append(size)
    scope = np.stack([here, *(group.scope[:, slot] for slot in potential.others)], axis=1)
    last = replace(group, potential=Table(table[:, : sizes[-1]]), scope=scope.astype(np.int32))
    return [*groups, last], sizes


def _num_counts(table: FloatArray) -> int:
    """The counts that make a difference; from the last of them on, all are the same."""
    differs = (table[:, 1:] != table[:, :-1]).any(axis=(0, *range(2, table.ndim)))
    return 1 + int(np.max(np.flatnonzero(differs) + 1, initial=0))


def _hard(step: FloatArray, scope: NDArray[Any], label: str) -> FactorGroup:
    row = np.zeros(len(scope), dtype=np.int32)
    return FactorGroup(Table(step[None]), scope.astype(np.int32), row, label=label)
