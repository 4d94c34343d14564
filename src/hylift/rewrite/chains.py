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
    sizes = []
    alike: dict[tuple[int, int, tuple[bool, ...]], list[NDArray[Any]]] = {}
    for place, (slot, holds) in enumerate(zip(potential.counted, truth, strict=True)):
        size = min(place + 2, most)
        here, there = first + place * len(group) + ids, first + (place - 1) * len(group) + ids
        of: list[NDArray[Any]] = [*([there] if place else []), group.scope[:, slot], here]
        num_before = min(place + 1, most) if place else 0
        alike.setdefault((num_before, size, tuple(holds.tolist())), []).append(np.stack(of, axis=1))
        sizes.append(size)
    groups = [
        _hard(_step(*kind), np.concatenate(scopes), group.label) for kind, scopes in alike.items()
    ]
    scope = np.stack([here, *(group.scope[:, slot] for slot in potential.others)], axis=1)
    last = replace(group, potential=Table(table[:, : sizes[-1]]), scope=scope.astype(np.int32))
    return [*groups, last], sizes


def _num_counts(table: FloatArray) -> int:
    """The counts that make a difference; from the last of them on, all are the same."""
    differs = (table[:, 1:] != table[:, :-1]).any(axis=(0, *range(2, table.ndim)))
    return 1 + int(np.max(np.flatnonzero(differs) + 1, initial=0))


def _step(num_before: int, size: int, holds: tuple[bool, ...]) -> FloatArray:
    """(count before, state, count): 0 where the count follows, else -inf; without a count before,
    that of the first slot."""
    counts = np.minimum(np.arange(max(num_before, 1))[:, None] + np.array(holds), size - 1)
    step = np.where(counts[..., None] == np.arange(size), 0.0, -np.inf)
    return step if num_before else step[0]


def _hard(step: FloatArray, scope: NDArray[Any], label: str) -> FactorGroup:
    row = np.zeros(len(scope), dtype=np.int32)
    return FactorGroup(Table(step[None]), scope.astype(np.int32), row, label=label)
