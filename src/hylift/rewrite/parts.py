"""Connected parts of a graph, and those that look alike, which are solved once.

Parts look alike if they are equal after their variables are numbered in order: by domain, by the
factors that they are in, then by id. That is a proof, where equal colors are none: color passing
cannot tell two triangles from a hexagon. Parts whose numbering happens to differ are solved apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.numerics.segments import counts_up, number_lists, number_rows, offsets
from hylift.numerics.sparse import connected_by
from hylift.rewrite.counting.twins import number_kinds
from hylift.rewrite.rewritten import SAME, Entries, Rewritten, WayBack
from hylift.words import counted, option, worded

Ids = NDArray[np.int64]

WORTHWHILE = 0.8
"""Share of the parts that are different, up to which it is worth solving them alone."""


def parts_of(graph: FactorGraph) -> tuple[NDArray[np.int32], int]:
    """(variable,): the connected part of the graph that it is in; and how many there are."""
    part = connected_by(graph.num_variables, [group.scope for group in graph.groups])
    return part, int(part.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Copies(WayBack):
    """Each variable as a copy of one in a graph of different parts."""

    variable: NDArray[np.int32]  # (variable,)
    table: Ids  # (variable,): SAME
    part: NDArray[np.int32]  # (variable,): copies in other parts are independent

    @property
    def number(self) -> Ids:
        """(part,): its number among the copies of one original, from 0."""
        least = np.full(int(self.part.max(initial=-1)) + 1, len(self.part))
        np.minimum.at(least, self.part, self.variable)
        _, original = np.unique(least, return_inverse=True)
        found = np.empty(len(least), dtype=np.int64)
        found[np.argsort(original, kind="stable")] = counts_up(np.bincount(original))
        return found

    def entries(self, ids: NDArray[Any], size: NDArray[Any]) -> Entries:
        nothing = np.zeros(0, dtype=np.int64)  # all have the marginals of their originals
        return Entries(nothing, nothing, nothing, np.zeros(0))

    def values(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(values[..., self.variable], dtype=np.float64)

    def in_other(
        self, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]
    ) -> tuple[tuple[FactorGroup, ...], float]:
        for group in groups:
            if group.arity > 1 and (self.part[group.scope] != self.part[group.scope[:, :1]]).any():
                raise UnsupportedError(
                    f"{group.named()} is about variables that the model leaves unconnected",
                    worded("infer with ", option("rewrite", "none")),
                )
        return tuple(replace(g, scope=self.variable[g.scope]) for g in groups if len(g)), 0.0


def alike_parts(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph of the parts that differ from each other; None where hardly any look alike.

    graph: ground, without evidence and without constant factors.
    """
    if not graph.is_ground:
        return None
    part, num_parts = parts_of(graph)
    if num_parts < 2:
        return None
    kinds = _kinds(graph)
    order = _in_order(graph, part, kinds)
    alike, example = _alike(graph, part, num_parts, kinds, order)
    if len(example) > WORTHWHILE * num_parts:
        return None
    start = offsets(np.bincount(part, minlength=num_parts))
    is_example = np.zeros(num_parts, dtype=bool)
    is_example[example] = True
    is_kept = is_example[part]
    kept, new_id = np.flatnonzero(is_kept), np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
    variable = np.empty(graph.num_variables, dtype=np.int32)
    size = np.diff(start)
    variable[order] = new_id[order[np.repeat(start[example[alike]], size) + counts_up(size)]]
    back = Copies(variable, np.full(graph.num_variables, SAME, dtype=np.int64), part)
    summary = f"{counted(num_parts, 'part')}, of which {len(example):,} differ"
    copies = np.bincount(alike)[alike[part[kept]]].astype(np.int64)
    return Rewritten("parts", some_parts(graph, is_kept), back, summary, copies=copies)


def parts_by_copies(graph: FactorGraph, copies: Ids) -> list[tuple[float, FactorGraph]]:
    """Graphs of some of the parts, and weights: log Z of all copies is the weighted sum of theirs.

    copies: (variable,): of its part. A graph for each number of copies, or for each bit of it.
    """
    distinct = np.unique(copies)
    if len(distinct) == 1:
        return [(float(distinct[0]), graph)]
    num_bits = int(distinct[-1]).bit_length()
    if len(distinct) <= num_bits:
        chosen = [(float(number), copies == number) for number in distinct]
    else:
        chosen = [(float(1 << bit), (copies >> bit & 1) > 0) for bit in range(num_bits)]
    return [(weight, some_parts(graph, some)) for weight, some in chosen if some.any()]


def some_parts(graph: FactorGraph, is_kept: NDArray[np.bool_]) -> FactorGraph:
    """The graph of some of its parts, by their variables (variable,)."""
    groups = (group.take(np.flatnonzero(is_kept[group.scope[:, 0]])) for group in graph.groups)
    return graph.of_some(is_kept, filter(len, groups), 0.0)


def _kinds(graph: FactorGraph) -> list[NDArray[np.int32]]:
    """Per group (factor,): equal for factors of equal potentials and multiplicities."""
    found, end = [], np.int32(0)
    for group in graph.groups:
        kind, example = number_kinds(group)
        found.append(kind + end)
        end += np.int32(len(example))
    return found


def _in_order(graph: FactorGraph, part: NDArray[np.int32], kinds: list[NDArray[np.int32]]) -> Ids:
    """Variables by part, and within it by domain, by the factors that they are in, then by id."""
    widest = max(group.arity for group in graph.groups) if graph.groups else 0
    variable = [group.scope.T.reshape(-1) for group in graph.groups]
    place = [
        (kind[None] * np.int64(widest) + np.arange(group.arity)[:, None]).reshape(-1)
        for group, kind in zip(graph.groups, kinds, strict=True)
    ]
    color = np.zeros(graph.num_variables, dtype=np.int64)
    if variable:
        owner, item = np.concatenate(variable).astype(np.int64), np.concatenate(place)
        item = number_rows(item)[0]
        sort = np.argsort(owner * (int(item.max()) + 1) + item, kind="stable")
        found, _ = number_lists(owner[sort], item[sort])
        color[: len(found)] = found
    domain = graph.variables.domain_number.astype(np.int64)
    key = (part * np.int64(domain.max() + 1) + domain) * (color.max() + 1) + color
    return np.argsort(key, kind="stable")


def _alike(
    graph: FactorGraph,
    part: NDArray[np.int32],
    num_parts: int,
    kinds: list[NDArray[np.int32]],
    order: Ids,
) -> tuple[Ids, Ids]:
    """(part,): numbers of parts that are equal in this order; and (number,): a part that has it."""
    size = np.bincount(part, minlength=num_parts)
    rank = np.empty(graph.num_variables, dtype=np.int64)
    rank[order] = counts_up(size)
    domain = graph.variables.domain_number.astype(np.int64)
    of_variables, _ = number_lists(part[order].astype(np.int64), domain[order])
    num_factors, of_factors = np.zeros((2, num_parts), dtype=np.int64)
    owners, items, end = [], [], 0
    for group, kind in zip(graph.groups, kinds, strict=True):
        item, example = number_rows(kind.astype(np.int64), *rank[group.scope].T)
        owners.append(part[group.scope[:, 0]].astype(np.int64))
        items.append(item + end)
        end += len(example)
    if owners:
        owner, item = np.concatenate(owners), np.concatenate(items)
        num_factors = np.bincount(owner, minlength=num_parts)
        sort = np.argsort(owner * end + item, kind="stable")
        found, _ = number_lists(owner[sort], item[sort])
        of_factors[: len(found)] = found
    # A part without factors has no list: its number of factors tells it apart.
    return number_rows(of_variables, num_factors, of_factors)
