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
from hylift.numerics.kernels.minimum_degree import order_of_minimum_degree
from hylift.numerics.segments import inverse, offsets

FloatArray = NDArray[np.float64]

ORDER: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
"""Minimum degree, with pivots on the diagonal where possible."""

MOST_PRODUCTS = 3_000_000_000
"""Products of a factorisation, which cannot be interrupted: about half a second."""

SECONDS_PER_PRODUCT = 1e-9
"""Of the compiled factorisation; entries of the inverse take twice as long."""

ALWAYS_FACTORISED = 1000
"""Rows up to which no factorisation has more."""

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


def minimum_degree(matrix: Any) -> NDArray[np.int32]:
    """(row,): when it is eliminated, in an order that keeps the factors of a symmetric matrix
    sparse; only places count. Rows of very many entries come last."""
    dense = max(64, int(10 * np.sqrt(matrix.shape[0])))
    order = order_of_minimum_degree(*_places(matrix), dense)
    return inverse(order, len(order), np.int32)


def num_products(matrix: Any, step: NDArray[np.int32], most: int) -> int:
    """Products that it takes to factorise a symmetric matrix by this order; beyond `most`, a lower
    bound."""
    order = np.argsort(step).astype(np.int32)
    return int(kernels.num_products(*_places(matrix), order, step, most))


def _places(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The offsets of rows, and the columns of entries; always of these types, for which kernels are
    compiled."""
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricFactors:
    """The factors of a sparse symmetric matrix, with pivots on its diagonal where possible."""

    factors: Any  # SciPy's SuperLU

    @classmethod
    def of(cls, matrix: Any) -> SymmetricFactors | None:
        """The factors; None if the matrix is singular, or they are not `are_sparse`."""
        return cls._of_sparse(matrix) if are_sparse(matrix) else None

    @classmethod
    def _of_sparse(cls, matrix: Any) -> SymmetricFactors | None:
        try:
            return cls(splu(matrix.tocsc(), **ORDER))
        except RuntimeError:
            return None

    @classmethod
    def solution(cls, matrix: Any, right: FloatArray, most_steps: int = 500) -> FloatArray | None:
        """The solution of matrix · x = right, by factors where they are sparse, and else about, by
        conjugate gradients; None where there is none."""
        if are_sparse(matrix):
            factors = cls._of_sparse(matrix)
            return None if factors is None else factors.solve(right)
        matrix = matrix.tocsr()
        if not (matrix.diagonal() > 0).all():
            return None
        x, ended = by_conjugate_gradients(matrix, right, most_steps)
        return None if ended == INDEFINITE else x

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


def are_sparse(matrix: Any) -> bool:
    """True if the factors of a symmetric matrix are found soon."""
    if matrix.shape[0] <= ALWAYS_FACTORISED:
        return True
    matrix = matrix.tocsc()
    return num_products(matrix, minimum_degree(matrix), MOST_PRODUCTS) <= MOST_PRODUCTS


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
