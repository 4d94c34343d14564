"""Potentials that are quadratic in their real slots, in every state of their discrete slots."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.errors import ModelError
from hylift.numerics.kernels.expansion import expand
from hylift.potentials.base import (
    REAL,
    FloatArray,
    IntArray,
    Potential,
    QuadraticForm,
    frozen_floats,
)
from hylift.potentials.table import ByState, Table


class Quadratic(ByState):
    """A quadratic of real slots in every state of discrete slots, which come first."""

    __slots__ = ()
    A: FloatArray  # (row, states..., real slot, real slot), symmetric
    b: FloatArray  # (row, states..., real slot)
    c: FloatArray  # (row, states...); -inf marks what is impossible

    @property
    def form(self) -> QuadraticForm:
        """A, b and c, with the states along one axis."""
        shape, reals = (self.num_rows, math.prod(self.c.shape[1:])), self.num_reals
        return QuadraticForm(
            self.A.reshape(*shape, reals, reals),
            self.b.reshape(*shape, reals),
            self.c.reshape(shape),
        )

    @property
    def num_rows(self) -> int:
        return len(self.c)

    @property
    def num_reals(self) -> int:
        return self.b.shape[-1]

    @property
    def num_discrete_slots(self) -> int:
        return self.c.ndim - 1

    @property
    def slot_states(self) -> tuple[int, ...]:
        return self.c.shape[1:] + (REAL,) * self.num_reals

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        discrete = [k for k, slot in enumerate(slots) if slot < self.num_discrete_slots]
        observed = [k for k, slot in enumerate(slots) if slot >= self.num_discrete_slots]
        potential = self
        if discrete:
            known = tuple(slots[k] for k in discrete)
            potential, row = self.at_states(row, known, values[:, discrete])
        if not observed:
            return potential, row
        reals = [slots[k] - self.num_discrete_slots for k in observed]
        return potential.at_reals(row, reals, values[:, observed])

    @abstractmethod
    def at_reals(
        self, row: IntArray, observed: list[int], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        """The potential where these reals are observed, and its rows.

        values: (factor, observed), or (factor, states…, observed)
        """


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalQuadratic(Quadratic):
    """log ψ(d, x) = xᵀ A(d) x + b(d)ᵀ x + c(d): discrete slots d first, then real slots x."""

    A: FloatArray  # (row, states..., real slot, real slot), symmetric
    b: FloatArray  # (row, states..., real slot)
    c: FloatArray  # (row, states...); -inf marks what is impossible

    def __post_init__(self) -> None:
        A = frozen_floats(self.A, "A of a quadratic")
        b = frozen_floats(self.b, "b of a quadratic")
        c = frozen_floats(self.c, "c of a quadratic", allow_minus_inf=True)
        num_reals = b.shape[-1] if b.ndim else 0
        if c.ndim == 0 or num_reals == 0 or 0 in c.shape[1:]:
            raise ModelError(
                "a quadratic has a row axis, one axis of states per discrete slot and at least "
                f"one real slot, not the shapes {A.shape}, {b.shape}, {c.shape} of A, b, c"
            )
        if b.shape != (*c.shape, num_reals) or A.shape != (*c.shape, num_reals, num_reals):
            raise ModelError(
                f"A, b and c of a quadratic disagree: shapes {A.shape}, {b.shape}, {c.shape}; "
                f"for this c, b is {(*c.shape, num_reals)} and "
                f"A is {(*c.shape, num_reals, num_reals)}"
            )
        flipped = np.swapaxes(A, -1, -2)
        if not np.array_equal(A, flipped):
            A = frozen_floats((A + flipped) / 2, "A of a quadratic")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "c", c)

    @classmethod
    def of_form(cls, form: QuadraticForm, sizes: Sequence[int]) -> ConditionalQuadratic:
        """A form for each joint state of discrete slots of these numbers of states."""
        return cls(*(part.reshape(len(part), *sizes, *part.shape[2:]) for part in form))

    @classmethod
    def shared(cls, A: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0) -> ConditionalQuadratic:
        """One quadratic for all factors: A, b, c without the row axis."""
        b = np.atleast_1d(np.asarray(b, dtype=np.float64))
        c = np.asarray(c, dtype=np.float64)
        if c.ndim == 0:
            c = np.broadcast_to(c, b.shape[:-1])
        return cls(np.asarray(A, dtype=np.float64)[None], b[None], c[None])

    @classmethod
    def square(cls, weight: float) -> ConditionalQuadratic:
        """weight * x²."""
        return cls.shared([[weight]], [0.0])

    @classmethod
    def product(cls, weight: float) -> ConditionalQuadratic:
        """weight * x * y."""
        return cls.shared([[0.0, weight / 2], [weight / 2, 0.0]], [0.0, 0.0])

    @classmethod
    def squared_distance(
        cls, weight: ArrayLike, coefficients: ArrayLike, target: ArrayLike = 0.0
    ) -> ConditionalQuadratic:
        """-weight * (Σ coefficients * x - target)²: the numeric equality of hybrid Markov logic.

        Each is given once, or per factor: weight, target: (row,); coefficients: (row, real slot).
        """
        a = np.asarray(coefficients, dtype=np.float64)
        a = a if a.ndim == 2 else np.atleast_1d(a)[None]
        w = np.atleast_1d(np.asarray(weight, dtype=np.float64))
        t = np.atleast_1d(np.asarray(target, dtype=np.float64))
        try:
            (num_rows,) = np.broadcast_shapes(w.shape, t.shape, a.shape[:1])
        except ValueError:
            raise ModelError(
                f"{len(w)} weights, {len(a)} rows of coefficients and {len(t)} targets: give one "
                "of each for all factors, or one per factor"
            ) from None
        a, w, t = np.broadcast_to(a, (num_rows, a.shape[1])), w[:, None], t[:, None]
        A = -w[..., None] * a[:, :, None] * a[:, None, :]
        b = np.broadcast_to(2 * w * t * a, a.shape)
        return cls(A, b, np.broadcast_to(-w * t**2, (num_rows, 1))[:, 0])

    @classmethod
    def gaussian(
        cls, mean: ArrayLike, cov: ArrayLike, *, normalised: bool = True
    ) -> ConditionalQuadratic:
        """The log-density of N(mean, cov); not normalised: -½ (x - mean)ᵀ cov⁻¹ (x - mean).

        A covariance matrix per discrete state makes a conditional Gaussian:
        mean: (states..., real slot); cov: (states..., real slot, real slot).
        """
        mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        cov = np.asarray(cov, dtype=np.float64)
        if cov.ndim == 0:
            cov = cov.reshape(1, 1)
        num_reals = mean.shape[-1]
        if cov.shape[-2:] != (num_reals, num_reals) or not _symmetric(cov):
            raise ModelError(
                f"a covariance for {num_reals} slots is a finite symmetric matrix of that size, "
                f"not {cov.tolist()}"
            )
        if not (np.linalg.eigvalsh(cov) > 0).all():
            raise ModelError(f"a covariance must be positive definite, which {cov.tolist()} is not")
        try:
            states = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
        except ValueError:
            raise ModelError(
                f"means of shape {mean.shape} and covariances of shape {cov.shape} do not belong "
                "to the same states"
            ) from None
        mean = np.broadcast_to(mean, (*states, num_reals))
        cov = np.broadcast_to(cov, (*states, num_reals, num_reals))
        precision = np.linalg.inv(cov)
        A = -(precision + np.swapaxes(precision, -1, -2)) / 4
        b = -2 * np.einsum("...ij,...j->...i", A, mean)
        c = np.einsum("...i,...ij,...j->...", mean, A, mean)
        if normalised:
            c = c - 0.5 * np.linalg.slogdet(2 * np.pi * cov)[1]
        return cls.shared(A, b, c)

    @classmethod
    def linear_gaussian(
        cls, coefficients: ArrayLike, var: ArrayLike, offset: ArrayLike = 0.0
    ) -> ConditionalQuadratic:
        """The log-density of y given x as N(Σ coefficients * x + offset, var): slots y, then x.

        Each is given once, or per factor: var, offset: (row,); coefficients: (row, real slot).
        """
        v = np.atleast_1d(np.asarray(var, dtype=np.float64))
        if not ((v > 0) & (v < np.inf)).all():
            raise ModelError(
                f"a linear Gaussian link needs a finite positive variance, not {var!r}"
            )
        a = np.asarray(coefficients, dtype=np.float64)
        a = a if a.ndim == 2 else np.atleast_1d(a)[None]
        link = np.concatenate([np.ones((len(a), 1)), -a], axis=1)
        squared = cls.squared_distance(0.5 / v, link, offset)
        return cls(squared.A, squared.b, squared.c - 0.5 * np.log(2 * np.pi * v))

    @classmethod
    def switch(cls, cases: Sequence[ConditionalQuadratic]) -> ConditionalQuadratic:
        """One case per state of a new first discrete slot; all cases have the same slots."""
        if not cases or any(case.A.shape != cases[0].A.shape for case in cases):
            shapes = [case.A.shape for case in cases]
            raise ModelError(f"the cases of a switch must have the same slots, not {shapes} of A")
        return cls(
            np.stack([case.A for case in cases], axis=1),
            np.stack([case.b for case in cases], axis=1),
            np.stack([case.c for case in cases], axis=1),
        )

    def times(self, gate: ArrayLike) -> ConditionalQuadratic:
        """This quadratic times a number per joint state of new first discrete slots.

        gate: an axis of states per new slot; `[0, 1]` is a Boolean that switches it on.
        """
        g = np.asarray(gate, dtype=np.float64)
        spread = g.reshape((1, *g.shape) + (1,) * (self.c.ndim - 1))
        on = (slice(None), *(None,) * g.ndim)
        c = np.where(spread == 0, 0.0, self.c[on])
        return ConditionalQuadratic(
            spread[..., None, None] * self.A[on],
            spread[..., None] * self.b[on],
            spread * c,
        )

    @property
    def averages(self) -> bool:
        return True

    @property
    def coefficients(self) -> tuple[FloatArray, ...]:
        return self.A, self.b, self.c

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        states = (
            np.asarray(s).astype(np.int64, copy=False) for s in slots[: self.num_discrete_slots]
        )
        at = (row, *states)
        x = [np.asarray(slot, dtype=np.float64) for slot in slots[self.num_discrete_slots :]]
        value = self.c[at]
        for i in range(self.num_reals):
            value = value + x[i] * (self.b[(*at, i)] + self.A[(*at, i, i)] * x[i])
            for j in range(i):
                value = value + 2 * self.A[(*at, i, j)] * x[i] * x[j]
        return np.asarray(value)

    def at_reals(
        self, row: IntArray, observed: list[int], values: FloatArray
    ) -> tuple[Table | ConditionalQuadratic, IntArray]:
        """b' = b_h + 2 A_hv v, c' = c + b_vᵀ v + vᵀ A_vv v of observed reals v."""
        hidden = [i for i in range(self.num_reals) if i not in observed]
        num_factors, sizes, form = len(row), self.c.shape[1:], self.quadratic()
        points = values.reshape(num_factors, -1 if num_factors else 1, len(observed))
        x = np.zeros((*points.shape[:2], self.num_reals))
        x[..., observed] = points
        slope = np.empty((num_factors, *form.b.shape[1:]))
        value = np.empty(slope.shape[:2])
        expand(*form, row, x, slope, value)
        new_row, c = np.arange(num_factors, dtype=np.int32), value.reshape(num_factors, *sizes)
        if not hidden:
            return Table(c), new_row
        inner = self.A[..., hidden, :][..., hidden][row]
        b = slope[..., hidden].reshape(num_factors, *sizes, len(hidden))
        return ConditionalQuadratic(inner, b, c), new_row

    def quadratic(self) -> QuadraticForm:
        return self.form


def closed_form(potential: Potential) -> Table | ConditionalQuadratic | None:
    """A potential with a quadratic form as a table or conditional quadratic; None for others."""
    if isinstance(potential, Table | ConditionalQuadratic):
        return potential
    form = potential.quadratic()
    if form is None:
        return None
    states = [size for size in potential.slot_states if size != REAL]
    if not form.num_reals:
        return Table(form.c.reshape(-1, *states))
    return ConditionalQuadratic.of_form(form, states)


def as_table(potential: Potential) -> Table | None:
    """A potential as a table; None where it has no quadratic form, or reals in it."""
    closed = None if potential.num_reals else closed_form(potential)
    return closed if isinstance(closed, Table) else None


def as_quadratic(potential: Potential) -> ConditionalQuadratic | None:
    """A potential as a conditional quadratic; None without a quadratic form, or without reals."""
    closed = closed_form(potential) if potential.num_reals else None
    return closed if isinstance(closed, ConditionalQuadratic) else None


def _symmetric(matrices: FloatArray) -> bool:
    flipped = np.swapaxes(matrices, -1, -2)
    return bool(np.isfinite(matrices).all() and np.allclose(matrices, flipped, rtol=1e-9, atol=0))
