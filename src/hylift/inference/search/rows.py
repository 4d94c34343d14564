"""The parameters of terms, those of one shape in one array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Distinct xᵀAx + bᵀx + c by joint state, and the terms that have them; tables have no x."""

    terms: NDArray[np.int64]
    row: NDArray[np.int64]  # (term,)
    A: FloatArray  # (row, joint state, real, real)
    b: FloatArray  # (row, joint state, real)
    c: FloatArray  # (row, joint state)

    @property
    def num_reals(self) -> int:
        return self.b.shape[2]

    def reals(self, term: NDArray[np.void], entry: NDArray[np.void]) -> NDArray[np.int64]:
        """(term, real): the variables."""
        at = term["middle"][self.terms, None] + np.arange(self.num_reals)
        return entry["variable"][at].astype(np.int64)


def rows_by_shape(term: NDArray[np.void], theta: FloatArray) -> Iterator[Rows]:
    """All terms of a layout, by their numbers of reals and joint states."""
    sizes = np.stack([term["last"] - term["middle"], term["num_joint"]])
    span = sizes.max(axis=1, initial=0) + 1
    shapes, shape = np.unique(np.ravel_multi_index(tuple(sizes), span), return_inverse=True)
    for number, key in enumerate(shapes):
        num_reals, num_joint = (int(size) for size in np.unravel_index(key, span))
        some = np.flatnonzero(shape.reshape(-1) == number)
        base, row = np.unique(term["base"][some], return_inverse=True)
        starts = np.cumsum([0, num_joint * num_reals**2, num_joint * num_reals, num_joint])
        A, b, c = (
            theta[base[:, None] + np.arange(first, last)]
            for first, last in pairwise(starts.tolist())
        )
        shaped = len(base), num_joint, num_reals
        yield Rows(some, row.reshape(-1), A.reshape(*shaped, num_reals), b.reshape(shaped), c)
