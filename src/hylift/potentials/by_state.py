"""Potentials that are arrays of coefficients, with an axis of states per discrete slot."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hylift.potentials.base import REAL, FloatArray, IntArray, Potential, checked_flat


class ByState(Potential):
    """Arrays (row, states…, real slots…) in which log-values are linear."""

    __slots__ = ()

    @property
    @abstractmethod
    def coefficients(self) -> tuple[FloatArray, ...]:
        """Those of the squares, of the reals, and constants (row, states…); or the last alone.

        The class is made from them.
        """

    @property
    def num_rows(self) -> int:
        return len(self.coefficients[-1])

    @property
    def num_reals(self) -> int:
        return self.coefficients[-2].shape[-1] if len(self.coefficients) > 1 else 0

    @property
    def num_discrete_slots(self) -> int:
        return self.coefficients[-1].ndim - 1

    @property
    def slot_states(self) -> tuple[int, ...]:
        return self.coefficients[-1].shape[1:] + (REAL,) * self.num_reals

    @property
    def signature(self) -> tuple[str, tuple[int, ...]]:
        return (type(self).__name__, self.slot_states)

    @property
    def averages(self) -> bool:
        return True

    @property
    def flat(self) -> FloatArray:
        """The coefficients of each row, one behind the other; a copy where there are several."""
        entries = [each.reshape(len(each), math.prod(each.shape[1:])) for each in self.coefficients]
        return entries[0] if len(entries) == 1 else np.concatenate(entries, axis=1)

    def with_flat(self, flat: FloatArray) -> Self:
        rows = checked_flat(flat, sum(math.prod(each.shape[1:]) for each in self.coefficients))
        return type(self)(*(np.ascontiguousarray(part) for part in self._parted(rows)))

    def _parted(self, flat: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows (row, entry) as views shaped like the coefficients."""
        shapes = [each.shape[1:] for each in self.coefficients]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = np.split(flat, ends, axis=1)
        return [p.reshape(len(flat), *shape) for p, shape in zip(parts, shapes, strict=True)]

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        if self.slot_states[first] != self.slot_states[second]:
            return None
        num_entries = sum(math.prod(each.shape[1:]) for each in self.coefficients)
        parts = self._parted(np.arange(num_entries)[None])
        swapped = [self._swapped(part, first, second).ravel() for part in parts]
        return np.concatenate(swapped)

    def _swapped(self, values: NDArray[Any], first: int, second: int) -> NDArray[Any]:
        """One of the arrays with two slots of one kind swapped."""
        split = self.num_discrete_slots
        if first < split:
            return values.swapaxes(1 + first, 1 + second)
        order = np.arange(self.num_reals)
        order[[first - split, second - split]] = second - split, first - split
        for axis in range(1 + split, values.ndim):
            values = values.take(order, axis=axis)
        return values

    def stack(self, others: Sequence[Self]) -> Self:
        every = zip(*(each.coefficients for each in (self, *others)), strict=True)
        return type(self)(*(np.concatenate(parts) for parts in every))

    def take(self, rows: IntArray) -> Self:
        return type(self)(*(each[rows] for each in self.coefficients))

    def at_states(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Self, IntArray]:
        """The potential where discrete slots have these states (factor, slot), and its rows.

        Where few rows are shared by many factors, each combination of row and states becomes one
        row; otherwise each factor gets the row it needs.
        """
        fixed, states = [self.slot_states[slot] for slot in slots], values.astype(np.int64)
        num_combinations = math.prod(fixed)
        is_shared = self.num_rows * num_combinations <= len(row)
        found = []
        for each in self.coefficients:
            first = np.moveaxis(each, [1 + slot for slot in slots], range(1, 1 + len(slots)))
            rest = first.shape[1 + len(slots) :]
            combined = first.reshape(-1, *rest) if is_shared else first[(row, *states.T)]
            found.append(combined)
        if not is_shared:
            return type(self)(*found), np.arange(len(row), dtype=np.int32)
        combination = np.asarray(row, dtype=np.int64)
        for column, size in enumerate(fixed):
            combination = combination * size + states[:, column]
        return type(self)(*found), combination.astype(np.int32)
