"""Potentials: the members that a class must have, and what solvers may ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.numerics.programs import Program

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]

REAL = 0
"""Entry of `Potential.slot_states` for a slot that takes a real variable."""

ANY_STATES = -1
"""Entry of `Potential.slot_states` for a slot that takes a discrete variable of any size."""


class QuadraticForm(NamedTuple):
    """xᵀ A x + bᵀ x + c of the real slots, for every joint state of the discrete slots."""

    A: FloatArray  # (row, joint state, real slot, real slot)
    b: FloatArray  # (row, joint state, real slot)
    c: FloatArray  # (row, joint state); -inf marks what is impossible

    @property
    def num_reals(self) -> int:
        return self.b.shape[-1]

    def magnitude(self, row: IntArray, x: FloatArray) -> FloatArray:
        """(factor,): the sum of the absolute values of all terms, in the joint state where it is
        largest; row: (factor,), x: (factor, real slot)."""
        A, b, x = np.abs(self.A), np.abs(self.b), np.abs(x)[:, None]
        total = np.abs(np.where(np.isfinite(self.c), self.c, 0.0))[row]
        for i in range(self.num_reals):
            slope = b[..., i][row]
            for j in range(self.num_reals):
                slope += A[..., i, j][row] * x[..., j]
            total += slope * x[..., i]
        return np.asarray(total.max(axis=1))


class ExpectedLogValue(NamedTuple):
    """Expected log-values, and their gradients."""

    value: FloatArray  # (factor,)
    gradients: Sequence[FloatArray]  # per slot, in the shape of its probabilities or moments


class Potential(ABC):
    """The logarithm of a factor's value, for many factors at once.

    Parameters are stacked in rows. A factor names its row, so factors may share one row, have one
    each, or anything between. Wherever a method takes `row` and per-slot arrays, they broadcast.

    A subclass must have the abstract members. The others are capabilities with a default that
    fits every potential: a subclass that can do better says so by having its own.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def slot_states(self) -> tuple[int, ...]:
        """Per slot: its number of states, or `REAL`, or `ANY_STATES`."""

    @property
    @abstractmethod
    def flat(self) -> FloatArray:
        """(row, entry): all parameters of a row in one line; a view where they are stored so."""

    @abstractmethod
    def with_flat(self, flat: FloatArray) -> Self:
        """The potential of the same slots with other rows, laid out as in `flat`."""

    @abstractmethod
    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        """Log-potential at points: one array per slot (states as integers), broadcast together."""

    def quadratic(self) -> QuadraticForm | None:
        """The potential as a quadratic form per joint state; None where it has no such form.

        Solvers have closed forms for it. A potential of discrete slots alone has no reals in it.
        """
        return None

    def program(self) -> Program | None:
        """The log-value of slots, and of columns of `flat`, for compiled code; None where only
        `log_value` knows it, which also says what is wrong where the program is NaN or +inf."""
        return None

    @property
    def signature(self) -> Hashable:
        """Equal for potentials whose rows may be stacked into one."""
        return (type(self), self.slot_states, self.flat.shape[1])

    @property
    def averages(self) -> bool:
        """True if log-values are linear in the parameters: the mean row has their mean."""
        return False

    @property
    def constants(self) -> slice | None:
        """The entries of `flat` to which a number is added to add it to all log-values of a row;
        None where there are none."""
        return None

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        """(entry,): `flat[:, exchange(i, j)]` are the rows with slots i and j swapped.

        None where these slots cannot be swapped.
        """
        return None

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        """The potential of the remaining slots when `slots` take `values` (factor, slot).

        Also the row each factor uses in it. With no slot left it is a `Table` of constants.
        """
        from hylift.potentials.reduced import reduced

        return reduced(self, row, slots, values)

    @property
    def may_be_simpler(self) -> bool:
        """True if `simpler` depends on which values are known."""
        return False

    def simpler(self, fixed: tuple[int, ...], values: FloatArray) -> Potential | None:
        """The simpler potential of the other slots, with the same rows, where the `fixed` ones
        have values (row, fixed slot); None where there is none."""
        return None

    @property
    def num_rows(self) -> int:
        """Number of parameter rows."""
        return len(self.flat)

    @property
    def num_reals(self) -> int:
        """Number of real slots."""
        return sum(states == REAL for states in self.slot_states)

    def expected(self, row: IntArray, slots: Sequence[FloatArray]) -> ExpectedLogValue | None:
        """E[log ψ] when the slots are independent; None where only quadrature finds it.

        slots: probabilities (factor, state) of a discrete slot, mean and variance (factor, 2) of
        a real slot, which is Gaussian. The variance of an observed real is 0.
        """
        return None

    @property
    def num_discrete_slots(self) -> int:
        """Number of discrete slots, which come before the real ones wherever solvers are."""
        return sum(states != REAL for states in self.slot_states)

    def stack(self, others: Sequence[Self]) -> Self:
        """One potential with the rows of this one, then those of each other, in order."""
        return self.with_flat(np.concatenate([self.flat, *(other.flat for other in others)]))

    def take(self, rows: IntArray) -> Self:
        """The potential that keeps only these rows, in this order."""
        return self.with_flat(self.flat[rows])

    def tabulate(self, rows: IntArray, num_states: Sequence[int]) -> FloatArray:
        """(row, states of slot 0, …): log-values of some rows, of discrete slots of these sizes."""
        grid = np.ix_(np.asarray(rows), *(np.arange(size) for size in num_states))
        return self.log_value(grid[0], list(grid[1:]))

    def symmetric_slots(self) -> list[list[int]]:
        """Slots in groups within which they may be exchanged in all rows."""
        groups: list[list[int]] = []
        for slot in range(len(self.slot_states)):
            for group in groups:
                swapped = self.exchange(group[0], slot)
                if swapped is not None and np.array_equal(self.flat[:, swapped], self.flat):
                    group.append(slot)
                    break
            else:
                groups.append([slot])
        return groups


def expected_log_value(
    potential: Potential, row: IntArray, slots: Sequence[FloatArray]
) -> ExpectedLogValue | None:
    """`potential.expected(row, slots)`, or a `ModelError` if that is no such expectation."""
    found = shaped_expectation(potential, row, slots)
    if found is not None and any(np.isnan(part).any() for part in (found.value, *found.gradients)):
        raise ModelError(f"expected() of {type(potential).__name__} returned NaN")
    return found


def shaped_expectation(
    potential: Potential, row: IntArray, slots: Sequence[FloatArray]
) -> ExpectedLogValue | None:
    """The same, with values that may be NaN."""
    found = potential.expected(row, slots)
    if found is None:
        return None
    name = type(potential).__name__
    try:
        value, gradients = np.asarray(found[0], dtype=np.float64), [np.asarray(g) for g in found[1]]
    except (TypeError, ValueError, IndexError) as error:
        raise ModelError(
            f"expected() of {name} must return values and a list of gradients, not {found!r}"
        ) from error
    shapes, wanted = [g.shape for g in gradients], [slot.shape for slot in slots]
    if value.shape != row.shape or shapes != wanted:
        raise ModelError(
            f"expected() of {name} must return values of shape {row.shape} and gradients of shapes "
            f"{wanted}, like its slots, not {value.shape} and {shapes}"
        )
    return ExpectedLogValue(value, gradients)


def expectation_given(values: FloatArray, weights: Sequence[FloatArray], kept: int) -> FloatArray:
    """(factor, point): expectations of values (factor, point of slot 0, …) given each point of one
    slot, over the points of all others."""
    for axis in reversed(range(len(weights))):
        if axis != kept:
            last = np.moveaxis(values, axis + 1, -1)
            values = np.einsum("f...t,ft->f...", last, weights[axis])
    return values


def along_axis(axis: int, arity: int, num_factors: int) -> tuple[int, ...]:
    """Shape that lays (factor, point) along one axis of a (factor, slot 0, slot 1, ...) grid."""
    return (num_factors,) + (1,) * axis + (-1,) + (1,) * (arity - axis - 1)


def on_grid(potential: Potential, row: IntArray, points: Sequence[NDArray[Any]]) -> FloatArray:
    """(factor, point of slot 0, point of slot 1, …): log-values at all combinations of points
    (factor, point) of the slots."""
    arity, shape = len(points), (len(row), *(of_slot.shape[1] for of_slot in points))
    grid = [at.reshape(along_axis(axis, arity, len(row))) for axis, at in enumerate(points)]
    values = potential.log_value(row.reshape((-1,) + (1,) * arity), grid)
    return np.broadcast_to(values, shape)


def checked_flat(flat: Any, num_entries: int) -> FloatArray:
    """`flat` as float64 (row, entry), or a `ModelError` if its rows have another length."""
    array = np.asarray(flat, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != num_entries:
        raise ModelError(
            f"rows of this potential have {num_entries} entries each, so `flat` is an array "
            f"(row, {num_entries}), not one of shape {array.shape}"
        )
    return array


def checked_log_values(
    values: FloatArray,
    shape: tuple[int, ...],
    arguments: Sequence[NDArray[Any]],
    name: Callable[[], str],
) -> FloatArray:
    """Values that a user's code returned, in this shape; a `ModelError` where they are wrong.

    The name of the potential is asked for then only: a long formula takes long to write.
    """
    try:
        values = np.broadcast_to(values, shape)
    except ValueError:
        raise ModelError(
            f"the potential '{name()}' returned the shape {values.shape} "
            f"for arguments that broadcast to {shape}"
        ) from None
    bad = np.isnan(values) | (values == np.inf)
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        point = [np.broadcast_to(a, shape)[where].item() for a in arguments]
        raise ModelError(f"the potential '{name()}' returned {values[where]} at {point}")
    return values


def frozen_floats(
    values: Any, what: str, *, ndim: int | None = None, allow_minus_inf: bool = False
) -> FloatArray:
    """`values` as a read-only float64 array, or a `ModelError` that says what is wrong with it."""
    array = np.asarray(values, dtype=np.float64)
    if ndim is not None and array.ndim != ndim:
        raise ModelError(f"{what} must have {ndim} axes, not {array.ndim} (shape {array.shape})")
    bad = ~np.isfinite(array)
    if allow_minus_inf:
        bad &= array != -np.inf
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ModelError(f"{what} must not contain {array[where]} (at index {where})")
    if array is values or array.base is not None:
        array = array.view()
    array.flags.writeable = False
    return array
