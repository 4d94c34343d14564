"""Potentials that a user writes in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hylift.errors import HyliftError, ModelError
from hylift.numerics.programs import Program
from hylift.potentials.base import (
    ANY_STATES,
    REAL,
    ExpectedLogValue,
    FloatArray,
    IntArray,
    Potential,
    checked_flat,
    checked_log_values,
    frozen_floats,
)


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
    `Potential.expected` does, with one array for each of its parameters, and a method `program()`.
    """

    log_potential: Callable[..., Any]
    num_discrete: int = 0
    num_reals: int = 0
    parameters: FloatArray | None = None  # (row, parameter); None: one row without parameters
    symmetric: tuple[tuple[int, ...], ...] = ()
    """Groups of slots that may be exchanged without changing the value, such as `((0, 1),)`:
    positions among the discrete and then the real arguments."""

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
        """The groups of arguments that may be exchanged, in order."""
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
                    f"argument {argument} cannot be symmetric: the potential '{self._name}' has "
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
        return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))

    @property
    def _rows(self) -> FloatArray:
        assert self.parameters is not None  # __post_init__ fills it
        return self.parameters

    @property
    def _name(self) -> str:
        return str(getattr(self.log_potential, "__name__", self.log_potential))

    @property
    def slot_states(self) -> tuple[int, ...]:
        return (ANY_STATES,) * self.num_discrete + (REAL,) * self.num_reals

    @property
    def signature(self) -> tuple[Any, ...]:
        kinds = (self.num_discrete, self.num_reals, self._rows.shape[1], self.symmetric)
        return ("function", self.log_potential, *kinds)

    @property
    def flat(self) -> FloatArray:
        return self._rows

    def with_flat(self, flat: FloatArray) -> Function:
        return replace(self, parameters=checked_flat(flat, self._rows.shape[1]))

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        if first != second and not any({first, second} <= set(group) for group in self.symmetric):
            return None
        return np.arange(self._rows.shape[1])

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        arguments = [
            np.asarray(slot).astype(np.int64 if a < self.num_discrete else np.float64, copy=False)
            for a, slot in enumerate(slots)
        ]
        shape = np.broadcast_shapes(np.shape(row), *(np.shape(a) for a in arguments))
        values = self._called(*arguments, *np.moveaxis(self._rows[row], -1, 0))
        return checked_log_values(values, shape, arguments, lambda: self._name)

    def program(self) -> Program | None:
        known = getattr(self.log_potential, "program", None)
        return None if known is None else known()

    def expected(self, row: IntArray, slots: Sequence[FloatArray]) -> ExpectedLogValue | None:
        closed_form = getattr(self.log_potential, "expected", None)
        return None if closed_form is None else closed_form(list(slots), *self._rows[row].T)

    def _called(self, *arguments: NDArray[Any]) -> FloatArray:
        """The values of the function, its own errors as errors of the model."""
        try:
            return np.asarray(self.log_potential(*arguments), dtype=np.float64)
        except HyliftError:
            raise
        except Exception as error:
            raise ModelError(
                f"the potential '{self._name}' failed with {type(error).__name__}: {error}. It is "
                f"called with {len(arguments)} arrays that hold the values of many factors at once "
                "(np.where stands for 'if')"
            ) from error

    @property
    def may_be_simpler(self) -> bool:
        return isinstance(self.log_potential, Reducible)

    def simpler(self, fixed: tuple[int, ...], values: FloatArray) -> Potential | None:
        if not isinstance(self.log_potential, Reducible):
            return None
        return self.log_potential.given(np.concatenate([self._rows, values], axis=1), fixed)
