"""Limits of the density: the largest value of each factor, and directions of unbounded growth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.inference.local.terms import FLAT, LocalTerms
from hylift.inference.search.state import Goals, SearchState
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

NEAR = 1e-9
"""A factor with reals that is this little below its best counts as at its best."""

EPS = float(np.finfo(float).eps)


def goals_of(written: Kinds, terms: LocalTerms) -> Goals:
    """The factors of a graph without evidence, as written; `terms` are what they are made of.

    The best of a table is its largest value. That of a quadratic is its largest value in any
    state, with its reals wherever they please, and within its bounds if there is only one. So a
    factor that is satisfied cannot be better, but for rounding. One that has no largest value is
    never satisfied.
    """
    whole = LocalTerms.of(written) if written.quadratics else terms
    best, rounding = _bests(whole)
    has_reals = whole.term["last"] > whole.term["middle"]
    enough = best - np.where(has_reals, NEAR + rounding, 0.0)
    return Goals.of(whole, enough)


def shortfall(whole: LocalTerms, x: FloatArray) -> float:
    """By how much the sum of all factors may be below the sum of their bests, at most.

    x: (variable,), states and reals. It is 0 where there are only tables, and each has its
    largest value, however large that is.
    """
    best, rounding = _bests(whole)
    joint, total = whole.joint_states(x), 0.0
    for rows in whole.rows():
        at = rows.row, joint[rows.terms]
        inside = x[whole.reals(rows)]
        A = rows.A[at] * inside[:, None] * inside[:, :, None]
        b, c = rows.b[at] * inside, rows.c[at]
        below = best[rows.terms] - (A.sum(axis=(1, 2)) + b.sum(axis=1) + c)
        if rows.num_reals:
            size = np.abs(A).sum(axis=(1, 2)) + np.abs(b).sum(axis=1) + np.abs(c)
            below = np.maximum(below, 0) + rounding[rows.terms] + EPS * rows.num_reals * size
        total += float(whole.term["multiplicity"][rows.terms] @ below)
    return total


def _bests(whole: LocalTerms) -> tuple[FloatArray, FloatArray]:
    """(factor,): its largest value, and by how much rounding may have lowered it."""
    best, rounding = np.zeros((2, len(whole.term)))
    for rows in whole.rows():
        if rows.num_reals == 0:
            best[rows.terms] = rows.c.max(axis=1)[rows.row]
            continue
        if rows.num_reals == 1:
            real = whole.reals(rows)
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


IntArray = NDArray[np.int64]

LEVEL = 1e-9
"""A slope of less than this, relative to what is added up in it, is none: reals are where they
are only within rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class _Derivatives:
    """Derivatives along one direction or several, and the sums of the sizes of their summands."""

    slope: FloatArray
    slope_size: FloatArray
    bend: FloatArray
    bend_size: FloatArray

    @property
    def grows(self) -> NDArray[np.bool_]:
        """True where the density grows without bound one way or the other, or both."""
        is_flat = np.abs(self.bend) <= FLAT * self.bend_size
        slopes = np.abs(self.slope) > LEVEL * self.slope_size
        return np.where(is_flat, slopes, self.bend > 0)

    def grows_towards(self, sign: int) -> NDArray[np.bool_]:
        convex = self.bend > FLAT * self.bend_size
        return self.grows & (convex | (sign * self.slope > 0))


def loose_real(
    terms: LocalTerms, search: SearchState, reals: IntArray, aim: FloatArray | None
) -> int | None:
    """A real along which the density grows without end in the present states, if one is found.

    reals: those that may move. aim: (real,), a direction to look along as well; of several reals
    that nothing holds together, the one that moves most units is named.
    """
    record = terms.variable[reals]
    open_up, open_down = np.isinf(record["upper"]), np.isinf(record["lower"])
    # Scores are cheap, but may be rounding: the parameters decide.
    if ((search.curve[reals] >= -record["flat"]) & (open_up | open_down)).any():
        along = _along_each(terms, search, reals)
        loose = open_up & along.grows_towards(1) | open_down & along.grows_towards(-1)
        if loose.any():
            return int(reals[np.argmax(loose)])
    if aim is not None:
        direction = np.zeros(len(terms.variable))
        direction[reals] = np.where(np.where(aim > 0, open_up, open_down), aim, 0.0)
        if _along(terms, search, direction).grows_towards(1):
            return int(reals[np.argmax(np.abs(direction[reals]) / record["unit"])])
    return None


def _quadratics(
    terms: LocalTerms, search: SearchState
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
    """Reals (term, real), multiplicity, A and b in the present states, of terms of one shape."""
    for rows in terms.rows():
        if rows.num_reals:
            at = rows.row, search.joint[rows.terms]
            m = terms.term["multiplicity"][rows.terms]
            yield terms.reals(rows), m, rows.A[at], rows.b[at]


def _along_each(terms: LocalTerms, search: SearchState, reals: IntArray) -> _Derivatives:
    """(real,): along each by itself."""
    x, sums = search.x, np.zeros((4, len(terms.variable)))
    for inside, m, A, b in _quadratics(terms, search):
        pull = 2 * A * x[inside][:, None]
        bend = np.diagonal(A, axis1=1, axis2=2)
        parts = b + pull.sum(axis=2), np.abs(b) + np.abs(pull).sum(axis=2), bend, np.abs(bend)
        for total, part in zip(sums, parts, strict=True):
            np.add.at(total, inside, m[:, None] * part)
    return _Derivatives(*sums[:, reals])


def _along(terms: LocalTerms, search: SearchState, direction: FloatArray) -> _Derivatives:
    """Along a direction (variable,)."""
    x, sums = search.x, np.zeros(4)
    for inside, m, A, b in _quadratics(terms, search):
        d, bend = direction[inside], A * direction[inside][:, None] * direction[inside][:, :, None]
        pull = 2 * A * x[inside][:, None] * d[:, :, None]
        slope = (b * d).sum(axis=1) + pull.sum(axis=(1, 2))
        slope_size = np.abs(b * d).sum(axis=1) + np.abs(pull).sum(axis=(1, 2))
        sums += np.stack(
            [slope, slope_size, bend.sum(axis=(1, 2)), np.abs(bend).sum(axis=(1, 2))]
        ) @ m  # fmt: skip
    return _Derivatives(*sums)
