"""Gauss rules, and how finely scopes with reals are integrated."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

Accuracy = Literal["search", "final", "check"]
"""For a search, for its last steps and result, and for a look at how far that is to be trusted."""

NODES: dict[Accuracy, tuple[int, ...]] = {
    "search": (1, 12, 5, 4, 3),
    "final": (1, 12, 12, 8, 5),
    "check": (1, 24, 24, 16, 9),
}
"""Nodes by number of real slots; the last entry is for that many and more."""


def nodes_per_slot(num_reals: int, accuracy: Accuracy = "search") -> int:
    """The number of Gauss nodes for each real slot of a scope with so many of them.

    The grid grows with the power of their number, so a search uses fewer nodes where there are
    several.
    """
    nodes = NODES[accuracy]
    return nodes[min(num_reals, len(nodes) - 1)]


@lru_cache
def hermite_rule(num_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (node,) of the Gauss rule for the standard normal; read-only."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    weights = weights / weights.sum()
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
