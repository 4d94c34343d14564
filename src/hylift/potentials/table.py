"""Potentials over discrete slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.errors import ModelError
from hylift.potentials.base import FloatArray, IntArray, QuadraticForm, frozen_floats
from hylift.potentials.by_state import ByState


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
    def coefficients(self) -> tuple[FloatArray, ...]:
        return (self.log_table,)

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        states = (np.asarray(slot).astype(np.int64, copy=False) for slot in slots)
        return np.asarray(self.log_table[(row, *states)])

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Table, IntArray]:
        return self.at_states(row, slots, values)

    def quadratic(self) -> QuadraticForm:
        shape = self.flat.shape
        return QuadraticForm(np.zeros((*shape, 0, 0)), np.zeros((*shape, 0)), self.flat)
