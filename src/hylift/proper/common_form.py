"""The quadratic form below those of all joint states, and how far it is positive definite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hylift.numerics.sparse import SymmetricFactors, connected_by, sum_of_blocks
from hylift.potentials.base import FloatArray
from hylift.proper.quadratics import IntArray, OpenFactors

LEAST = 1e-11
"""Shares of the diagonal below this count as zero."""

MAX_DENSE = 600
"""Reals of a component up to which eigenvalues are computed densely."""

MAX_DENSE_WORK = 2_000_000_000
"""Total of the cubed sizes of components whose eigenvalues are computed densely."""

POOR = 0.01
"""Shares below this are worth more work: bounds grow with their inverse."""

POWER_STEPS = 30


@dataclass(frozen=True, slots=True, eq=False)
class CommonForm:
    """The sum of the quadratics' lower bounds, J, as one matrix over all variables.

    On a lifted graph J is the form of reals that are equal within each class, and `couplings` sums
    the absolute couplings of each member.
    """

    matrix: sp.csr_matrix  # (variable, variable): J, summed over the members of a class
    diagonal: FloatArray  # (variable,): of one member
    size: FloatArray  # (variable,): sum of the absolute summands of the diagonal
    couplings: sp.csr_matrix  # (variable, variable): |J_ij|, summed over the members of a class
    multiplicity: FloatArray  # (variable,)

    @classmethod
    def of(cls, quadratics: Sequence[OpenFactors], multiplicity: FloatArray) -> CommonForm:
        count = len(multiplicity)
        diagonal, size = np.zeros(count), np.zeros(count)
        blocks = []
        for some in quadratics:
            lower = some.lower[some.row]
            own = np.abs(np.diagonal(some.form.A, axis1=-2, axis2=-1))
            diagonal += some.sum_by_real(np.diagonal(lower, axis1=-2, axis2=-1), count)
            size += some.sum_by_real(2 * own.max(axis=1)[some.row, : some.num_open], count)
            off = lower * (1 - np.eye(some.num_open))
            if off.any():
                blocks.append((some.open, some.multiplicity[:, None, None] * off))
        off = sum_of_blocks(blocks, count)
        couplings = abs(off)
        if (multiplicity != 1).any():
            couplings = sum_of_blocks([(open_, np.abs(each)) for open_, each in blocks], count)
        matrix = (off + sp.diags_array(diagonal)).tocsr()
        return cls(matrix, diagonal / multiplicity, size / multiplicity, couplings, multiplicity)

    def shares(self, label: IntArray, is_open: NDArray[np.bool_]) -> FloatArray:
        """(variable,): α with J ⪰ α D on its component, D the diagonal of J; NaN without one.

        First by weights under which the diagonal outweighs the couplings (a matrix with such
        weights is positive definite), then by eigenvalues, then by sparse factorisation.
        """
        num_components = int(label.max(initial=-1)) + 1
        positive = np.ones(num_components, dtype=np.bool_)
        positive[label[is_open & ~(self.diagonal > LEAST * self.size)]] = False
        used = is_open & positive[label]
        share = np.full(num_components, -np.inf)
        ids = np.flatnonzero(used)
        if len(ids):
            self._by_weights(label, ids, share)
            if (self.multiplicity == 1).all():
                self._by_eigenvalues(label, ids[share[label[ids]] <= POOR], share)
        found = np.where(used, share[label], np.nan)
        return np.where(found > LEAST, found, np.nan)

    def _by_weights(self, label: IntArray, ids: IntArray, share: FloatArray) -> None:
        """Raise `share` to 1 - max (R w) / w, R the couplings relative to the diagonal."""
        scaling = sp.diags_array(1 / np.sqrt(self.diagonal[ids] * self.multiplicity[ids]))
        relative = (scaling @ self.couplings[ids][:, ids] @ scaling).tocsr()
        of = label[ids]

        def note(weight: FloatArray) -> None:
            worst = np.full(len(share), -np.inf)
            np.maximum.at(worst, of, (relative @ weight) / weight)
            np.maximum(share, 1 - worst, out=share, where=worst >= 0)

        # A class of n members with equal weights has √n times their weight.
        weight = np.sqrt(self.multiplicity[ids])
        for _ in range(POWER_STEPS):
            note(weight)
            if (share[of] > POOR).all():
                return
            weight = weight + relative @ weight
            weight = np.maximum(weight / weight.max(), 1e-200)
        left = np.flatnonzero(share[of] <= POOR)
        if not len(left):
            return
        some = sp.eye_array(len(left)) - relative[left][:, left]
        solved = SymmetricFactors.solution(some, np.ones(len(left)))
        if solved is None:
            return
        wrong = np.zeros(len(share), dtype=np.bool_)
        wrong[of[left[~(solved > 0) | ~np.isfinite(solved)]]] = True
        weight[left] = np.where(wrong[of[left]], weight[left], solved)
        note(weight)

    def _by_eigenvalues(self, label: IntArray, ids: IntArray, share: FloatArray) -> None:
        """Raise `share` to the least eigenvalue of the scaled matrix, component by component."""
        order = ids[np.argsort(label[ids], kind="stable")]
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        work = 0
        for members in np.split(order, starts[1:]) if len(order) else []:
            number, size = label[members[0]], len(members)
            scaling = sp.diags_array(1 / np.sqrt(self.diagonal[members]))
            scaled = scaling @ self.matrix[members][:, members] @ scaling  # unit diagonal
            work += size**3
            if size <= MAX_DENSE and work <= MAX_DENSE_WORK:
                least = float(np.linalg.eigvalsh(scaled.toarray())[0])
                share[number] = max(share[number], least - 1e-14 * size)
            elif size > MAX_DENSE and share[number] <= LEAST:
                share[number] = _shift_that_stays_positive(scaled)


def components_of(quadratics: Sequence[OpenFactors], num_variables: int) -> IntArray:
    """(variable,): its component; open reals that share a factor are in one."""
    return connected_by(num_variables, (some.open for some in quadratics)).astype(np.int64)


def _shift_that_stays_positive(scaled: sp.csr_matrix) -> float:
    """The largest power of ten s with S - s I positive definite; -inf if there is none."""
    identity = sp.eye_array(scaled.shape[0])
    low, high = -11, 0  # exponents: one that is too small to tell, one that is too large
    while high - low > 1:
        # The smallest first: where it fails all do.
        middle = low + 1 if low == -11 else (low + high) // 2
        factors = SymmetricFactors.of(scaled - 10.0**middle * identity)
        if factors is not None and factors.is_positive_definite:
            low = middle
        elif low == -11:
            return -np.inf
        else:
            high = middle
    return 10.0**low
