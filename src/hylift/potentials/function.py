"""Potentials that a user writes in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hylift.errors import HyliftError, ModelError
from hylift.potentials.base import (
    ANY_STATES,
    REAL,
    FloatArray,
    IntArray,
    Potential,
    SlotBelief,
    expectation_on_grid,
    frozen_floats,
)
from hylift.potentials.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Function(Potential):
    """Any vectorised `log_potential(*discrete slots, *real slots, *parameters)`.

    It is called with arrays that broadcast together: states as integers, reals and parameters as
    floats. It may return -inf, but neither NaN nor +inf.
    """

    log_potential: Callable[..., Any]
    num_discrete: int = 0
    num_reals: int = 0
    parameters: FloatArray | None = None  # (row, parameter); None: one row without parameters
    fixed: tuple[int, ...] = ()
    """Arguments that evidence has filled, increasing; their values are the last parameters."""

    def __post_init__(self) -> None:
        if self.num_discrete < 0 or self.num_reals < 0 or self.num_discrete + self.num_reals == 0:
            raise ModelError(
                f"a function takes at least one slot, not {self.num_discrete} discrete and "
                f"{self.num_reals} real ones: say num_discrete=… or num_reals=…"
            )
        given = np.zeros((1, 0)) if self.parameters is None else self.parameters
        parameters = frozen_floats(given, "a function's parameters", ndim=2)
        object.__setattr__(self, "parameters", parameters)

    @property
    def _rows(self) -> FloatArray:
        assert self.parameters is not None  # __post_init__ fills it
        return self.parameters

    @property
    def _free(self) -> list[int]:
        """Arguments that are slots."""
        return [a for a in range(self.num_discrete + self.num_reals) if a not in self.fixed]

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return tuple(ANY_STATES if a < self.num_discrete else REAL for a in self._free)

    @property
    def signature(self) -> tuple[Any, ...]:
        kinds = (self.num_discrete, self.num_reals, self.fixed, self._rows.shape[1])
        return ("function", self.log_potential, *kinds)

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        columns = np.moveaxis(self._rows[row], -1, 0)
        num_own = len(columns) - len(self.fixed)
        given = dict(zip([*self._free, *self.fixed], [*slots, *columns[num_own:]], strict=True))
        arguments = [
            np.asarray(given[a]).astype(
                np.int64 if a < self.num_discrete else np.float64, copy=False
            )
            for a in range(self.num_discrete + self.num_reals)
        ]
        shape = np.broadcast_shapes(np.shape(row), *(np.shape(a) for a in arguments))
        values = self._called(*arguments, *columns[:num_own])
        try:
            values = np.broadcast_to(values, shape)
        except ValueError:
            raise ModelError(
                f"{_called(self.log_potential)} returned the shape {values.shape} "
                f"for arguments that broadcast to {shape}"
            ) from None
        bad = np.isnan(values) | (values == np.inf)
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            point = [np.broadcast_to(a, shape)[where].item() for a in arguments]
            raise ModelError(f"{_called(self.log_potential)} returned {values[where]} at {point}")
        return values

    def _called(self, *arguments: NDArray[Any]) -> FloatArray:
        """What the function returns, its own errors told as errors of the model."""
        try:
            return np.asarray(self.log_potential(*arguments), dtype=np.float64)
        except HyliftError:
            raise
        except Exception as error:
            raise ModelError(
                f"{_called(self.log_potential)} failed with {type(error).__name__}: {error}. It is "
                f"called with {len(arguments)} arrays that hold the values of many factors at once "
                "(np.where stands for 'if')"
            ) from error

    def expectation(self, row: IntArray, beliefs: Sequence[SlotBelief]) -> FloatArray:
        return expectation_on_grid(self, row, beliefs)

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        filled = [*self.fixed, *(self._free[slot] for slot in slots)]
        num_own = self._rows.shape[1] - len(self.fixed)
        rows = self._rows[row]
        columns = np.concatenate([rows[:, num_own:], values], axis=1)[:, np.argsort(filled)]
        reduced = Function(
            self.log_potential,
            self.num_discrete,
            self.num_reals,
            np.concatenate([rows[:, :num_own], columns], axis=1),
            tuple(sorted(filled)),
        )
        new_row = np.arange(len(row), dtype=np.int32)
        if not reduced._free:
            return Table(reduced.log_value(new_row, [])), new_row
        return reduced, new_row

    def stack(self, others: Sequence[Self]) -> Function:
        return self._with_rows(np.concatenate([self._rows, *(other._rows for other in others)]))

    def take(self, rows: IntArray) -> Function:
        return self._with_rows(self._rows[rows])

    def _with_rows(self, rows: FloatArray) -> Function:
        return Function(self.log_potential, self.num_discrete, self.num_reals, rows, self.fixed)


def _called(function: Callable[..., Any]) -> str:
    return f"the potential '{getattr(function, '__name__', function)}'"
