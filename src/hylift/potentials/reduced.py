"""Potentials of any class with some slots known, or with their slots in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.programs import COLUMN, SLOT, Program
from hylift.potentials.about import QuadraticAbout
from hylift.potentials.base import (
    ANY_STATES,
    REAL,
    ExpectedLogValue,
    FloatArray,
    IntArray,
    Potential,
    QuadraticForm,
    checked_flat,
    checked_log_values,
    shaped_expectation,
)
from hylift.potentials.counted import Counted
from hylift.potentials.function import Function
from hylift.potentials.quadratic import closed_form
from hylift.potentials.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Reduced(Potential):
    """A potential some of whose slots have known values."""

    whole: Potential
    """With a row for each row of this one."""
    slots: tuple[int, ...]
    """Slots of the whole that are left, in the order of the slots of this one."""
    fixed: tuple[int, ...]
    """The other slots of the whole, increasing."""
    values: FloatArray  # (row, fixed slot)

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return tuple(self.whole.slot_states[slot] for slot in self.slots)

    @property
    def signature(self) -> tuple[Any, ...]:
        return ("reduced", self.whole.signature, self.slots, self.fixed)

    @property
    def flat(self) -> FloatArray:
        return np.concatenate([self.whole.flat, self.values], axis=1)

    def with_flat(self, flat: FloatArray) -> Reduced:
        num_own = self.whole.flat.shape[1]
        flat = checked_flat(flat, num_own + len(self.fixed))
        whole = self.whole.with_flat(flat[:, :num_own])
        return Reduced(whole, self.slots, self.fixed, flat[:, num_own:])

    @property
    def averages(self) -> bool:
        return not self.fixed and self.whole.averages

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        swapped = self.whole.exchange(self.slots[first], self.slots[second])
        if swapped is None:
            return None
        return np.concatenate([swapped, len(swapped) + np.arange(len(self.fixed))])

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        given = dict(zip(self.slots, slots, strict=True))
        for place, slot in enumerate(self.fixed):
            known = self.values[row, place]
            is_real = self.whole.slot_states[slot] == REAL
            given[slot] = known if is_real else known.astype(np.int64)
        arguments = [np.asarray(given[slot]) for slot in range(len(given))]
        values = np.asarray(self.whole.log_value(row, arguments), dtype=np.float64)
        if isinstance(self.whole, Function):  # which checks what it returns
            return values
        shape = np.broadcast_shapes(np.shape(row), *(a.shape for a in arguments))
        return checked_log_values(values, shape, arguments, lambda: type(self.whole).__name__)

    def program(self) -> Program | None:
        whole, known = self.whole.program(), self.whole.flat.shape[1]
        sources = {(SLOT, slot): (SLOT, place) for place, slot in enumerate(self.slots)}
        sources |= {(SLOT, slot): (COLUMN, known + place) for place, slot in enumerate(self.fixed)}
        return whole and whole.with_sources(sources)

    def quadratic(self) -> QuadraticForm | None:
        closed = closed_form(self.whole)
        if closed is None:
            return None
        order = _discrete_first(self.whole)
        fixed = sorted(range(len(self.fixed)), key=lambda place: order.index(self.fixed[place]))
        known = tuple(order.index(self.fixed[place]) for place in fixed)
        rest, row = closed.reduce(np.arange(self.num_rows), known, self.values[:, fixed])
        form = rest.quadratic()
        return form and QuadraticForm(*(part[row] for part in form))

    def expected(self, row: IntArray, slots: Sequence[FloatArray]) -> ExpectedLogValue | None:
        if any(self.whole.slot_states[slot] == ANY_STATES for slot in self.fixed):
            return None
        given = dict(zip(self.slots, slots, strict=True))
        for place, slot in enumerate(self.fixed):
            known, states = self.values[row, place], self.whole.slot_states[slot]
            if states == REAL:  # a Gaussian without variance
                given[slot] = np.column_stack([known, np.zeros_like(known)])
            else:
                given[slot] = np.eye(states)[known.astype(np.int64)]
        found = shaped_expectation(self.whole, row, [given[slot] for slot in range(len(given))])
        if found is None:
            return None
        gradients = [found.gradients[slot] for slot in self.slots]
        if any(np.isnan(part).any() for part in (found.value, *gradients)):
            return None  # a closed form that divides by variances
        return ExpectedLogValue(found.value, gradients)

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        known = [*self.fixed, *(self.slots[slot] for slot in slots)]
        every = np.concatenate([self.values[row], values], axis=1)
        return _fixed(self.whole, self.slots, row, known, every)

    def stack(self, others: Sequence[Self]) -> Reduced:
        whole = self.whole.stack([other.whole for other in others])
        values = np.concatenate([self.values, *(other.values for other in others)])
        return Reduced(whole, self.slots, self.fixed, values)

    def take(self, rows: IntArray) -> Reduced:
        return Reduced(self.whole.take(rows), self.slots, self.fixed, self.values[rows])


def standard_form(
    potential: Potential, *, keeps_origins: bool = False
) -> tuple[Potential, tuple[int, ...]]:
    """The same potential as solvers take it, and its slots in that order: discrete ones first.

    With a quadratic form it is a table or a conditional quadratic. Otherwise its `log_value` is
    all that solvers use, and what it returns is checked.
    keeps_origins: quadratics about points of their own stay as they are
    """
    order = _discrete_first(potential)
    is_kept = keeps_origins and isinstance(potential, QuadraticAbout)
    if is_kept or isinstance(potential, Function | Counted):
        return potential, order
    closed = closed_form(potential)
    if closed is not None:
        return closed, order
    if isinstance(potential, Reduced):
        slots = tuple(potential.slots[slot] for slot in order)
        return potential if slots == potential.slots else replace(potential, slots=slots), order
    return Reduced(potential, order, (), np.zeros((potential.num_rows, 0))), order


def _discrete_first(potential: Potential) -> tuple[int, ...]:
    """The slots of a potential, real ones last."""
    states = potential.slot_states
    return tuple(sorted(range(len(states)), key=lambda slot: states[slot] == REAL))


def reduced(
    potential: Potential, row: IntArray, slots: tuple[int, ...], values: FloatArray
) -> tuple[Potential, IntArray]:
    """The default of `Potential.reduce`, for a potential of any class."""
    ordered, order = standard_form(potential)
    if ordered.quadratic() is not None and list(order) == sorted(order):
        return ordered.reduce(row, slots, values)
    return _fixed(potential, tuple(range(len(order))), row, list(slots), values)


def _fixed(
    whole: Potential,
    slots: tuple[int, ...],
    row: IntArray,
    known: list[int],
    values: FloatArray,
) -> tuple[Potential, IntArray]:
    """A potential whose slots known take values (factor, slot), and each factor's row in it.

    slots: those that were left before, in order.
    """
    groups = whole.symmetric_slots()
    ordered = np.array(values, dtype=np.float64)
    for group in groups:
        inside = [place for place, slot in enumerate(known) if slot in group]
        ordered[:, inside] = np.sort(ordered[:, inside], axis=1)
    known = _last_of_symmetric(groups, slots, known)
    left = tuple(slot for slot in slots if slot not in known)
    new_row = np.arange(len(row), dtype=np.int32)
    order = np.argsort(known)
    found = Reduced(whole.take(row), left, tuple(sorted(known)), ordered[:, order])
    if not left:
        return Table(found.log_value(new_row, [])), new_row
    return found.whole.simpler(found.fixed, found.values) or found, new_row


def _last_of_symmetric(
    groups: list[list[int]], slots: tuple[int, ...], known: list[int]
) -> list[int]:
    """Slots that take the known values.

    Of exchangeable ones the last, so that it makes no difference which of them are known; unless
    the slots that remain would then stand in another order than their variables.
    """
    last = dict(zip(known, known, strict=True))
    group_of: dict[int, int] = {}
    for number, group in enumerate(groups):
        inside = [slot for slot in known if slot in group]
        last.update(zip(inside, group[len(group) - len(inside) :], strict=True))
        group_of |= dict.fromkeys(group, number)
    left = [slot for slot in slots if slot not in known]
    left_then = [slot for slot in slots if slot not in last.values()]
    alike = all(group_of[a] == group_of[b] for a, b in zip(left, left_then, strict=False))
    return list(last.values()) if alike and len(left) == len(left_then) else known
