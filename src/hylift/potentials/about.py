"""Quadratics that are written about points of their own, and so keep digits far from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.numerics.kernels.expansion import expand
from hylift.potentials.base import (
    FloatArray,
    IntArray,
    Potential,
    QuadraticForm,
    frozen_floats,
)
from hylift.potentials.quadratic import ConditionalQuadratic, Quadratic

FAR = 1e6
"""Constant from which on a quadratic is written about where it is stationary."""


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticAbout(Quadratic):
    """log ψ(d, x) = zᵀ A(d) z + b(d)ᵀ z + c(d) with z = x − origin(d).

    With a mean of 10⁹ the coefficients about 0 would be as large as 10¹⁸, and cancel each other.
    """

    origin: FloatArray  # (row, states..., real slot)
    A: FloatArray  # (row, states..., real slot, real slot)
    b: FloatArray  # (row, states..., real slot)
    c: FloatArray  # (row, states...); -inf marks what is impossible

    def __post_init__(self) -> None:
        moved = ConditionalQuadratic(self.A, self.b, self.c)
        origin = frozen_floats(self.origin, "the origin of a quadratic")
        if origin.shape != moved.b.shape:
            raise ModelError(
                f"a quadratic has an origin per real slot, of the shape {moved.b.shape} of b, not "
                f"{origin.shape}"
            )
        for name, part in zip("Abc", moved.coefficients, strict=True):
            object.__setattr__(self, name, part)
        object.__setattr__(self, "origin", origin)

    @property
    def moved(self) -> ConditionalQuadratic:
        """The quadratic of reals less the origin."""
        return ConditionalQuadratic(self.A, self.b, self.c)

    @property
    def coefficients(self) -> tuple[FloatArray, ...]:
        return self.origin, self.A, self.b, self.c

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        num_discrete = self.num_discrete_slots
        states = [np.asarray(s).astype(np.int64, copy=False) for s in slots[:num_discrete]]
        own = [np.asarray(x) - self.origin[(row, *states, i)]
               for i, x in enumerate(slots[num_discrete:])]  # fmt: skip
        return self.moved.log_value(row, [*states, *own])

    def at_reals(
        self, row: IntArray, observed: list[int], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        hidden = [i for i in range(self.num_reals) if i not in observed]
        origin = self.origin[row]
        seen = values.reshape(len(row), *(1,) * (origin.ndim - 2), len(observed))
        rest, new_row = self.moved.at_reals(row, observed, seen - origin[..., observed])
        if isinstance(rest, ConditionalQuadratic):
            return QuadraticAbout(origin[..., hidden], *rest.coefficients), new_row
        return rest, new_row

    def quadratic(self) -> QuadraticForm:
        form, origin = about_points(self)
        slope, value = np.empty(form.b.shape), np.empty(form.c.shape)
        expand(*form, np.arange(self.num_rows, dtype=np.int32), -origin, slope, value)
        return QuadraticForm(form.A, slope, value)


def about_points(potential: Potential) -> tuple[QuadraticForm, FloatArray]:
    """The quadratic form of a potential that has one, and the points about which it is written,
    (row, joint state, real slot), or (1, 1, real slot) of zeros."""
    if isinstance(potential, QuadraticAbout):
        form = potential.form
        return form, potential.origin.reshape(form.b.shape)
    known = potential.quadratic()
    assert known is not None
    return known, np.zeros((1, 1, known.num_reals))
