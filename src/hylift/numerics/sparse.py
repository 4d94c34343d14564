"""Sparse symmetric matrices: assembled from blocks, factorised, solved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hylift.numerics.kernels import sparse as kernels
from hylift.numerics.segments import offsets

FloatArray = NDArray[np.float64]

INDEFINITE = -2
"""Result of conjugate gradients that find a direction without positive curvature."""


def connected(size: int, pairs: NDArray[Any]) -> NDArray[np.int32]:
    """(node,): the connected part that it is in, from 0; pairs: (pair, 2), linked nodes."""
    # Rows put in order here: SciPy takes longer for that where there are few.
    order = np.argsort(pairs[:, 0], kind="stable")
    start = offsets(np.bincount(pairs[:, 0], minlength=size))
    links = sp.csr_array((np.ones(len(pairs)), pairs[order, 1], start), (size, size))
    return np.asarray(connected_components(links, directed=False)[1])


def connected_by(size: int, scopes: Iterable[NDArray[np.integer]]) -> NDArray[np.int32]:
    """(node,): the connected part that it is in; scopes (row, slot) link the nodes of a row."""
    ends = [scope[:, [0, slot]] for scope in scopes for slot in range(1, scope.shape[1])]
    return connected(size, np.concatenate([np.zeros((0, 2), dtype=np.int32), *ends]))


def sum_of_blocks(blocks: Iterable[tuple[NDArray[Any], FloatArray]], size: int) -> sp.csr_array:
    """The sum of blocks as a (size, size) matrix: places (block, n), values (block, n, n)."""
    rows, columns, values = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0)]
    for places, block in blocks:
        rows.append(np.repeat(places, places.shape[1], axis=1).ravel())
        columns.append(np.tile(places, (1, places.shape[1])).ravel())
        values.append(block.ravel())
    at = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(values), at), shape=(size, size))


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricFactors:
    """The factors of a sparse symmetric matrix, with pivots on its diagonal where possible."""

    factors: Any  # SciPy's SuperLU

    @classmethod
    def of(cls, matrix: Any) -> SymmetricFactors | None:
        """The factors; None if the matrix is singular."""
        try:
            found = splu(
                matrix.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            return None
        return cls(found)

    @property
    def step(self) -> NDArray[np.int32]:
        """(row,): when it is eliminated, in an order that keeps the factors sparse."""
        return np.asarray(self.factors.perm_c)

    @property
    def pivots(self) -> FloatArray:
        """(row,): what elimination leaves of the diagonal."""
        return np.asarray(self.factors.U.diagonal()[self.step])

    @property
    def is_positive_definite(self) -> bool:
        on_diagonal = np.array_equal(self.factors.perm_r, self.factors.perm_c)
        return bool(on_diagonal and (self.factors.U.diagonal() > 0).all())

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution of matrix · x = right, (row,) or (row, column)."""
        return np.asarray(self.factors.solve(right))


def by_conjugate_gradients(
    matrix: sp.csr_array, right: FloatArray, most_steps: int
) -> tuple[FloatArray, int]:
    """An approximate solution of matrix · x = right, and the number of steps; -1 if it did not
    converge, `INDEFINITE` if the matrix is not positive definite. Its diagonal is positive."""
    x, _, ended = kernels.conjugate_gradients(
        matrix.indptr, matrix.indices, matrix.data, matrix.diagonal(), right,
        np.zeros(len(right)), 1e-12, most_steps,
    )  # fmt: skip
    return x, ended
