"""How finely scopes with reals are integrated."""

from __future__ import annotations

SEARCHING = (1, 12, 5, 4, 3)
FINAL = (1, 12, 12, 8, 5)
"""Nodes by number of real slots; the last entry is for that many and more."""


def nodes_per_slot(num_reals: int, *, final: bool = False) -> int:
    """The number of Gauss nodes for each real slot of a scope with so many of them.

    The grid grows with the power of their number, so a search uses fewer nodes where there are
    several; `final` is for the value that is reported.
    """
    nodes = FINAL if final else SEARCHING
    return nodes[min(num_reals, len(nodes) - 1)]
