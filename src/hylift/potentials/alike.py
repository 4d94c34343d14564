"""Rows of a potential that are alike, and slots that may be exchanged."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.grouping import first_members, group_pairs, snapped
from hylift.numerics.segments import slices
from hylift.potentials.base import Potential

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-12
"""Relative difference up to which parameters are equal: a few last bits, lost in arithmetic."""

MAX_COMPARED = 64
"""Most slots of a factor that are compared with each other for exchangeability."""

MAX_WORK = 50_000_000
"""Most numbers that are compared for that in each row: more than half a second is not worth it."""

BATCH = 10_000_000
"""Numbers that are compared at once."""


@dataclass(frozen=True, slots=True, eq=False)
class RowClasses:
    """Rows of a potential in classes of equal ones."""

    row_to_class: NDArray[np.int32]  # (row,)
    first: NDArray[np.int64]  # (class,): its first row
    flat: FloatArray  # (class, entry): snapped parameters, the same whichever row they are of
    tolerance: float

    @classmethod
    def of(
        cls, potential: Potential, tolerance: float = TOLERANCE, *, up_to_constants: bool = True
    ) -> RowClasses:
        """Classes of rows whose parameters are all equal to the tolerance, or so up to a constant.

        This is an equivalence: all values that are almost equal are snapped to one, and rows are
        compared by their snapped parameters. Rows that differ by a constant are alike, if they are
        to be: the mean of their class has the mean constant, so that log Z does not change.
        """
        flat = potential.flat
        group = np.zeros(len(flat), dtype=np.int32)
        count = min(len(flat), 1)
        columns = {
            entry: snapped(flat[:, entry], tolerance)
            for entry in np.flatnonzero((flat != flat[:1]).any(axis=0)).tolist()
        }
        if up_to_constants and potential.constants is not None:
            columns |= _without_constant(flat, columns, potential.constants, tolerance)
        for column in columns.values():
            if count < len(flat):
                group, count = group_pairs(group, column.view(np.uint64))
        first = first_members(group)
        rows = flat[first]
        for entry, column in columns.items():
            rows[:, entry] = column[first]
        return cls(group, first, rows, tolerance)

    def orbits(self, potential: Potential) -> NDArray[np.int16]:
        """(class, slot): the first slot that each can be exchanged with, itself if there is
        none."""
        arity, rows = len(potential.slot_states), self.flat
        orbit = np.tile(np.arange(arity, dtype=np.int16), (len(rows), 1))
        pairs = list(itertools.combinations(range(arity), 2))
        is_small = arity <= MAX_COMPARED and len(pairs) * rows.shape[1] <= MAX_WORK
        for one, other in pairs if is_small else ():
            exchange = potential.exchange(one, other)
            if exchange is None:
                continue
            # Only with slots that stand for themselves, to avoid chains of almost equal ones.
            same = (orbit[:, one] == one) & (orbit[:, other] == other)
            elsewhere = np.flatnonzero(exchange != np.arange(len(exchange)))
            step = BATCH // max(1, len(rows))
            for part in (elsewhere[some] for some in slices(len(elsewhere), step)):
                left = np.flatnonzero(same)
                there = rows[left[:, None], exchange[part]]
                same[left] = _almost_equal(rows[left[:, None], part], there, self.tolerance)
            orbit[same, other] = one
        return orbit


def _without_constant(
    flat: FloatArray, columns: Mapping[int, FloatArray], constants: slice, tolerance: float
) -> dict[int, FloatArray]:
    """The columns of constants, snapped, where the largest of each row is 0; none where they are
    equal in all rows. columns: those that differ, snapped."""
    entries = range(*constants.indices(flat.shape[1]))
    if not any(entry in columns for entry in entries):
        return {}
    values = flat[:, constants].copy()
    for place, entry in enumerate(entries):
        if entry in columns:
            values[:, place] = columns[entry]
    top = values.max(axis=1, keepdims=True)
    values -= np.where(np.isfinite(top), top, 0.0)
    return {e: snapped(values[:, place], tolerance) for place, e in enumerate(entries)}


def _almost_equal(rows: FloatArray, others: FloatArray, tolerance: float) -> NDArray[Any]:
    """(row,): whether all entries are equal to the tolerance; infinite ones equal themselves."""
    room = tolerance * np.maximum(np.abs(rows), np.abs(others))
    with np.errstate(invalid="ignore"):
        near = np.isfinite(room) & (np.abs(rows - others) <= room)
    return np.asarray(((rows == others) | near).all(axis=1))
