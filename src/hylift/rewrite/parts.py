"""Connected parts of a graph, and its loops."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from hylift.graph import FactorGraph

MOST_SLOTS = 20_000_000
"""Slots of a graph up to which it is checked for loops."""


def parts_of(graph: FactorGraph) -> tuple[NDArray[np.int32], int]:
    """(variable,): the connected part of the graph that it is in; and how many there are."""
    size = graph.num_variables
    ends = [group.scope[:, [0, slot]] for group in graph.groups for slot in range(1, group.arity)]
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int32), *ends])
    links = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    count, part = connected_components(links, directed=False)
    return part.astype(np.int32), int(count)


def is_forest(graph: FactorGraph) -> bool:
    """True if a graph has no loops, so that message passing is exact in it."""
    if (graph.variables.multiplicity != 1).any():
        return False
    if any(g.arity > 1 and (g.multiplicity != 1).any() for g in graph.groups):
        return False
    num_slots = sum(group.scope.size for group in graph.groups)
    if num_slots >= graph.num_variables + graph.num_factors or num_slots > MOST_SLOTS:
        return num_slots == 0
    # A forest of variables and factors has as many edges as nodes, less one for each of its trees.
    num_factors = sum(len(group) for group in graph.groups if group.arity)
    return num_slots == graph.num_variables + num_factors - parts_of(graph)[1]
