"""A filter as a sequence of operations on a few reals at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.filtering.births import Births
from hylift.inference.filtering.forms import (
    EPS,
    ROUNDING,
    FilterFactors,
    FloatArray,
    IntArray,
    Measurements,
    Split,
)
from hylift.inference.filtering.kernels import BIRTH, READ, TILT
from hylift.numerics.segments import offsets, ranges
from hylift.numerics.sparse import connected

# The phases of a step, in order. Tilts that reduce precision come after those that add it, so that
# no intermediate density is improper if the final one is proper.
BEARING, PAST, PAST_AWAY, PREDICTING, NEW, NEW_AWAY, FILTERING = range(7)
NUM_PHASES = 7

SMALL = 1e-3
"""Share of the square of a known real below which others are split off a factor before it."""

DTYPES = {
    "kind": np.int8,
    "target": np.int32,
    "step": np.int32,
    "phase": np.int8,
    "offset": np.float64,
    "size": np.float64,
    "slope": np.float64,
}
"""Of the fields of operations with one number each."""


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """Operations of any kind on a sum: Σ coefficient · real + offset.

    A birth adds a real that is this sum plus noise of variance `size`. A tilt multiplies the
    density by exp(-½ size · sum² + slope · sum). A reading writes the mean of the sum, and its
    variance plus `size`.
    """

    kind: NDArray[np.int8]  # (operation,)
    target: NDArray[np.int32]  # (operation,): the real that is born, or the row that is written
    step: NDArray[np.int32]  # (operation,)
    phase: NDArray[np.int8]  # (operation,)
    offset: FloatArray  # (operation,)
    size: FloatArray  # (operation,)
    slope: FloatArray  # (operation,): of tilts
    width: NDArray[np.int32]  # (operation,): number of operands
    variable: NDArray[np.int32]  # (operand,): hidden variables, operation by operation
    coefficient: FloatArray  # (operand,)

    @classmethod
    def of(
        cls,
        kind: int,
        scope: NDArray[Any],
        coefficient: FloatArray,
        step: IntArray,
        phase: Any,
        **given: Any,
    ) -> Operations:
        """Operations of one kind; scope, coefficient: (operation, operand), scope is -1 where there
        is no operand. The other fields are 0 unless given."""
        some = scope >= 0
        values = {"target": 0, "offset": 0.0, "size": 0.0, "slope": 0.0, **given}
        values |= {"kind": kind, "step": step, "phase": phase}
        each = {
            name: np.broadcast_to(np.asarray(value, dtype=DTYPES[name]), len(scope))
            for name, value in values.items()
        }
        return cls(
            **each,
            width=some.sum(axis=1, dtype=np.int32),
            variable=scope[some].astype(np.int32),
            coefficient=np.asarray(coefficient, dtype=np.float64)[some],
        )

    @classmethod
    def joined(cls, parts: Sequence[Operations]) -> Operations:
        """Operations one after the other."""
        nothing = np.zeros((0, 0))
        parts = [cls.of(0, nothing, nothing, np.zeros(0, np.int64), 0), *parts]
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__)
        )

    @property
    def ptr(self) -> IntArray:
        """(operation + 1,): where the operands of each begin."""
        return offsets(self.width)

    def take(self, order: IntArray) -> Operations:
        """The operations in another order."""
        at = ranges(self.ptr[order], self.width[order])
        each = {name: getattr(self, name)[order] for name in (*DTYPES, "width")}
        return Operations(**each, variable=self.variable[at], coefficient=self.coefficient[at])


@dataclass(frozen=True, slots=True, eq=False)
class FilterProgram:
    """All operations in order, and the constants they do not contain."""

    operations: Operations
    log_constant: FloatArray  # (step,)
    error: FloatArray  # (step,): approximate rounding error of log_constant
    num_readings: int

    @classmethod
    def of(
        cls,
        births: Births,
        measured: Measurements,
        step: IntArray,
        end: IntArray,
        measured_step: IntArray,
        num_steps: int,
    ) -> FilterProgram:
        """Readings are the predicted and the filtered hidden reals, then the measurements.

        step, end: (hidden variable,): of its birth, and in which it is filtered.
        measured_step: (measurement,).
        """
        born, rests = _births(births)
        others = [
            form.take(np.flatnonzero(slots < 0))
            for form, slots in zip(births.forms, births.slot, strict=True)
        ]
        squares = Squares(num_steps)
        for form in (*others, *rests):
            squares.add(form)
        reals, count = np.arange(len(step))[:, None], len(step)
        ones = np.ones((count, 1))
        readings = [
            Operations.of(READ, reals, ones, step, PREDICTING, target=reals[:, 0]),
            Operations.of(READ, reals, ones, end, FILTERING, target=count + reals[:, 0]),
        ]
        num_readings = 2 * count + len(measured.ids)
        readings.append(
            Operations.of(
                READ, measured.scope, measured.coefficients, measured_step, PREDICTING,
                target=np.arange(2 * count, num_readings), offset=measured.offset,
                size=measured.var,
            )
        )  # fmt: skip
        both = Operations.joined([born, *squares.tilts, *readings])
        key = (_components(both, count) * num_steps + both.step) * NUM_PHASES + both.phase
        order = np.argsort(key, kind="stable")
        return cls(both.take(order), squares.log_constant, squares.error, num_readings)


def _births(births: Births) -> tuple[Operations, list[FilterFactors]]:
    """Births in order, and the rest of their factors."""
    born, rests = [], []
    for form, slots in zip(births.forms, births.slot, strict=True):
        own = np.flatnonzero(slots >= 0)
        some, slot = form.take(own), slots[own]
        parts, rest = some.split(slot)
        born.append(
            Operations.of(
                BIRTH, rest.scope, parts.coefficients, some.step, BEARING,
                target=some.scope[np.arange(len(own)), slot],
                offset=parts.offset + (parts.coefficients * rest.known).sum(axis=1), size=parts.var,
            )
        )  # fmt: skip
        rests.append(rest)
    joined = Operations.joined(born)
    return joined.take(np.argsort(births.rank[joined.target])), rests


class Squares:
    """Quadratics as sums of squares of sums: tilts, and constants."""

    def __init__(self, num_steps: int) -> None:
        self.tilts: list[Operations] = []
        self.log_constant = np.zeros(num_steps)
        self.error = np.zeros(num_steps)

    def add(self, form: FilterFactors) -> None:
        """Add factors.

        Concave ones are split into densities of one real after another, known ones first: their
        sums are small distances, and nothing cancels.
        """
        if not form.arity:
            self._add_others(form)
            return
        falls = _is_concave(form)
        self._add_others(form.take(np.flatnonzero(~falls)))
        left = form.take(np.flatnonzero(falls))
        slopes = np.abs(left.b)
        while len(left):
            held = left.diagonal < 0
            done = ~held.any(axis=1)
            self._add_others(left.take(np.flatnonzero(done)))
            some = np.flatnonzero(~done)
            left, slopes, held = left.take(some), slopes[some], held[some]
            if not len(left):
                return
            # The largest remaining share: dividing by a small one would amplify noise.
            share = np.where(held, np.abs(left.diagonal) / np.where(held, left.scale, 1.0), 0.0)
            known = np.where(left.is_hidden | (share < SMALL), 0.0, share)
            slot = np.where(known.any(axis=1), np.argmax(known, axis=1), np.argmax(share, axis=1))
            parts, rest = left.split(slot)
            self._add_densities(left, parts, slot)
            linear = np.abs(parts.offset / parts.var)[:, None] * np.abs(parts.coefficients)
            slopes = np.maximum(np.take_along_axis(slopes, parts.others, 1), linear)
            left = replace(rest, b=np.where(np.abs(rest.b) <= ROUNDING * slopes, 0.0, rest.b))

    def _add_densities(self, form: FilterFactors, parts: Split, slot: IntArray) -> None:
        """Add densities of one slot each given the others, split off factors."""
        link = parts.link(slot)
        precision = 1 / parts.var
        offset = (link * form.known).sum(axis=1) - parts.offset
        constant = 0.5 * np.log(precision / (2 * np.pi))
        hidden = form.is_hidden.any(axis=1)
        constant = np.where(hidden, constant, constant - 0.5 * precision * offset**2)
        size = np.abs(link * form.known).sum(axis=1) + np.abs(parts.offset)
        error = np.where(hidden, 0.0, EPS * precision * np.abs(offset) * size)
        self._add_constants(form.step, constant, error)
        some = np.flatnonzero(hidden)
        self.tilts.append(
            Operations.of(
                TILT, form.scope[some], link[some], form.step[some],
                np.where(form.is_new[some], NEW, PAST),
                target=-1, offset=offset[some], size=precision[some],
            )
        )  # fmt: skip

    def _add_others(self, form: FilterFactors) -> None:
        """Add any quadratics, of their hidden reals.

        Reals are scaled so that their squares have coefficients of ±1: what counts as noise does
        not depend on the user's units.
        """
        form = form.absorbed()
        self._add_constants(form.step, form.c, form.error)
        form = form.take(np.flatnonzero(form.A.any(axis=(1, 2)) | form.b.any(axis=1)))
        if not len(form):
            return
        unit = _units(form)
        values, vectors = np.linalg.eigh(form.A * unit[:, :, None] * unit[:, None, :])
        curvature = -2 * values
        largest = np.maximum(np.abs(curvature).max(axis=1), form.scale.any(axis=1))[:, None]
        curvature[np.abs(curvature) <= ROUNDING * largest] = 0.0
        b = form.b * unit
        slope = (b[:, None, :] @ vectors)[:, 0]
        slope[np.abs(slope) <= ROUNDING * np.abs(b).max(axis=1, keepdims=True)] = 0.0
        factor, term = np.nonzero((curvature != 0) | (slope != 0))
        away = curvature[factor, term] < 0
        self.tilts.append(
            Operations.of(
                TILT, form.scope[factor], vectors[factor, :, term] / unit[factor],
                form.step[factor], np.where(form.is_new[factor], NEW, PAST) + away,
                target=-1, size=curvature[factor, term], slope=slope[factor, term],
            )
        )  # fmt: skip

    def _add_constants(self, step: IntArray, constant: FloatArray, error: FloatArray) -> None:
        self.log_constant += np.bincount(step, constant, len(self.log_constant))
        self.error += np.bincount(step, error, len(self.error))


def _is_concave(form: FilterFactors) -> NDArray[np.bool_]:
    """(factor,): whether it is concave."""
    falls = form.is_conditional
    some = np.flatnonzero(~falls)
    if len(some):
        left = form.take(some)
        unit = _units(left)
        values = np.linalg.eigvalsh(left.A * unit[:, :, None] * unit[:, None, :])
        largest = np.maximum(np.abs(values).max(axis=1), left.scale.any(axis=1))
        falls[some] = values[:, -1] <= ROUNDING * largest
    return falls


def _units(form: FilterFactors) -> FloatArray:
    """(factor, slot): units of reals in which A_vv is ±1, or was; where it is 0, the largest A_vw
    is about 1, and where that is 0 too, b_v is as large as that of the others."""
    A, diagonal = np.abs(form.A), form.scale
    unit = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    beside = (A * unit[:, None, :]).max(axis=2)
    unit = np.where((unit == 0) & (beside > 0), 1 / np.where(beside > 0, beside, 1.0), unit)
    among = np.sqrt(A.max(axis=2))
    unit = np.where((unit == 0) & (among > 0), 1 / np.where(among > 0, among, 1.0), unit)
    b = np.abs(form.b)
    largest = (b * unit).max(axis=1, keepdims=True)
    largest = np.where(largest > 0, largest, 1.0)
    return np.where(unit > 0, unit, np.where(b > 0, largest / np.where(b > 0, b, 1.0), 1.0))


def _components(operations: Operations, num_variables: int) -> IntArray:
    """(operation,): the component of the graph it belongs to.

    Components are filtered one after the other, so that the state is only as large as the largest.
    """
    of = np.repeat(np.arange(len(operations.width)), operations.width)
    beside = np.flatnonzero(of[1:] == of[:-1])
    some = np.flatnonzero(operations.width)
    leading = np.full(len(operations.width), -1, dtype=np.int64)
    leading[some] = operations.variable[operations.ptr[some]]
    born = np.flatnonzero((operations.kind == BIRTH) & (operations.width > 0))
    begin = np.concatenate([operations.variable[beside], leading[born]])
    end = np.concatenate([operations.variable[beside + 1], operations.target[born]])
    component = connected(num_variables, np.stack([begin, end], axis=1))
    own = np.where(operations.kind == BIRTH, operations.target, leading)
    found = np.zeros(len(own), dtype=np.int64)
    found[own >= 0] = component[own[own >= 0]]
    return found
