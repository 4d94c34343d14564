"""Parts of a graph that nothing connects."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from hylift.graph import FactorGraph


def parts_of(graph: FactorGraph) -> tuple[NDArray[np.int32], int]:
    """(variable,): the connected part of the graph that it is in; and how many there are."""
    size = graph.num_variables
    ends = [group.scope[:, [0, slot]] for group in graph.groups for slot in range(1, group.arity)]
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int32), *ends])
    links = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    count, part = connected_components(links, directed=False)
    return part.astype(np.int32), int(count)
