"""Potentials over discrete slots, and what all potentials of coefficients share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.errors import ModelError
from hylift.potentials.base import (
    FloatArray,
    IntArray,
    Potential,
    QuadraticForm,
    checked_flat,
    frozen_floats,
)


class ByState(Potential):
    """Parameters in arrays (row, states…, real slots…)."""

    __slots__ = ()

    @property
    @abstractmethod
    def coefficients(self) -> tuple[FloatArray, ...]:
        """The arrays, the last of which are constants (row, states…).

        The class is made from them.
        """

    @property
    def signature(self) -> tuple[str, tuple[int, ...]]:
        return (type(self).__name__, self.slot_states)

    @property
    def constants(self) -> slice:
        return slice(-math.prod(self.coefficients[-1].shape[1:]), None)

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
        parts, start = [], 0
        for each in self.coefficients:
            end = start + math.prod(each.shape[1:])
            parts.append(flat[:, start:end].reshape(len(flat), *each.shape[1:]))
            start = end
        return parts

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


@dataclass(frozen=True, slots=True, eq=False)
class Table(ByState):
    """A table of log-values over discrete slots; -inf marks what is impossible."""

    log_table: FloatArray  # (row, states of slot 0, states of slot 1, ...)

    def __post_init__(self) -> None:
        log_table = frozen_floats(self.log_table, "a log-table", allow_minus_inf=True)
        if log_table.ndim == 0 or 0 in log_table.shape[1:]:
            raise ModelError(
                "a log-table has a row axis and then one axis of states per slot, "
                f"not the shape {log_table.shape}"
            )
        object.__setattr__(self, "log_table", log_table)

    @classmethod
    def shared(cls, log_values: ArrayLike) -> Table:
        """One table of log-values for all factors: an axis per slot."""
        return cls(np.asarray(log_values, dtype=np.float64)[None])

    @classmethod
    def from_values(cls, values: ArrayLike) -> Table:
        """One table for all factors, from non-negative values such as probabilities."""
        values = np.asarray(values, dtype=np.float64)
        if not (values >= 0).all():
            raise ModelError("a table's values must not be negative or NaN; for logs use shared()")
        with np.errstate(divide="ignore"):
            return cls.shared(np.log(values))

    @classmethod
    def weighted(cls, weight: ArrayLike, holds: ArrayLike) -> Table:
        """`weight` where a formula holds and 0 elsewhere, as in Markov logic.

        A hard formula has weight inf: 0 where it holds, -inf elsewhere. Weights may be given per
        factor (row,). holds: bool, an axis of states per slot.
        """
        given = np.asarray(holds)
        if not np.isin(given, [0, 1]).all():
            raise ModelError(f"a formula holds or not: give True and False, not {given.tolist()}")
        truth = given.astype(bool)
        w = np.atleast_1d(np.asarray(weight, dtype=np.float64))
        w = w.reshape((-1,) + (1,) * truth.ndim)
        hard = w == np.inf
        soft = np.where(hard, 0.0, w)
        return cls(np.where(truth, soft, np.where(hard, -np.inf, 0.0)))

    @property
    def averages(self) -> bool:
        return True

    @property
    def coefficients(self) -> tuple[FloatArray, ...]:
        return (self.log_table,)

    @property
    def num_rows(self) -> int:
        return len(self.log_table)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return self.log_table.shape[1:]

    @property
    def flat(self) -> FloatArray:
        return self.log_table.reshape(len(self.log_table), math.prod(self.slot_states))

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        states = (np.asarray(slot).astype(np.int64, copy=False) for slot in slots)
        return np.asarray(self.log_table[(row, *states)])

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Table, IntArray]:
        return self.at_states(row, slots, values)

    def quadratic(self) -> QuadraticForm:
        flat = self.flat
        return QuadraticForm(np.zeros((*flat.shape, 0, 0)), np.zeros((*flat.shape, 0)), flat)
