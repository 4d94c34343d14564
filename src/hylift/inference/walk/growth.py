"""Directions along which the density grows without end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.inference.search.kernels.arrays import FLAT, Search, Terms
from hylift.inference.search.rows import rows_by_shape

FloatArray = NDArray[np.float64]
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
        """Whether the density grows without end one way or the other, or both."""
        is_flat = np.abs(self.bend) <= FLAT * self.bend_size
        slopes = np.abs(self.slope) > LEVEL * self.slope_size
        return np.where(is_flat, slopes, self.bend > 0)

    def grows_towards(self, sign: int) -> NDArray[np.bool_]:
        convex = self.bend > FLAT * self.bend_size
        return self.grows & (convex | (sign * self.slope > 0))


def loose_real(terms: Terms, search: Search, reals: IntArray, aim: FloatArray | None) -> int | None:
    """A real along which the density grows without end in the present states, if one is found.

    reals: those that may move. aim: (real,), a direction to look along as well; of several reals
    that nothing holds together, the one that moves most units is named.
    """
    record, value = terms.variable[reals], search.value[reals]
    open_up, open_down = np.isinf(record["upper"]), np.isinf(record["lower"])
    # What scores tell is cheap, and may be rounding: the parameters have the last word.
    if ((value["curve"] >= -record["flat"]) & (open_up | open_down)).any():
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
    terms: Terms, search: Search
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
    """Reals (term, real), multiplicity, A and b in the present states, of terms of one shape."""
    for rows in rows_by_shape(terms.term, terms.theta):
        if rows.num_reals:
            at = rows.row, search.joint[rows.terms]
            m = terms.term["multiplicity"][rows.terms]
            yield rows.reals(terms.term, terms.entry), m, rows.A[at], rows.b[at]


def _along_each(terms: Terms, search: Search, reals: IntArray) -> _Derivatives:
    """(real,): along each by itself."""
    x, sums = search.value["x"], np.zeros((4, len(terms.variable)))
    for inside, m, A, b in _quadratics(terms, search):
        pull = 2 * A * x[inside][:, None]
        bend = np.diagonal(A, axis1=1, axis2=2)
        parts = b + pull.sum(axis=2), np.abs(b) + np.abs(pull).sum(axis=2), bend, np.abs(bend)
        for total, part in zip(sums, parts, strict=True):
            np.add.at(total, inside, m[:, None] * part)
    return _Derivatives(*sums[:, reals])


def _along(terms: Terms, search: Search, direction: FloatArray) -> _Derivatives:
    """Along a direction (variable,)."""
    x, sums = search.value["x"], np.zeros(4)
    for inside, m, A, b in _quadratics(terms, search):
        d, bend = direction[inside], A * direction[inside][:, None] * direction[inside][:, :, None]
        pull = 2 * A * x[inside][:, None] * d[:, :, None]
        slope = (b * d).sum(axis=1) + pull.sum(axis=(1, 2))
        slope_size = np.abs(b * d).sum(axis=1) + np.abs(pull).sum(axis=(1, 2))
        sums += np.stack(
            [slope, slope_size, bend.sum(axis=(1, 2)), np.abs(bend).sum(axis=(1, 2))]
        ) @ m  # fmt: skip
    return _Derivatives(*sums)
