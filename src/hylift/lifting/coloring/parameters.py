"""Which parameter rows are equal to a tolerance, and which slots may be exchanged in them."""

from __future__ import annotations

import itertools
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.lifting.kernels.grouping import first_members, group_pairs
from hylift.lifting.kernels.snapping import snap_sorted
from hylift.potentials import Potential

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-12
"""Relative difference up to which parameters are equal: a few last bits, lost in arithmetic."""


@dataclass(frozen=True, slots=True, eq=False)
class RowClasses:
    """Rows of a potential sorted into classes of equal ones."""

    row_to_class: NDArray[np.int32]  # (row,)
    num_classes: int
    orbit: NDArray[np.int16]  # (class, slot): slots with one number may be exchanged


def row_classes(potential: Potential, tolerance: float) -> RowClasses:
    """Rows are equal where each parameter of one equals that of the other to the tolerance.

    That is an equivalence: every parameter is snapped to one value for all that are almost equal to
    it, and rows are equal whose snapped parameters are.
    """
    flat = potential.flat
    group = np.zeros(len(flat), dtype=np.int32)
    count = 1
    for entry in range(flat.shape[1] if len(flat) > 1 else 0):
        column = snapped(flat[:, entry], tolerance)
        if len(column) and (column != column[0]).any():
            group, count = group_pairs(group, column.view(np.uint64))
    first = first_members(group, count if len(flat) else 0)
    return RowClasses(group, len(first), _orbits(potential, flat[first], tolerance))


def snapped(values: FloatArray, tolerance: float) -> FloatArray:
    """The values, those that are equal to a relative tolerance replaced by one of them.

    Nothing depends on the order, and no two values in one class differ by more than the tolerance:
    there are no chains of almost equal ones.
    """
    values = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # of two zeros one
    if not len(values) or (values == values[0]).all():
        return values
    return snap_sorted(values, np.argsort(values), tolerance)


def check_tolerance(tolerance: float) -> float:
    """The tolerance, if it is one."""
    if not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 1:
        raise ModelError(f"a relative tolerance is at least 0 and less than 1, not {tolerance!r}")
    return float(tolerance)


def _orbits(potential: Potential, rows: FloatArray, tolerance: float) -> NDArray[np.int16]:
    """(row, slot): the first slot that each may be exchanged with, itself if there is none."""
    arity = len(potential.slot_states)
    orbit = np.tile(np.arange(arity, dtype=np.int16), (len(rows), 1))
    for first, second in itertools.combinations(range(arity), 2):
        exchange = potential.exchange(first, second)
        if exchange is None:
            continue
        same = _almost_equal(rows, rows[:, exchange], tolerance)
        orbit[same, second] = np.minimum(orbit[same, second], orbit[same, first])
    return orbit


def _almost_equal(rows: FloatArray, others: FloatArray, tolerance: float) -> NDArray[Any]:
    """(row,): whether two rows are equal to the tolerance."""
    same = rows == others
    if tolerance:
        room = tolerance * np.maximum(np.abs(rows), np.abs(others))
        with np.errstate(invalid="ignore"):
            same |= np.isfinite(room) & (np.abs(rows - others) <= room)
    return np.asarray(same.all(axis=1))
