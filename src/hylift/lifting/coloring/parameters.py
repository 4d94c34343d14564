"""Which parameter rows are equal to a tolerance, and which slots may be exchanged in them."""

from __future__ import annotations

import itertools
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.numerics.kernels.grouping import first_members, group_pairs, snap_sorted
from hylift.potentials import Potential

FloatArray = NDArray[np.float64]

BATCH = 10_000_000
"""Numbers that are compared at once."""

MAX_COMPARED = 64
"""Slots up to which a factor's are compared with each other, to find which may be exchanged."""

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
    count = min(len(flat), 1)
    columns = {}
    for entry in np.flatnonzero((flat != flat[:1]).any(axis=0)).tolist():
        columns[entry] = snapped(flat[:, entry], tolerance)
        group, count = group_pairs(group, columns[entry].view(np.uint64))
    first = first_members(group, count)
    snapped_rows = flat[first]
    for entry, column in columns.items():
        snapped_rows[:, entry] = column[first]
    return RowClasses(group, count, _orbits(potential, snapped_rows, tolerance))


def snapped(values: FloatArray, tolerance: float) -> FloatArray:
    """The values, those that are equal to a relative tolerance replaced by one of them.

    Nothing depends on the order, and no two values in one class differ by more than the tolerance:
    there are no chains of almost equal ones.
    """
    values = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # of two zeros one
    return snap_sorted(values, np.argsort(values), tolerance)


def check_tolerance(tolerance: float) -> float:
    """The tolerance, if it is one."""
    if not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 1:
        raise ModelError(f"a relative tolerance is at least 0 and less than 1, not {tolerance!r}")
    return float(tolerance)


def _orbits(potential: Potential, rows: FloatArray, tolerance: float) -> NDArray[np.int16]:
    """(row, slot): the first slot that each may be exchanged with, itself if there is none.

    rows: snapped, and so the same whichever row of a class they are.
    """
    arity = len(potential.slot_states)
    orbit = np.tile(np.arange(arity, dtype=np.int16), (len(rows), 1))
    for one, other in itertools.combinations(range(arity), 2) if arity <= MAX_COMPARED else ():
        exchange = potential.exchange(one, other)
        if exchange is None:
            continue
        # Only with slots that stand for themselves: what is almost equal makes no chains.
        same = (orbit[:, one] == one) & (orbit[:, other] == other)
        elsewhere = np.flatnonzero(exchange != np.arange(len(exchange)))
        for part in np.array_split(elsewhere, 1 + elsewhere.size * len(rows) // BATCH):
            left = np.flatnonzero(same)
            there = rows[left[:, None], exchange[part]]
            same[left] = _almost_equal(rows[left[:, None], part], there, tolerance)
        orbit[same, other] = one
    return orbit


def _almost_equal(rows: FloatArray, others: FloatArray, tolerance: float) -> NDArray[Any]:
    """(row,): whether all entries are equal to the tolerance; infinite ones equal themselves."""
    room = tolerance * np.maximum(np.abs(rows), np.abs(others))
    with np.errstate(invalid="ignore"):
        near = np.isfinite(room) & (np.abs(rows - others) <= room)
    return np.asarray(((rows == others) | near).all(axis=1))
