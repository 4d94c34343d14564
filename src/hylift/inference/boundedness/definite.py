"""How far the quadratic form that all states have in common holds the reals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hylift.inference.boundedness.terms import Terms
from hylift.potentials.base import FloatArray

LEAST = 1e-11
"""Shares of the diagonal below this are not told from zero."""

MAX_DENSE = 600
"""Reals of a component whose eigenvalues are computed densely."""

MAX_DENSE_WORK = 2_000_000_000
"""Cubes of the sizes of components, in all, that are spent on dense eigenvalues."""

POOR = 0.01
"""Shares below this are worth more work: bounds grow with their inverse."""

POWER_STEPS = 30


@dataclass(frozen=True, slots=True, eq=False)
class CommonForm:
    """The sum of the terms' lower bounds, J, as one matrix over all variables.

    On a lifted graph J is the form of reals that are equal within each class, and `couplings` add
    up the sizes of the couplings of each member.
    """

    matrix: sp.csr_matrix  # (variable, variable): J, summed over the members of a class
    diagonal: FloatArray  # (variable,): of one member
    size: FloatArray  # (variable,): sum of the sizes of what is added up in the diagonal
    couplings: sp.csr_matrix  # (variable, variable): |J_ij|, summed over the members of a class
    multiplicity: FloatArray  # (variable,)

    @classmethod
    def of(cls, terms: Sequence[Terms], multiplicity: FloatArray) -> CommonForm:
        size = len(multiplicity)
        is_ground = bool((multiplicity == 1).all())
        at: list[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]] = []
        diagonal, largest = np.zeros(size), np.zeros(size)
        for term in terms:
            each = np.abs(np.diagonal(term.precision, axis1=-2, axis2=-1)).max(axis=1)
            for i in range(term.num_open):
                for j in range(term.num_open):
                    value = term.multiplicity * term.lower[term.row, i, j]
                    if i == j:
                        diagonal += np.bincount(term.real[:, i], value, minlength=size)
                        weight = term.multiplicity * each[term.row, i]
                        largest += np.bincount(term.real[:, i], weight, minlength=size)
                    elif value.any():
                        at.append((term.real[:, i], term.real[:, j], value))
        off = _sparse(at, size)
        if is_ground:
            couplings = abs(off)
        else:
            couplings = _sparse([(row, column, np.abs(value)) for row, column, value in at], size)
        matrix = (off + sp.diags_array(diagonal)).tocsr()
        return cls(matrix, diagonal / multiplicity, largest / multiplicity, couplings, multiplicity)


def components_of(terms: Sequence[Terms], num_variables: int) -> NDArray[np.int64]:
    """(variable,): its component; open reals that share a term are in one."""
    links = [
        (term.real[:, 0], term.real[:, slot], np.ones(len(term)))
        for term in terms
        for slot in range(1, term.num_open)
    ]
    _, label = connected_components(_sparse(links, num_variables), directed=False)
    return np.asarray(label, dtype=np.int64)


def margins(form: CommonForm, label: NDArray[np.int64], is_open: NDArray[np.bool_]) -> FloatArray:
    """(variable,): a share α of its diagonal D with J ⪰ α D on its component; NaN without one.

    First by weights under which the diagonal outweighs the couplings (a matrix with such weights
    has no negative eigenvalue), then by eigenvalues, then by sparse factorisation.
    """
    num_components = int(label.max(initial=-1)) + 1
    positive = np.ones(num_components, dtype=np.bool_)
    positive[label[is_open & ~(form.diagonal > LEAST * form.size)]] = False
    used = is_open & positive[label]
    share = np.full(num_components, -np.inf)
    ids = np.flatnonzero(used)
    if len(ids):
        _by_weights(form, label, ids, share)
        if (form.multiplicity == 1).all():
            _by_eigenvalues(form, label, ids[share[label[ids]] <= POOR], share)
    found = np.where(used, share[label], np.nan)
    return np.where(found > LEAST, found, np.nan)


def _by_weights(
    form: CommonForm, label: NDArray[np.int64], ids: NDArray[np.int64], share: FloatArray
) -> None:
    """Raises `share` to 1 - max (R w) / w, R the couplings relative to the diagonal."""
    scale = 1 / np.sqrt(form.diagonal[ids] * form.multiplicity[ids])
    scaling = sp.diags_array(scale)
    relative = (scaling @ form.couplings[ids][:, ids] @ scaling).tocsr()
    of = label[ids]

    def note(weight: FloatArray) -> None:
        worst = np.full(len(share), -np.inf)
        np.maximum.at(worst, of, (relative @ weight) / weight)
        np.maximum(share, 1 - worst, out=share, where=worst >= 0)

    # A class of n members with equal weights has √n times their weight.
    weight = np.sqrt(form.multiplicity[ids])
    for _ in range(POWER_STEPS):
        note(weight)
        if (share[of] > POOR).all():
            return
        weight = weight + relative @ weight
        weight /= weight.max()
        weight = np.maximum(weight, 1e-200)
    left = np.flatnonzero(share[of] <= POOR)
    if not len(left):
        return
    some = (sp.eye_array(len(left)) - relative[left][:, left]).tocsc()
    try:
        solved = splu(some, permc_spec="MMD_AT_PLUS_A").solve(np.ones(len(left)))
    except RuntimeError:  # singular
        return
    wrong = np.zeros(len(share), dtype=np.bool_)
    wrong[of[left[~(solved > 0) | ~np.isfinite(solved)]]] = True
    better = weight.copy()
    better[left] = np.where(wrong[of[left]], weight[left], solved)
    note(better)


def _by_eigenvalues(
    form: CommonForm, label: NDArray[np.int64], ids: NDArray[np.int64], share: FloatArray
) -> None:
    """Raises `share` to the least eigenvalue of the scaled matrix, component by component."""
    order = ids[np.argsort(label[ids], kind="stable")]
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    work = 0
    for members in np.split(order, starts[1:]) if len(order) else []:
        number, size = label[members[0]], len(members)
        work += size**3
        if size <= MAX_DENSE and work <= MAX_DENSE_WORK:
            least = float(np.linalg.eigvalsh(scaled_block(form, members).toarray())[0])
            share[number] = max(share[number], least - 1e-14 * size)
        elif size > MAX_DENSE and share[number] <= LEAST:
            share[number] = _shift_that_stays_positive(scaled_block(form, members))


def scaled_block(form: CommonForm, members: NDArray[np.int64]) -> sp.csr_matrix:
    """J on some reals, scaled to a unit diagonal."""
    scaling = sp.diags_array(1 / np.sqrt(form.diagonal[members]))
    return (scaling @ form.matrix[members][:, members] @ scaling).tocsr()


def _shift_that_stays_positive(scaled: sp.csr_matrix) -> float:
    """A share s with S - s I positive definite, among powers of ten; -inf if there is none."""
    low, high = -11, 0  # exponents: one that is too small to tell, one that is too large
    while high - low > 1:
        # The smallest first: where it fails all do.
        middle = low + 1 if low == -11 else (low + high) // 2
        if is_positive_definite(scaled - 10.0**middle * sp.eye_array(scaled.shape[0])):
            low = middle
        elif low == -11:
            return -np.inf
        else:
            high = middle
    return 10.0**low


def is_positive_definite(matrix: sp.csr_matrix) -> bool:
    """Whether elimination along the diagonal meets positive pivots only."""
    try:
        factors = splu(
            matrix.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # singular
        return False
    on_diagonal = np.array_equal(factors.perm_r, factors.perm_c)
    return bool(on_diagonal and (factors.U.diagonal() > 0).all())


def _sparse(
    at: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]], size: int
) -> sp.csr_matrix:
    if not at:
        return sp.csr_matrix((size, size))
    row, column, value = (np.concatenate(parts) for parts in zip(*at, strict=True))
    return sp.coo_matrix((value, (row, column)), shape=(size, size)).tocsr()
