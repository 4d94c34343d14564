"""Which sets of variables are contained in others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MANY = 6
"""Sets of more variables are searched for single variables and pairs only."""

QUERIES = 4_000_000
"""Sets that are looked up at once; bounds the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class SetTable:
    """Different sets of so many variables, to look sets up in."""

    members: Ints  # (set, member), increasing
    start: int
    """Number of the first set among those of all sizes."""
    first: Ints  # (variable,): the number of the sets' first members, or -1
    codes: list[Ints]
    """Per further member: (beginning,): beginning before it * variables + member, increasing."""

    @classmethod
    def of(cls, sets: NDArray[np.int32], num_variables: int, start: int) -> tuple[SetTable, Ints]:
        """The table of some sets (factor, member), and (factor,): where each stands in it."""
        members = sets.astype(np.int64)
        present = np.zeros(num_variables, dtype=bool)
        present[members[:, 0]] = True
        first = np.where(present, np.cumsum(present) - 1, -1)
        number, codes = first[members[:, 0]], []
        for column in members[:, 1:].T:
            beginnings, number = np.unique(number * num_variables + column, return_inverse=True)
            codes.append(beginnings)
        distinct = np.empty((int(number.max()) + 1, members.shape[1]), dtype=np.int64)
        distinct[number] = members
        return cls(distinct, start, first, codes), number

    @property
    def size(self) -> int:
        return int(self.members.shape[1])

    def find(self, sets: Ints) -> Ints:
        """(query,): the position of each set (query, member) in the table, or -1."""
        number = self.first[sets[:, 0]]
        for codes, column in zip(self.codes, sets[:, 1:].T, strict=True):
            maybe = np.flatnonzero(number >= 0)
            code = number[maybe] * len(self.first) + column[maybe]
            at = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
            number[maybe] = np.where(codes[at] == code, at, -1)
        return number


def inclusions(tables: Sequence[SetTable]) -> tuple[Ints, Ints]:
    """Numbers of sets that are contained in a larger set, and of the larger ones."""
    inner, outer = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for place, large in enumerate(tables):
        for small in tables[:place]:
            if large.size > MANY and small.size > 2:
                continue
            for slots in _some_at_once(large.size, small.size, QUERIES // len(large.members) + 1):
                found = small.find(large.members[:, slots].reshape(-1, small.size))
                hits = np.flatnonzero(found >= 0)
                inner.append(found[hits] + small.start)
                outer.append(hits // len(slots) + large.start)
    return np.concatenate(inner), np.concatenate(outer)


def _some_at_once(num_slots: int, size: int, count: int) -> Iterator[Ints]:
    """All sets of so many slots, in arrays (set, slot) of up to `count`."""
    sets = combinations(range(num_slots), size)
    while some := list(islice(sets, count)):
        yield np.fromiter(chain.from_iterable(some), np.int64).reshape(-1, size)
