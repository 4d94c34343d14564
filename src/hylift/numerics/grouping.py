"""Equal items get dense numbers; items, sums and means by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.kernels import grouping as kernels
from hylift.numerics.kernels.grouping import EMPTY
from hylift.numerics.segments import offsets

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]

START = 1024
"""First size of a table; doubled when half full, so that few groups stay in cache."""


def group_pairs(first: Numbers, second: NDArray[np.uint64]) -> tuple[Numbers, int]:
    """(item,): dense numbers of distinct pairs, in the order of their first items; their count.

    first: small numbers, none negative.
    """
    room = np.zeros(int(first.max(initial=-1)) + 1, dtype=np.int32)
    number, count, _ = number_items(kernels.number_pairs, len(first), first, second, room)
    return number, count


def group_rows(rows: Numbers) -> tuple[Numbers, int]:
    """(row,): dense numbers of distinct rows (row, column), in the order of the first; their
    count."""
    number, count = np.zeros(len(rows), dtype=np.int32), min(len(rows), 1)
    for column in rows.T:
        if count == len(rows):
            break
        number, count = group_pairs(number, column.astype(np.uint64))
    return number, count


def number_items(
    kernel: Callable[..., None], num_items: int, *inputs: NDArray[Any], expected: int = 0
) -> tuple[Numbers, int, Ids]:
    """(item,): dense numbers of equal items; their count; and the first item of each group.

    The kernel takes these inputs, the numbers to write, its state (items done, groups, groups in
    the table), the table of groups by hash, and the first item and hash of each group in it. It
    stops when the table is half full. expected: about how many groups there will be.
    """
    size = START
    while size < 2 * expected:
        size *= 2
    number, state = np.empty(num_items, dtype=np.int32), np.zeros(3, dtype=np.int64)
    table = np.full(size, EMPTY, dtype=np.int32)
    leader, hashes = np.empty(size // 2, dtype=np.int64), np.empty(size // 2, dtype=np.uint64)
    while True:
        kernel(*inputs, number, state, table, leader, hashes)
        if state[0] == num_items:
            return number, int(state[1]), leader[: state[2]].copy()
        table = np.full(2 * len(table), EMPTY, dtype=np.int32)
        kernels.enter(hashes, table)
        leader, hashes = np.resize(leader, 2 * len(leader)), np.resize(hashes, 2 * len(hashes))


def often(number: Numbers, size: int) -> Numbers:
    """(number,): how often each number occurs."""
    found = np.zeros(size, dtype=np.int32)
    kernels.count_numbers(_read_only(number), found)
    return found


def first_members(number: Numbers) -> Ids:
    """(number,): the first item of each, for numbers in the order of their first items."""
    so_far: Numbers = np.maximum.accumulate(number)
    is_first = np.ones(len(number), dtype=bool)
    np.not_equal(so_far[1:], so_far[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def renumbered(number: Numbers, count: int) -> tuple[Numbers, Ids]:
    """Numbers in the order of the first items that have them, and these items."""
    new, first = np.full(count, -1, dtype=np.int32), np.empty(count, dtype=np.int64)
    result = np.empty(len(number), dtype=np.int32)
    seen = kernels.renumber(number, new, first, result)
    return result, first[:seen].copy()


def by_number(number: Numbers, count: int, item: Numbers | None = None) -> tuple[Numbers, Ids]:
    """Items sorted by their numbers, and where those of each begin, (number + 1,).

    item: (place,); by default the places themselves.
    """
    item = np.arange(len(number), dtype=np.int32) if item is None else item
    begin = offsets(often(number, count))
    order = np.empty(len(number), dtype=np.int32)
    kernels.sort_by_number(_read_only(number), item, begin[:-1].copy(), order)
    return order, begin


def class_sums(values: FloatArray, number: Numbers, count: int) -> FloatArray:
    """(number,): sums of the values of its items."""
    return np.bincount(number, values, count).astype(np.float64, copy=False)


def average_rows(
    flat: FloatArray, row: Numbers, weight: FloatArray, target: Numbers, leader: Numbers
) -> FloatArray:
    """(target, entry): weighted means of the rows of `flat` that go to each target.

    row, weight, target: (factor,), a negative target is none. leader: (target,), one of its rows.
    Sums are of differences to that one, so that the mean of equal rows is the row itself; where one
    row has -inf the mean has it.
    """
    mean, total = np.zeros((len(leader), flat.shape[1])), np.zeros(len(leader))
    kernels.add_rows(_read_only(flat), row, weight, target, leader, mean, total)
    return mean


def snapped(values: FloatArray, tolerance: float, order: NDArray[Any] | None = None) -> FloatArray:
    """The values, with those that are equal to a relative tolerance replaced by the smallest.

    The result does not depend on the order, and no two values in one class differ by more than the
    tolerance: there are no chains of almost equal values. order: sorts the values.
    """
    values = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    order = np.argsort(values) if order is None else order
    ascending = values[order]
    zero = int(ascending.searchsorted(0.0))
    kernels.snap(ascending[zero:], tolerance)
    if zero:
        negative = -ascending[:zero][::-1]
        kernels.snap(negative, tolerance)
        ascending[:zero] = -negative[::-1]
    values[order] = ascending
    return values


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view, so that kernels are compiled for one kind of array only."""
    view = array.view()
    view.flags.writeable = False
    return view
