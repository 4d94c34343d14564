"""What the kernels of the walk read, and what they change, beside a search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.inference.search.kernels.arrays import Terms

SATISFIED, UNSATISFIED, BROKEN = 0, 1, 2
"""What a factor is: at its best, below it, or impossible."""

CHANGED, WORK, MOVES = 2, 3, 4
"""Places in `sizes`, after those of the two lists."""

NOW, BEST = 0, 1
"""Rows of `worth`."""


class Factors(NamedTuple):
    """The factors of a graph as its author wrote them, and when they are satisfied."""

    whole: Terms
    enough: NDArray[np.float64]  # (factor,): log-value from which on it is satisfied
    first: NDArray[np.int64]  # (factor + 1,): its first entry in `member`
    member: NDArray[np.int32]  # variables that may move


class Walk(NamedTuple):
    """Where a walk is among the factors, and the best assignment it came by."""

    status: NDArray[np.uint8]  # (factor,)
    place: NDArray[np.int32]  # (factor,): in the list of its status
    lists: NDArray[np.int32]  # (2, factor): unsatisfied factors, broken ones
    sizes: NDArray[np.int64]  # of these lists and of `changed`; work and moves done
    best: NDArray[np.float64]  # (variable,)
    changed: NDArray[np.int32]  # variables that moved since then
    is_changed: NDArray[np.uint8]  # (variable,)
    worth: NDArray[np.float64]  # (now or best, 2): multiplicity of what is broken, sum of the rest
    random: NDArray[np.uint64]  # (1,): state of the generator

    @classmethod
    def empty(cls, factors: Factors, seed: np.uint64) -> Walk:
        """Room for a walk; `set_out` fills it."""
        num_factors, num_variables = len(factors.enough), len(factors.whole.variable)
        return cls(
            np.zeros(num_factors, dtype=np.uint8),
            np.zeros(num_factors, dtype=np.int32),
            np.zeros((2, num_factors), dtype=np.int32),
            np.zeros(5, dtype=np.int64),
            np.zeros(num_variables),
            np.zeros(num_variables, dtype=np.int32),
            np.zeros(num_variables, dtype=np.uint8),
            np.zeros((2, 2)),
            np.full(1, seed, dtype=np.uint64),
        )
