"""When a factor is satisfied: at the best value it could have by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.search.kernels.arrays import FLAT, Terms
from hylift.inference.search.layout import flat_terms
from hylift.inference.search.rows import Rows, rows_by_shape
from hylift.inference.walk.kernels.arrays import Factors
from hylift.potentials import ConditionalQuadratic

FloatArray = NDArray[np.float64]

NEAR = 1e-9
"""How far below its best a factor with reals counts as at its best, beside rounding."""

EPS = float(np.finfo(float).eps)


def factors_of(graph: FactorGraph, terms: Terms) -> Factors:
    """The tables and quadratics of a graph without evidence; `terms` are what they are made of.

    The best of a table is its largest value. That of a quadratic is its largest value in any
    state, with its reals wherever they please, and within its bounds if there is only one. So a
    factor that is satisfied cannot be better, but for rounding. One that has no largest value is
    never satisfied.
    """
    is_parted = any(isinstance(group.potential, ConditionalQuadratic) for group in graph.groups)
    whole = flat_terms(graph, whole=True) if is_parted else terms
    slots, record = whole.entry["variable"], whole.variable
    moves = (record["movable"] > 0) & (record["num_states"] != 1)
    count = np.concatenate([[0], np.cumsum(moves[slots])])
    ends = np.append(whole.term["first"], len(slots))
    best, rounding = _bests(whole)
    has_reals = whole.term["last"] > whole.term["middle"]
    enough = best - np.where(has_reals, NEAR + rounding, 0.0)
    return Factors(whole, enough, count[ends], slots[moves[slots]])


def shortfall(whole: Terms, x: FloatArray) -> float:
    """By how much the sum of all factors may be below the sum of their bests, at most.

    x: (variable,), states and reals. It is 0 where there are only tables, and each has its
    largest value, however large that is.
    """
    best, rounding = _bests(whole)
    total = 0.0
    for rows in rows_by_shape(whole.term, whole.theta):
        at = rows.row, _joint(whole, rows, x)
        inside = x[rows.reals(whole.term, whole.entry)]
        A = rows.A[at] * inside[:, None] * inside[:, :, None]
        b, c = rows.b[at] * inside, rows.c[at]
        below = best[rows.terms] - (A.sum(axis=(1, 2)) + b.sum(axis=1) + c)
        if rows.num_reals:
            size = np.abs(A).sum(axis=(1, 2)) + np.abs(b).sum(axis=1) + np.abs(c)
            below = np.maximum(below, 0) + rounding[rows.terms] + EPS * rows.num_reals * size
        total += float(whole.term["multiplicity"][rows.terms] @ below)
    return total


def _joint(whole: Terms, rows: Rows, x: FloatArray) -> NDArray[np.int64]:
    """(term,): the joint state."""
    first = whole.term["first"][rows.terms]
    joint = np.zeros(len(rows.terms), dtype=np.int64)
    for slot in range(int((whole.term["middle"][rows.terms] - first).max(initial=0))):
        at = np.minimum(first + slot, len(whole.entry) - 1)
        states = x[whole.entry["variable"][at]].astype(np.int64) * whole.entry["stride"][at]
        joint += np.where(first + slot < whole.term["middle"][rows.terms], states, 0)
    return joint


def _bests(whole: Terms) -> tuple[FloatArray, FloatArray]:
    """(factor,): its largest value, and by how much rounding may have lowered it."""
    best, rounding = np.zeros((2, len(whole.term)))
    for rows in rows_by_shape(whole.term, whole.theta):
        if rows.num_reals == 0:
            best[rows.terms] = rows.c.max(axis=1)[rows.row]
            continue
        if rows.num_reals == 1:
            real = rows.reals(whole.term, whole.entry)
            lower, upper = whole.variable["lower"][real], whole.variable["upper"][real]
            gain, doubt = _best_within(
                rows.A[rows.row, :, 0, 0], rows.b[rows.row, :, 0], lower, upper
            )
            c = rows.c[rows.row]
        else:
            gain, doubt = _best_anywhere(rows.A, rows.b)
            c = rows.c
        possible = c > -np.inf
        c = np.where(possible, c, 0)
        value = np.where(possible, gain + c, -np.inf)
        most = value + np.where(np.isfinite(value), doubt + EPS * np.abs(c), 0)
        found = value.max(axis=1)
        is_finite = np.isfinite(found)
        slack = np.where(is_finite, most.max(axis=1), 0) - np.where(is_finite, found, 0)
        if rows.num_reals > 1:
            found, slack = found[rows.row], slack[rows.row]
        best[rows.terms], rounding[rows.terms] = found, slack
    return best, rounding


def _best_within(
    A: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(factor, state): the largest value of Ax² + bx for x within bounds, and its rounding."""
    curved = A < 0
    top = np.clip(np.where(curved, -b / np.where(curved, 2 * A, 1), 0), lower, upper)
    best, at = np.where(curved, (A * top + b) * top, -np.inf), top
    for end in (np.broadcast_to(lower, A.shape), np.broadcast_to(upper, A.shape)):
        is_open = np.isinf(end)
        x = np.where(is_open, 0, end)
        rises = (A > 0) | ((A == 0) & (b * np.sign(end) > 0))
        value = np.where(is_open, np.where(rises, np.inf, -np.inf), (A * x + b) * x)
        at = np.where(value > best, x, at)
        best = np.maximum(best, value)
    best = np.maximum(best, np.where((A == 0) & (b == 0), 0, -np.inf))
    return best, 2 * EPS * (np.abs(A) * at**2 + np.abs(b * at))


def _best_anywhere(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(row, state): the largest value of xᵀAx + bᵀx for any x, and its rounding."""
    # Reals in units in which their curvature is about 1, whatever it is measured in.
    diagonal = np.abs(np.diagonal(A, axis1=2, axis2=3)).max(axis=1, keepdims=True)
    unit = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 1.0)
    A, b = A * unit[..., None] * unit[..., None, :], b * unit
    curvature, axes = np.linalg.eigh(A)
    along = np.einsum("rsij,rsi->rsj", axes, b)
    scale = np.abs(curvature).sum(axis=2, keepdims=True)
    curved = curvature < -FLAT * scale
    slopes = np.abs(along) > FLAT * np.abs(b).sum(axis=2, keepdims=True)
    rises = (curvature > FLAT * scale) | (~curved & slopes)
    gain = np.where(curved, along**2 / np.where(curved, -4 * curvature, 1), 0)
    # Eigenvalues are right within rounding of the largest.
    share = np.where(curved, scale / np.where(curved, -curvature, 1), 0)
    doubt = 2 * EPS * A.shape[2] * (gain * share).sum(axis=2)
    return np.where(rises, np.inf, gain).sum(axis=2), doubt
