"""Quadratic factors of hidden reals, with what a filter must know of where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.graph.condition import MEASUREMENTS, Conditioned
from hylift.potentials import REAL, ConditionalQuadratic, Potential

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUNDING = 1e-12
"""What is less than so many parts of the terms it was summed from counts as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Factors exp(yᵀ A y + bᵀ y + c) of as many reals each."""

    scope: NDArray[np.int32]  # (factor, slot): hidden variables
    A: FloatArray  # (factor, slot, slot)
    b: FloatArray  # (factor, slot)
    c: FloatArray  # (factor,)
    step: IntArray  # (factor,): the latest step of its variables, observed ones included
    is_new: NDArray[np.bool_]
    """(factor,): whether it speaks of evidence of its own step."""
    leads: NDArray[np.bool_]
    """(factor,): whether its first slot is the first real of the factor in the user's graph."""
    origin: IntArray
    """(factor,): its number in the user's graph; soft evidence is numbered behind all factors."""

    def __len__(self) -> int:
        return len(self.scope)

    @property
    def arity(self) -> int:
        return int(self.scope.shape[1])

    def take(self, factors: NDArray[Any]) -> Forms:
        """Some of the factors."""
        return Forms(*(getattr(self, name)[factors] for name in self.__slots__))

    @property
    def is_conditional(self) -> NDArray[np.bool_]:
        """(factor,): whether it is a density of one of its reals given the others, up to a
        constant; it then is one of each that it depends on."""
        diagonal = np.diagonal(self.A, axis1=1, axis2=2)
        slot = np.argmin(diagonal, axis=1)
        found = np.take_along_axis(diagonal, slot[:, None], 1)[:, 0] < 0
        some = np.flatnonzero(found)
        rest = split(self.A[some], self.b[some], self.c[some], slot[some])
        found[some] = rest.is_density
        return found

    def split(self, slot: IntArray) -> tuple[Split, Forms]:
        """The density of one real of each factor given the others, and what is left over these."""
        parts = split(self.A, self.b, self.c, slot)
        others = np.take_along_axis(self.scope, parts.others, 1)
        nothing = np.zeros(len(self), dtype=bool)
        rest = Forms(
            others, parts.A, parts.b, parts.c, self.step, self.is_new, nothing, self.origin
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

    @property
    def is_density(self) -> NDArray[np.bool_]:
        """(factor,): whether only a constant is left over."""
        return np.asarray(~(self.A.any(axis=(1, 2)) | self.b.any(axis=1)))


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
    return Split(
        others,
        coefficients,
        var * linear,
        var,
        _sum(square, coupling[:, :, None] * coefficients[:, None, :]),
        _sum(np.take_along_axis(b, others, 1), linear[:, None] * coefficients),
        c + 0.5 * np.log(2 * np.pi * var) + 0.5 * var * linear**2,
    )


def _sum(one: FloatArray, other: FloatArray) -> FloatArray:
    """Their sum, and 0 where rounding is all that is left of it."""
    total = one + other
    return np.where(np.abs(total) <= ROUNDING * (np.abs(one) + np.abs(other)), 0.0, total)


def forms_of(graph: FactorGraph, conditioned: Conditioned, step: IntArray) -> list[Forms]:
    """The factors of the hidden reals of a graph; step (variable,): of all its variables."""
    observed = np.ones(graph.num_variables, dtype=bool)
    observed[conditioned.hidden] = False
    first = np.cumsum([0, *(len(group) for group in graph.groups)])
    found = []
    for group, parts in zip(conditioned.graph.groups, conditioned.parts, strict=True):
        if not len(group):
            continue
        columns = []
        for part in parts:
            if part.source == MEASUREMENTS:
                own = step[graph.evidence.variable[part.factors]]
                new, leads = np.ones(len(own), dtype=bool), False
                origin = first[-1] + part.factors
            else:
                source = graph.groups[part.source]
                scope = source.scope[part.factors]
                own = step[scope].max(axis=1)
                new = (observed[scope] & (step[scope] == own[:, None])).any(axis=1)
                leads = num_discrete(source.potential) not in part.slots
                origin = first[part.source] + part.factors
            columns.append((own, new, np.full(len(own), leads), origin))
        potential, weight = group.potential, group.multiplicity
        assert isinstance(potential, ConditionalQuadratic)
        found.append(
            Forms(
                group.scope,
                weight[:, None, None] * potential.A[group.row],
                weight[:, None] * potential.b[group.row],
                weight * potential.c[group.row],
                *(np.concatenate(column) for column in zip(*columns, strict=True)),
            )
        )
    return found


def num_discrete(potential: Potential) -> int:
    """Discrete slots of a potential, which come before the real ones."""
    return sum(states != REAL for states in potential.slot_states)
