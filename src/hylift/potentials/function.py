"""Potentials that a user writes in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.potentials.base import (
    ANY,
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
    """Any vectorised `log_potential(*slots, *parameters)`.

    It is called with arrays that broadcast together: one per slot (a discrete slot's states
    as numbers), then one per parameter column. It may return -inf, but neither NaN nor +inf.
    """

    log_potential: Callable[..., NDArray[Any]]
    arity: int
    parameters: FloatArray | None = None  # (row, parameter); None: one row without parameters
    fixed: tuple[int, ...] = ()
    """Slots of the original function that evidence has filled: the last parameter columns."""

    def __post_init__(self) -> None:
        if self.arity < 0:
            raise ModelError(f"a function takes zero or more slots, not {self.arity}")
        given = np.zeros((1, 0)) if self.parameters is None else self.parameters
        parameters = frozen_floats(given, "a function's parameters", ndim=2)
        object.__setattr__(self, "parameters", parameters)

    @property
    def _stacked(self) -> FloatArray:
        assert self.parameters is not None  # __post_init__ fills it
        return self.parameters

    @property
    def num_rows(self) -> int:
        return len(self._stacked)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return (ANY,) * self.arity

    @property
    def signature(self) -> tuple[str, Callable[..., Any], int, tuple[int, ...], int]:
        num_parameters = self._stacked.shape[1]
        return ("function", self.log_potential, self.arity, self.fixed, num_parameters)

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        columns = np.moveaxis(self._stacked[row], -1, 0)
        own = columns[: len(columns) - len(self.fixed)]
        arguments: list[NDArray[Any]] = list(slots)
        for slot, values in zip(self.fixed, columns[len(own) :], strict=True):
            arguments.insert(slot, values)
        shape = np.broadcast_shapes(np.shape(row), *(np.shape(a) for a in arguments))
        values = np.asarray(self.log_potential(*arguments, *own), dtype=np.float64)
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
            point = [float(np.broadcast_to(a, shape)[where]) for a in arguments]
            raise ModelError(f"{_called(self.log_potential)} returned {values[where]} at {point}")
        return values

    def expectation(self, row: IntArray, beliefs: Sequence[SlotBelief]) -> FloatArray:
        return expectation_on_grid(self, row, beliefs)

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        remaining = [s for s in range(self.arity + len(self.fixed)) if s not in self.fixed]
        newly = [remaining[slot] for slot in slots]
        order = np.argsort([*self.fixed, *newly])
        num_own = self._stacked.shape[1] - len(self.fixed)
        rows = self._stacked[row]
        filled = np.concatenate([rows[:, num_own:], values], axis=1)[:, order]
        reduced = Function(
            self.log_potential,
            self.arity - len(slots),
            np.concatenate([rows[:, :num_own], filled], axis=1),
            tuple(sorted([*self.fixed, *newly])),
        )
        new_row = np.arange(len(row), dtype=np.int32)
        if reduced.arity == 0:
            return Table(reduced.log_value(new_row, [])), new_row
        return reduced, new_row

    def stack(self, others: Sequence[Self]) -> Function:
        rows = np.concatenate([self._stacked, *(other._stacked for other in others)])
        return Function(self.log_potential, self.arity, rows, self.fixed)

    def take(self, rows: IntArray) -> Function:
        return Function(self.log_potential, self.arity, self._stacked[rows], self.fixed)


def _called(function: Callable[..., Any]) -> str:
    return f"the potential '{getattr(function, '__name__', function)}'"
