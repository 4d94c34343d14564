"""Matrices that lie below others: X ⪯ Y where Y - X has no negative eigenvalue."""

from __future__ import annotations

import numpy as np

from hylift.potentials.base import FloatArray

ROUNDING = 1e-13
"""Eigenvalues this small, relative to the largest entries, count as zero."""


def common_lower(matrices: FloatArray) -> FloatArray:
    """(row, slot, slot): a matrix below all those of a row, (row, state, slot, slot).

    That is the least of them where one is below all others, as with a gate that switches a square
    on. Otherwise they are met one after the other; a meet of diagonal matrices is their minimum.
    """
    num_rows, num_states, size, _ = matrices.shape
    if num_states == 1 or not size:
        return matrices[:, 0]
    if size == 1:
        return matrices.min(axis=1)
    traces = np.trace(matrices, axis1=-2, axis2=-1)
    rows = np.arange(num_rows)
    least = matrices[rows, np.argmin(traces, axis=1)]
    above = np.linalg.eigvalsh(matrices - least[:, None])[..., 0].min(axis=1)
    scale = np.abs(matrices).max(axis=(1, 2, 3))
    met = np.flatnonzero(above < -ROUNDING * scale)
    if len(met):
        least[met] = _meet_or_multiple(matrices[met], scale[met])
    return least


def _meet_or_multiple(matrices: FloatArray, scale: FloatArray) -> FloatArray:
    """The meet, unless it is indefinite where all matrices are not: then a multiple of 1."""
    found = _meet_all(matrices)
    smallest = np.linalg.eigvalsh(matrices)[..., 0].min(axis=1)
    lost = (np.linalg.eigvalsh(found)[..., 0] < -ROUNDING * scale) & (smallest >= -ROUNDING * scale)
    multiple = np.maximum(smallest, 0.0)[:, None, None] * np.eye(matrices.shape[-1])
    return np.where(lost[:, None, None], multiple, found)


def uncoupled(matrices: FloatArray) -> FloatArray:
    """(row, slot, slot): diagonal matrices below the given ones, which stay where they are not
    positive."""
    if matrices.shape[-1] < 3:
        return matrices
    smallest = np.linalg.eigvalsh(matrices)[..., 0]
    scale = np.abs(matrices).max(axis=(-2, -1), initial=0.0)
    multiple = np.maximum(smallest, 0.0)[:, None, None] * np.eye(matrices.shape[-1])
    return np.where((smallest >= -ROUNDING * scale)[:, None, None], multiple, matrices)


def _meet_all(matrices: FloatArray) -> FloatArray:
    found = matrices[:, 0]
    for state in range(1, matrices.shape[1]):
        # X - (X - Y)₊ is below X, and below Y by (X - Y)₋.
        values, vectors = np.linalg.eigh(found - matrices[:, state])
        positive = np.maximum(values, 0.0)[..., None, :]
        found = found - (vectors * positive) @ np.swapaxes(vectors, -1, -2)
    return 0.5 * (found + np.swapaxes(found, -1, -2))
