"""Flat arrays cut into segments: offsets, ranges, reductions, and numbers of equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]


def offsets(sizes: NDArray[Any] | Sequence[int]) -> Ids:
    """(segment + 1,): where segments of these sizes start, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=found[1:])
    return found


def ranges(start: NDArray[Any], size: NDArray[Any]) -> Ids:
    """start, start + 1, …: `size` numbers from each start on, one range behind the other."""
    ends = np.cumsum(size, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(start - (ends - size), size)


def counts_up(sizes: NDArray[Any]) -> Ids:
    """(entry,): 0, 1, … within each segment."""
    start = offsets(sizes)
    return np.arange(start[-1]) - np.repeat(start[:-1], sizes)


def inverse(ids: NDArray[Any], size: int, dtype: type[np.signedinteger] = np.int64) -> NDArray[Any]:
    """(size,): the position of each number in `ids`, or -1: the inverse of an index map."""
    found = np.full(size, -1, dtype=dtype)
    found[ids] = np.arange(len(ids), dtype=dtype)
    return found


def slices(count: int, step: int) -> Iterator[slice]:
    """Slices of at most `step` of so many things, and of at least one."""
    step = max(1, step)
    return (slice(first, first + step) for first in range(0, count, step))


def products(values: NDArray[Any], start: Ids) -> NDArray[Any]:
    """(segment,): products of the values of each segment; no segment is empty."""
    return np.multiply.reduceat(values, start[:-1]) if len(start) > 1 else values[:0]


def strides(sizes: NDArray[Any], start: Ids) -> Ids:
    """(entry,): products of the sizes that follow in its segment: strides of an array of such a
    shape, the last axis fastest."""
    length, last = np.diff(start), start[1:] - 1
    found = np.ones(len(sizes), dtype=np.int64)
    for later in range(1, int(length.max(initial=0))):
        at = last[length > later] - later
        found[at] = found[at + 1] * sizes[at + 1]
    return found


def maxima(logs: FloatArray, start: Ids) -> FloatArray:
    """(segment,): the largest value of each segment; no segment is empty."""
    return np.maximum.reduceat(logs, start[:-1]) if len(start) > 1 else np.zeros(0)


def log_sums(logs: FloatArray, start: Ids) -> FloatArray:
    """(segment,): log-sum-exp of each segment; no segment is empty."""
    if len(start) <= 1:
        return np.zeros(0)
    top = maxima(logs, start)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        sums = np.add.reduceat(np.exp(logs - np.repeat(top, np.diff(start))), start[:-1])
        return np.asarray(top + np.log(sums))


def argmaxima(logs: FloatArray, start: Ids) -> Ids:
    """(segment,): position of the first largest value, counted from the start of its segment."""
    if len(start) <= 1:
        return np.zeros(0, dtype=np.int64)
    width = np.diff(start)
    is_largest = logs == np.repeat(maxima(logs, start), width)
    return np.minimum.reduceat(np.where(is_largest, counts_up(width), len(logs)), start[:-1])


def number_rows(*columns: Ids) -> tuple[Ids, Ids]:
    """(row,): from 0, equal for equal rows of these columns; and (number,): a row that has it."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    if not len(number):
        return number, number
    for column in columns:
        number = number * (int(column.max()) + 1) + column
        highest = int(number.max())
        if highest < 4 * len(number):  # flags are faster than sorting
            present = np.zeros(highest + 1, dtype=bool)
            present[number] = True
            number = (np.cumsum(present) - 1)[number]
        else:
            number = np.unique(number, return_inverse=True)[1]
    return number, first_of_each(number)


def first_of_each(number: NDArray[np.integer]) -> Ids:
    """(number,): where each number from 0 on stands first."""
    first = np.empty(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # the last assignment counts
    return first


def first_equal(values: NDArray[Any]) -> Ids:
    """(row, column): the first column that has the same value as each."""
    first = np.tile(np.arange(values.shape[1]), (len(values), 1))
    for column in range(1, values.shape[1]):
        same = values[:, :column] == values[:, [column]]
        first[:, column] = np.where(same.any(axis=1), same.argmax(axis=1), column)
    return first


def number_lists(owner: Ids, item: Ids) -> tuple[Ids, Ids]:
    """(owner,): from 0, equal for equal lists of items; and (number,): an owner that has it.

    owner, item: (item,), numbers from 0 on, owners increasing. Neighbours in a list are replaced
    by a number of the pair until one is left, so that long lists take few rounds.
    """
    result = np.zeros((2, int(owner[-1]) + 1), dtype=np.int64)
    for level in range(len(owner).bit_length() + 1):
        begins = np.append(True, owner[1:] != owner[:-1])
        alone = begins & np.append(begins[1:], True)
        result[0, owner[alone]], result[1, owner[alone]] = level, item[alone]
        owner, item, begins = owner[~alone], item[~alone], begins[~alone]
        if not len(owner):
            break
        start = np.flatnonzero(begins)
        place = np.arange(len(owner)) - start[np.cumsum(begins) - 1]
        left = place % 2 == 0
        paired = np.append(~left[1:], False)  # an odd place follows
        right = np.where(paired, np.append(item[1:], 0) + 1, 0)
        owner, item = owner[left], number_rows(item[left], right[left])[0]
    return number_rows(*result)
