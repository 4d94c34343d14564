"""Neighbourhoods too large for a chain of flips, which a search may have to leave as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.inference.search.kernels.arrays import LONGEST, Terms

MOST_BLOCKS = 2

MOST_VARIABLES = 20_000
"""A larger graph has no blocks: climbing again from each would cost too much."""


def large_blocks(terms: Terms) -> list[NDArray[np.int64]]:
    """Discrete variables that share terms with one of them, for a few that share many.

    Each block begins with the variable of most terms that no block before it has.
    """
    record = terms.variable
    free = (record["num_states"] > 1) & (record["movable"] > 0)
    if not free.any() or len(record) > MOST_VARIABLES:
        return []
    degree = np.where(free, record["last"] - record["first"], -1)
    blocks: list[NDArray[np.int64]] = []
    while len(blocks) < MOST_BLOCKS:
        hub = record[int(np.argmax(degree))]
        inside = terms.term[terms.incidence["term"][hub["first"] : hub["last"]]]
        sizes = inside["last"] - inside["first"]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(inside["first"], sizes) + within
        block = np.unique(terms.entry["variable"][entries]).astype(np.int64)
        block = block[free[block]]
        if len(block) <= LONGEST or degree.max() < 0:
            break
        blocks.append(block)
        degree[block] = -1
    return blocks
