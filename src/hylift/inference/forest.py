"""Whether a graph has no loops, so that message passing is exact in it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from hylift.graph import FactorGraph

MOST_EDGES = 20_000_000
"""Slots of a graph up to which it is looked whether it is a forest."""


def is_forest(graph: FactorGraph) -> bool:
    """Whether no chain of factors leads from a variable back to itself."""
    if (graph.variables.multiplicity != 1).any():
        return False
    if any(g.arity > 1 and (g.multiplicity != 1).any() for g in graph.groups):
        return False
    num_slots = sum(group.scope.size for group in graph.groups)
    num_nodes = graph.num_variables + graph.num_factors
    if num_slots >= num_nodes or num_slots > MOST_EDGES or not num_slots:
        return num_slots == 0
    ends, factor = [], graph.num_variables
    for group in graph.groups:
        ids = factor + np.repeat(np.arange(len(group)), group.arity)
        ends.append(np.stack([group.scope.ravel(), ids]))
        factor += len(group)
    row, column = np.concatenate(ends, axis=1)
    links = sp.csr_array((np.ones(len(row)), (row, column)), shape=(num_nodes, num_nodes))
    count, _ = csgraph.connected_components(links, directed=False)
    return num_slots == num_nodes - count
