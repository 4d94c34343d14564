"""A filter as a list of operations on a few reals at a time, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph

from hylift.inference.filtering.births import Births
from hylift.inference.filtering.forms import ROUNDING, FloatArray, Forms, IntArray
from hylift.inference.filtering.kernels.run import BIRTH, READ, TILT
from hylift.inference.filtering.measured import Measurements

# What happens in a step, in this order. Tilts that take precision away come after those that add
# it, so that nothing fails half-way that is a distribution in the end.
BEARING, PAST, PAST_AWAY, PREDICTING, NEW, NEW_AWAY, FILTERING = range(7)
NUM_PHASES = 7


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """Operations of any kind on Σ coefficient · real.

    A birth makes a real that is this sum plus noise of mean `first` and variance `second`. A tilt
    multiplies the density by exp(-½ first · sum² + second · sum). A reading writes mean and
    variance of the sum, with `first` and `second` added to them.
    """

    kind: NDArray[np.int8]  # (operation,)
    target: NDArray[np.int32]  # (operation,): the real that is born, or the row that is written
    step: NDArray[np.int32]  # (operation,)
    phase: NDArray[np.int8]  # (operation,)
    first: FloatArray  # (operation,)
    second: FloatArray  # (operation,)
    width: NDArray[np.int32]  # (operation,): number of operands
    variable: NDArray[np.int32]  # (operand,): hidden variables, one operation's after another's
    coefficient: FloatArray  # (operand,)

    @classmethod
    def equal(
        cls,
        kind: int,
        target: Any,
        step: IntArray,
        phase: Any,
        first: Any,
        second: Any,
        scope: NDArray[Any],
        coefficient: FloatArray,
    ) -> Operations:
        """Operations with as many operands each; scope, coefficient: (operation, operand)."""
        count, width = scope.shape

        def each(values: Any, dtype: Any) -> NDArray[Any]:
            return np.broadcast_to(np.asarray(values, dtype=dtype), (count,))

        return cls(
            each(kind, np.int8),
            each(target, np.int32),
            each(step, np.int32),
            each(phase, np.int8),
            each(first, np.float64),
            each(second, np.float64),
            each(width, np.int32),
            scope.astype(np.int32).ravel(),
            np.asarray(coefficient, dtype=np.float64).ravel(),
        )

    @classmethod
    def joined(cls, parts: Sequence[Operations]) -> Operations:
        """Operations one behind the other."""
        nothing = cls.equal(
            0, 0, np.zeros(0, np.int64), 0, 0.0, 0.0, np.zeros((0, 0)), np.zeros((0, 0))
        )
        parts = [nothing, *parts]
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__)
        )

    @property
    def ptr(self) -> IntArray:
        """(operation + 1,): where the operands of each begin."""
        return np.concatenate([[0], np.cumsum(self.width, dtype=np.int64)])

    def take(self, order: IntArray) -> Operations:
        """The operations in another order."""
        width = self.width[order]
        begin = np.cumsum(width, dtype=np.int64) - width
        at = np.repeat(self.ptr[order] - begin, width) + np.arange(int(width.sum()))
        return Operations(
            self.kind[order],
            self.target[order],
            self.step[order],
            self.phase[order],
            self.first[order],
            self.second[order],
            width,
            self.variable[at],
            self.coefficient[at],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All operations in order, and what they leave constant."""

    operations: Operations
    log_constant: FloatArray  # (step,)
    num_readings: int

    @classmethod
    def of(
        cls,
        births: Births,
        measured: Sequence[Measurements],
        step: IntArray,
        end: IntArray,
        measured_step: IntArray,
        num_steps: int,
    ) -> Program:
        """Readings are the predicted and the filtered hidden reals, then what is measured.

        step, end: (hidden variable,): of its birth, and in which it is filtered.
        measured_step: (measurement,).
        """
        born, tilts, constant = _factors(births, num_steps)
        reals, count = np.arange(len(step))[:, None], len(step)
        ones = np.ones((count, 1))
        readings = [
            Operations.equal(READ, reals[:, 0], step, PREDICTING, 0.0, 0.0, reals, ones),
            Operations.equal(READ, count + reals[:, 0], end, FILTERING, 0.0, 0.0, reals, ones),
        ]
        row = 2 * count
        for some in measured:
            target = row + np.arange(len(some.ids))
            own = measured_step[target - 2 * count]
            readings.append(
                Operations.equal(
                    READ, target, own, PREDICTING, some.offset, some.var, some.scope,
                    some.coefficients,
                )
            )  # fmt: skip
            row += len(some.ids)
        both = Operations.joined([born, *tilts, *readings])
        key = (_components(births, both, count) * num_steps + both.step) * NUM_PHASES + both.phase
        return cls(both.take(np.argsort(key, kind="stable")), constant, row)


def _factors(births: Births, num_steps: int) -> tuple[Operations, list[Operations], FloatArray]:
    """Births in their order, tilts, and (step,) the constants of both."""
    born, tilts, constant = [], [], np.zeros(num_steps)
    for form, slots in zip(births.forms, births.slot, strict=True):
        own = np.flatnonzero(slots >= 0)
        some, slot = form.take(own), slots[own]
        parts, rest = some.split(slot)
        born.append(
            Operations.equal(
                BIRTH, some.scope[np.arange(len(own)), slot], some.step, BEARING, parts.offset,
                parts.var, rest.scope, parts.coefficients,
            )
        )  # fmt: skip
        left = ~parts.is_density
        constant += np.bincount(rest.step[~left], rest.c[~left], num_steps)
        for others in (form.take(np.flatnonzero(slots < 0)), rest.take(np.flatnonzero(left))):
            constant += np.bincount(others.step, others.c, num_steps)
            if others.arity and len(others):
                tilts.append(_tilts(others))
    joined = Operations.joined(born)
    return joined.take(np.argsort(births.rank[joined.target])), tilts, constant


def _tilts(form: Forms) -> Operations:
    """The quadratics as sums of squares."""
    values, vectors = np.linalg.eigh(form.A)
    curvature = -2 * values
    largest = np.abs(curvature).max(axis=1, keepdims=True)
    curvature[np.abs(curvature) <= ROUNDING * largest] = 0.0
    slope = (form.b[:, None, :] @ vectors)[:, 0]
    size = np.abs(form.b).sum(axis=1, keepdims=True)
    slope[np.abs(slope) <= ROUNDING * size] = 0.0
    factor, term = np.nonzero((curvature != 0) | (slope != 0))
    away = curvature[factor, term] < 0
    return Operations.equal(
        TILT,
        -1,
        form.step[factor],
        np.where(form.is_new[factor], NEW, PAST) + away,
        curvature[factor, term],
        slope[factor, term],
        form.scope[factor],
        vectors[factor, :, term],
    )


def _components(births: Births, operations: Operations, num_variables: int) -> IntArray:
    """(operation,): the component of the graph it belongs to.

    One component is filtered after another, so that the state is as large as that of the largest.
    """
    pairs = [np.zeros((2, 0), dtype=np.int32)]
    for form in births.forms:
        pairs += [np.stack([form.scope[:, 0], form.scope[:, at]]) for at in range(1, form.arity)]
    ends = np.concatenate(pairs, axis=1)
    links = sp.coo_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])),
                         shape=(num_variables, num_variables))  # fmt: skip
    _, component = csgraph.connected_components(links, directed=False)
    found = np.zeros(len(operations.kind), dtype=np.int64)
    some = np.flatnonzero(operations.width)
    found[some] = component[operations.variable[operations.ptr[some]]]
    born = np.flatnonzero(operations.kind == BIRTH)
    found[born] = component[operations.target[born]]
    return found
