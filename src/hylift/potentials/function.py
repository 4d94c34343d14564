"""Potentials that a user writes in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hylift.errors import HyliftError, ModelError
from hylift.potentials.base import (
    ANY_STATES,
    REAL,
    Expectation,
    FloatArray,
    IntArray,
    Potential,
    checked_flat,
    frozen_floats,
)
from hylift.potentials.table import Table


@runtime_checkable
class Reducible(Protocol):
    """A function that knows when it is something simpler."""

    def given(self, parameters: FloatArray, fixed: tuple[int, ...]) -> Potential | None:
        """The potential of the other arguments, with a row per row of parameters, where these
        arguments are known; None where it is no simpler. `parameters`: as those of `Function`."""


@dataclass(frozen=True, slots=True, eq=False)
class Function(Potential):
    """Any vectorised `log_potential(*discrete slots, *real slots, *parameters)`.

    It is called with arrays that broadcast together: states as integers, reals and parameters as
    floats. It may return -inf, but neither NaN nor +inf. Evidence may make it a simpler potential,
    if it is `Reducible`. It may have a method `expected(slots, *parameters)`, which does what
    `Potential.expected` does, with one array for each of its parameters.
    """

    log_potential: Callable[..., Any]
    num_discrete: int = 0
    num_reals: int = 0
    parameters: FloatArray | None = None  # (row, parameter); None: one row without parameters
    fixed: tuple[int, ...] = ()
    """Arguments that evidence has filled, increasing; their values are the last parameters."""
    symmetric: tuple[tuple[int, ...], ...] = ()
    """Groups of arguments that may be exchanged without changing the value, such as `((0, 1),)`:
    positions among the discrete and then the real arguments. Fixed ones leave their group."""

    def __post_init__(self) -> None:
        if self.num_discrete < 0 or self.num_reals < 0 or self.num_discrete + self.num_reals == 0:
            raise ModelError(
                f"a function takes at least one slot, not {self.num_discrete} discrete and "
                f"{self.num_reals} real ones: say num_discrete=… or num_reals=…"
            )
        given = np.zeros((1, 0)) if self.parameters is None else self.parameters
        parameters = frozen_floats(given, "a function's parameters", ndim=2)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "symmetric", self._checked_symmetric())

    def _checked_symmetric(self) -> tuple[tuple[int, ...], ...]:
        """The groups of arguments that may be exchanged: free ones, in order."""
        try:
            groups = [tuple(operator.index(a) for a in group) for group in self.symmetric]
        except TypeError:
            raise ModelError(
                "symmetric arguments are groups of positions, such as [(0, 1)], "
                f"not {self.symmetric!r}"
            ) from None
        num_arguments = self.num_discrete + self.num_reals
        everything = [argument for group in groups for argument in group]
        for argument in everything:
            if not 0 <= argument < num_arguments:
                raise ModelError(
                    f"argument {argument} cannot be symmetric: {_called(self.log_potential)} has "
                    f"the arguments 0 to {num_arguments - 1}"
                )
            if everything.count(argument) > 1:
                raise ModelError(
                    f"argument {argument} stands more than once among the symmetric ones, "
                    f"{self.symmetric!r}: join groups that share an argument"
                )
        for group in groups:
            if len({argument < self.num_discrete for argument in group}) > 1:
                raise ModelError(
                    f"the arguments {group} cannot be symmetric: the first {self.num_discrete} are "
                    "discrete, the others real"
                )
        free = (tuple(sorted(a for a in group if a not in self.fixed)) for group in groups)
        return tuple(sorted(group for group in free if len(group) > 1))

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
        kinds = (self.num_discrete, self.num_reals, self.fixed, self._rows.shape[1], self.symmetric)
        return ("function", self.log_potential, *kinds)

    @property
    def flat(self) -> FloatArray:
        return self._rows

    def with_flat(self, flat: FloatArray) -> Function:
        return self._with_rows(checked_flat(flat, self._rows.shape[1]))

    @property
    def averages(self) -> bool:
        return False

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        i, j = self._free[first], self._free[second]
        if i != j and not any(i in group and j in group for group in self.symmetric):
            return None
        return np.arange(self._rows.shape[1])

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

    def expected(self, row: IntArray, slots: Sequence[FloatArray]) -> Expectation | None:
        closed_form = getattr(self.log_potential, "expected", None)
        if closed_form is None or any(argument < self.num_discrete for argument in self.fixed):
            return None
        columns = self._rows[row].T
        num_own = len(columns) - len(self.fixed)
        # An observed real is a Gaussian without variance.
        known = [np.column_stack([value, np.zeros_like(value)]) for value in columns[num_own:]]
        given = dict(zip([*self._free, *self.fixed], [*slots, *known], strict=True))
        found = closed_form([given[argument] for argument in sorted(given)], *columns[:num_own])
        if found is None:
            return None
        return Expectation(found[0], [found[1][argument] for argument in self._free])

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

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        filled = [*self.fixed, *self._filled(slots)]
        num_own = self._rows.shape[1] - len(self.fixed)
        rows = self._rows[row]
        columns = np.concatenate([rows[:, num_own:], self._ordered(slots, values)], axis=1)
        columns = columns[:, np.argsort(filled)]
        reduced = Function(
            self.log_potential,
            self.num_discrete,
            self.num_reals,
            np.concatenate([rows[:, :num_own], columns], axis=1),
            tuple(sorted(filled)),
            self.symmetric,
        )
        new_row = np.arange(len(row), dtype=np.int32)
        if not reduced._free:
            return Table(reduced.log_value(new_row, [])), new_row
        if isinstance(self.log_potential, Reducible):
            simpler = self.log_potential.given(reduced._rows, reduced.fixed)
            if simpler is not None:
                return simpler, new_row
        return reduced, new_row

    def _filled(self, slots: tuple[int, ...]) -> list[int]:
        """The arguments that take the values of observed slots.

        Of exchangeable ones the last, so that it makes no difference which of them were observed;
        unless the slots that remain would then stand in another order than their variables.
        """
        own = [self._free[slot] for slot in slots]
        last = dict(zip(own, own, strict=True))
        for group in self.symmetric:
            inside = [argument for argument in own if argument in group]
            last.update(zip(inside, group[len(group) - len(inside) :], strict=True))
        alike = {argument: group for group in self.symmetric for argument in group}
        left = [argument for argument in self._free if argument not in own]
        left_then = [argument for argument in self._free if argument not in last.values()]
        same = all(
            old == new or alike.get(old, old) == alike.get(new, new)
            for old, new in zip(left, left_then, strict=True)
        )
        return [last[argument] for argument in own] if same else own

    def _ordered(self, slots: tuple[int, ...], values: FloatArray) -> FloatArray:
        """values (factor, slot), those of exchangeable slots in increasing order."""
        ordered = np.array(values, dtype=np.float64)
        for group in self.symmetric:
            inside = [k for k, slot in enumerate(slots) if self._free[slot] in group]
            ordered[:, inside] = np.sort(ordered[:, inside], axis=1)
        return ordered

    def stack(self, others: Sequence[Self]) -> Function:
        return self._with_rows(np.concatenate([self._rows, *(other._rows for other in others)]))

    def take(self, rows: IntArray) -> Function:
        return self._with_rows(self._rows[rows])

    def _with_rows(self, rows: FloatArray) -> Function:
        return replace(self, parameters=rows)


def _called(function: Callable[..., Any]) -> str:
    return f"the potential '{getattr(function, '__name__', function)}'"
