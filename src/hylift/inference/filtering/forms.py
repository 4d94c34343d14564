"""Quadratic factors of hidden and known reals, with what a filter must know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.filtering.times import FloatArray, IntArray

ROUNDING = 1e-12
"""What is less than so many parts of the terms it was summed from counts as 0."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Factors exp(yᵀ A y + bᵀ y + c) of as many reals each.

    Observed reals are kept: what a measurement adds to log Z depends on its distance from its
    prediction, which is small where both are large, and their squares would cancel.
    """

    scope: NDArray[np.int32]  # (factor, slot): hidden variables, -1 where the real is known
    known: FloatArray  # (factor, slot): its value, 0 where it is hidden
    seen: IntArray
    """(factor, slot): the user's variable whose measurement the known value is, or -1."""
    scale: FloatArray
    """(factor, slot): the largest |A_vv| while factors are taken apart, beside which noise counts
    as 0."""
    A: FloatArray  # (factor, slot, slot)
    b: FloatArray  # (factor, slot)
    c: FloatArray  # (factor,)
    error: FloatArray  # (factor,): the rough size of the rounding of c
    step: IntArray  # (factor,): the latest step of its variables, observed ones included
    is_new: NDArray[np.bool_]
    """(factor,): whether it speaks of evidence of its own step."""
    leads: NDArray[np.bool_]
    """(factor,): whether its first slot is the first real of the factor in the user's graph."""
    origin: IntArray
    """(factor,): its number in the user's graph; soft evidence is numbered behind all factors,
    and -1 are several factors in one."""

    def __len__(self) -> int:
        return len(self.scope)

    @property
    def arity(self) -> int:
        return int(self.scope.shape[1])

    @property
    def diagonal(self) -> FloatArray:
        """(factor, slot): of A."""
        return np.diagonal(self.A, axis1=1, axis2=2)

    @property
    def is_hidden(self) -> NDArray[np.bool_]:
        """(factor, slot)."""
        return self.scope >= 0

    def take(self, factors: NDArray[Any]) -> Forms:
        """Some of the factors."""
        return Forms(*(getattr(self, name)[factors] for name in self.__slots__))

    def absorbed(self) -> Forms:
        """The factors as functions of their hidden reals; the slots of known ones mean nothing."""
        known, hidden = self.known, self.is_hidden
        if hidden.all():
            return self
        pull = (self.A @ known[:, :, None])[:, :, 0]
        terms = known * (pull + self.b)
        sizes = np.abs(known) * (np.abs(self.A) @ np.abs(known)[:, :, None])[:, :, 0]
        sizes += np.abs(known * self.b)
        return replace(
            self,
            known=np.zeros(known.shape),
            A=np.where(hidden[:, :, None] & hidden[:, None, :], self.A, 0.0),
            b=np.where(hidden, self.b + 2 * pull, 0.0),
            c=self.c + terms.sum(axis=1),
            error=self.error + EPS * sizes.sum(axis=1),
        )

    @property
    def is_conditional(self) -> NDArray[np.bool_]:
        """(factor,): whether it is a density of one of its reals given the others, up to a
        constant; it then is one of each that it depends on."""
        slot = np.argmin(self.diagonal, axis=1)
        found = np.take_along_axis(self.diagonal, slot[:, None], 1)[:, 0] < 0
        some = np.flatnonzero(found)
        found[some] = split(self.A[some], self.b[some], self.c[some], slot[some]).is_density
        return found

    def split(self, slot: IntArray) -> tuple[Split, Forms]:
        """The density of one real of each factor given the others, and what is left over these."""
        parts = split(self.A, self.b, self.c, slot)
        scale = np.take_along_axis(self.scale, parts.others, 1)
        size = np.sqrt(scale[:, :, None] * scale[:, None, :])
        taken = parts.coefficients**2 / (2 * parts.var)[:, None]
        rest = replace(
            self,
            scope=np.take_along_axis(self.scope, parts.others, 1),
            known=np.take_along_axis(self.known, parts.others, 1),
            seen=np.take_along_axis(self.seen, parts.others, 1),
            scale=np.maximum(scale, taken),
            A=np.where(np.abs(parts.A) <= ROUNDING * size, 0.0, parts.A),
            b=parts.b,
            c=parts.c,
            error=self.error + parts.error,
            leads=np.zeros(len(self), dtype=bool),
        )
        return parts, rest


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Quadratics as N(v; coefficientsᵀ y + offset, var) · exp(yᵀ A y + bᵀ y + c)."""

    others: IntArray  # (factor, other): the slots of y
    coefficients: FloatArray  # (factor, other)
    offset: FloatArray  # (factor,)
    var: FloatArray  # (factor,)
    A: FloatArray  # (factor, other, other)
    b: FloatArray  # (factor, other)
    c: FloatArray  # (factor,)
    error: FloatArray  # (factor,): the rough size of the rounding of c

    @property
    def is_density(self) -> NDArray[np.bool_]:
        """(factor,): whether only a constant is left over."""
        return np.asarray(~(self.A.any(axis=(1, 2)) | self.b.any(axis=1)))

    def link(self, slot: IntArray) -> FloatArray:
        """(factor, slot): the coefficients of v - coefficientsᵀ y."""
        link = np.empty((len(slot), self.others.shape[1] + 1))
        np.put_along_axis(link, self.others, -self.coefficients, 1)
        np.put_along_axis(link, slot[:, None], 1.0, 1)
        return link


def split(A: FloatArray, b: FloatArray, c: FloatArray, slot: IntArray) -> Split:
    """Takes the density of one slot v each out of quadratics; A_vv is negative."""
    row, place = np.arange(len(slot)), np.arange(b.shape[1] - 1)
    others = place + (place >= slot[:, None])
    own = A[row, slot]
    var = -0.5 / own[row, slot]
    linear = b[row, slot]
    coupling = np.take_along_axis(own, others, 1)
    coefficients = 2 * var[:, None] * coupling
    square = A[row[:, None, None], others[:, :, None], others[:, None, :]]
    norm, top = 0.5 * np.log(2 * np.pi * var), 0.5 * var * linear**2
    size = np.abs(c) + np.abs(norm) + top
    constant = c + norm + top
    # A density N(v; 1e7, 1e-4) has a constant of 1e18: what is left of it is noise, and meant as 0.
    is_noise = np.abs(constant) <= 8 * EPS * size
    return Split(
        others,
        coefficients,
        var * linear,
        var,
        _sum(square, coupling[:, :, None] * coefficients[:, None, :]),
        _sum(np.take_along_axis(b, others, 1), linear[:, None] * coefficients),
        np.where(is_noise, 0.0, constant),
        np.where(is_noise | ~np.isfinite(size), 0.0, EPS * size),
    )


def _sum(one: FloatArray, other: FloatArray) -> FloatArray:
    """Their sum, and 0 where rounding is all that is left of it."""
    total = one + other
    return np.where(np.abs(total) <= ROUNDING * (np.abs(one) + np.abs(other)), 0.0, total)
