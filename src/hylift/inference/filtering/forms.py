"""The factors of a graph as quadratics of hidden and known reals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.condition import MEASUREMENTS, Conditioned
from hylift.graph.factors import by_slots
from hylift.potentials import REAL, ConditionalQuadratic, Potential

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUNDING = 1e-12
"""Sums this small, relative to their terms, count as 0."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Factors exp(yᵀ A y + bᵀ y + c) with equally many slots.

    Observed reals are kept: a measurement changes log Z by its distance from its prediction, which
    may be small where both are large, and their squares would cancel.
    """

    scope: NDArray[np.int32]  # (factor, slot): hidden variables, -1 where the real is known
    known: FloatArray  # (factor, slot): its value, 0 where it is hidden
    seen: IntArray
    """(factor, slot): the user's variable whose measurement the known value is, or -1."""
    scale: FloatArray
    """(factor, slot): the largest |A_vv| while factors are split, relative to which noise is 0."""
    A: FloatArray  # (factor, slot, slot)
    b: FloatArray  # (factor, slot)
    c: FloatArray  # (factor,)
    error: FloatArray  # (factor,): approximate rounding error of c
    step: IntArray  # (factor,): the latest step of its variables, observed ones included
    is_new: NDArray[np.bool_]
    """(factor,): whether it depends on evidence of its own step."""
    leads: NDArray[np.bool_]
    """(factor,): whether its first slot is the first real of the factor in the user's graph."""
    origin: IntArray
    """(factor,): its number in the user's graph; soft evidence is numbered after all factors, and
    -1 stands for several factors."""

    @classmethod
    def of(
        cls,
        scope: NDArray[np.int32],
        A: FloatArray,
        b: FloatArray,
        c: FloatArray,
        step: IntArray,
        **given: NDArray[Any],
    ) -> Forms:
        """Factors of hidden reals that are several in one, unless the other fields are given."""
        none = np.zeros(len(scope), dtype=bool)
        rest: dict[str, NDArray[Any]] = {
            "known": np.zeros(scope.shape),
            "seen": np.full(scope.shape, -1),
            "scale": np.abs(np.diagonal(A, axis1=1, axis2=2)),
            "error": np.zeros(len(scope)),
            "is_new": none,
            "leads": none.copy(),
            "origin": np.full(len(scope), -1),
        }
        return cls(scope=scope, A=A, b=b, c=c, step=step, **{**rest, **given})

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
        """The factors as functions of their hidden reals; the slots of known ones are void."""
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
        """(factor,): whether it is a conditional density of one of its reals, up to a constant, and
        so of each that it depends on."""
        slot = np.argmin(self.diagonal, axis=1)
        found = np.take_along_axis(self.diagonal, slot[:, None], 1)[:, 0] < 0
        some = np.flatnonzero(found)
        found[some] = split(self.A[some], self.b[some], self.c[some], slot[some]).is_density
        return found

    def split(self, slot: IntArray) -> tuple[Split, Forms]:
        """The density of one real of each factor given the others, and the remaining factors."""
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
    error: FloatArray  # (factor,): approximate rounding error of c

    @property
    def is_density(self) -> NDArray[np.bool_]:
        """(factor,): whether only a constant remains."""
        return np.asarray(~(self.A.any(axis=(1, 2)) | self.b.any(axis=1)))

    def link(self, slot: IntArray) -> FloatArray:
        """(factor, slot): the coefficients of v - coefficientsᵀ y."""
        link = np.empty((len(slot), self.others.shape[1] + 1))
        np.put_along_axis(link, self.others, -self.coefficients, 1)
        np.put_along_axis(link, slot[:, None], 1.0, 1)
        return link


def split(A: FloatArray, b: FloatArray, c: FloatArray, slot: IntArray) -> Split:
    """Split the density of one slot v off each quadratic; A_vv is negative."""
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
    # A density N(v; 1e7, 1e-4) has a constant of 1e18: its remainder is rounding noise.
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
    """Their sum, and 0 where only rounding noise remains."""
    total = one + other
    return np.where(np.abs(total) <= ROUNDING * (np.abs(one) + np.abs(other)), 0.0, total)


def forms_of(graph: FactorGraph, conditioned: Conditioned, step: IntArray) -> list[Forms]:
    """All factors with real slots, and soft evidence; step: (variable,).

    Quadratics keep their observed reals. Functions keep one that they measure, if the rest is
    quadratic; all other evidence is absorbed.
    """
    known = _Known.of(graph, step)
    first = np.cumsum([0, *(len(group) for group in graph.groups)])
    found, done = [], np.zeros(int(first[-1]), dtype=bool)
    for group, begin in zip(graph.groups, first, strict=False):
        for part, factors in known.quadratics(group):
            source = group.take(factors)
            leads = _leads(group.potential, source.scope, part.scope)
            found.append(known.forms(part, source.scope, leads, begin + factors))
            done[begin + factors] = True
    for group, parts in zip(conditioned.graph.groups, conditioned.parts, strict=True):
        begin = 0
        for piece in parts:
            own = np.arange(begin, begin + len(piece.factors))
            begin += len(piece.factors)
            if piece.source == MEASUREMENTS:
                continue
            source = graph.groups[piece.source]
            origin = first[piece.source] + piece.factors
            left = np.flatnonzero(~done[origin])
            if len(left) and isinstance(group.potential, ConditionalQuadratic):
                part = group.take(own[left])
                scope = conditioned.hidden[part.scope].astype(np.int32)
                part = FactorGroup.unchecked(
                    part.potential, scope, part.row, part.multiplicity, part.label
                )
                whole = source.scope[piece.factors[left]]
                leads = np.full(len(left), num_discrete(source.potential) not in piece.slots)
                found.append(known.forms(part, whole, leads, origin[left]))
    return [form for form in [*found, known.soft(graph, int(first[-1]))] if len(form)]


def _leads(
    potential: Potential, scope: NDArray[np.int32], left: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """(factor,): whether the first remaining slot was the first real one."""
    return np.asarray(scope[:, num_discrete(potential)] == left[:, 0])


def num_discrete(potential: Potential) -> int:
    """The number of discrete slots, which come before the real ones."""
    return sum(states != REAL for states in potential.slot_states)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The evidence on all variables."""

    value: FloatArray  # (variable,): NaN where it is hidden
    hidden_id: IntArray  # (variable,): its number among the hidden ones
    step: IntArray  # (variable,)
    once: NDArray[np.bool_]
    """(variable,): whether it is an observed real of a single factor."""

    @classmethod
    def of(cls, graph: FactorGraph, step: IntArray) -> _Known:
        evidence, hard = graph.evidence, graph.evidence.is_hard
        value = np.full(graph.num_variables, np.nan)
        value[evidence.variable[hard]] = evidence.value[hard]
        count = np.zeros(graph.num_variables, dtype=np.int64)
        for group in graph.groups:
            count += np.bincount(group.scope.ravel(), minlength=len(count))
        once = (count == 1) & ~np.isnan(value) & (graph.variables.num_states == 0)
        return cls(value, np.cumsum(np.isnan(value)) - 1, step, once)

    def measured(self, scope: NDArray[np.int32], latest: IntArray) -> NDArray[np.bool_]:
        """(factor, slot): whether a factor may measure it; latest: (factor,), its step."""
        return np.asarray(self.once[scope] & (self.step[scope] == latest[:, None]))

    def forms(
        self,
        part: FactorGroup,
        whole: NDArray[np.int32],
        leads: NDArray[np.bool_],
        origin: IntArray,
    ) -> Forms:
        """Factors whose slots are real; whole: (factor, slot), with absorbed variables."""
        potential, weight, scope = part.potential, part.multiplicity, part.scope
        assert isinstance(potential, ConditionalQuadratic)
        own = self.step[whole].max(axis=1)
        value = self.value[scope]
        hidden = np.isnan(value)
        seen = ~np.isnan(self.value[whole]) & (self.step[whole] == own[:, None])
        return Forms.of(
            np.where(hidden, self.hidden_id[scope], -1).astype(np.int32),
            weight[:, None, None] * potential.A[part.row],
            weight[:, None] * potential.b[part.row],
            weight * potential.c[part.row],
            own,
            known=np.where(hidden, 0.0, value),
            seen=np.where(self.measured(scope, own), scope, -1).astype(np.int64),
            is_new=seen.any(axis=1),
            leads=leads,
            origin=origin,
        )

    def soft(self, graph: FactorGraph, begin: int) -> Forms:
        """Soft evidence, as densities of the measurement given the real."""
        at = np.flatnonzero(~graph.evidence.is_hard)
        variable = graph.evidence.variable[at].astype(np.int64)
        precision, nothing = 1 / graph.evidence.var[at], np.full(len(at), -1)
        return Forms.of(
            np.stack([nothing, self.hidden_id[variable]], axis=1).astype(np.int32),
            -0.5 * precision[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]]),
            np.zeros((len(at), 2)),
            0.5 * np.log(precision / (2 * np.pi)),
            self.step[variable],
            known=np.stack([graph.evidence.value[at], np.zeros(len(at))], axis=1),
            seen=np.stack([variable, nothing], axis=1),
            is_new=np.ones(len(at), dtype=bool),
            origin=begin + at,
        )

    def quadratics(self, group: FactorGroup) -> Iterator[tuple[FactorGroup, IntArray]]:
        """Factors as quadratics of reals that may be known, and their numbers.

        A function is quadratic, if at all, once all known variables but one real that it measures
        are absorbed.
        """
        potential, everything = group.potential, np.arange(len(group))
        if isinstance(potential, ConditionalQuadratic) and len(group):
            yield self._absorbed(group, tuple(range(potential.num_discrete))), everything
        elif potential.quadratic() is None:
            is_open = self.measured(group.scope, self.step[group.scope].max(axis=1, initial=0))
            for slot in range(group.arity):
                candidates = everything[is_open[:, slot]]
                known = ~np.isnan(self.value[group.scope[candidates]])
                known[:, slot] = False
                for slots, at in by_slots(known):
                    factors = candidates[at]
                    part = self._absorbed(group.take(factors), slots)
                    if isinstance(part.potential, ConditionalQuadratic):
                        place = slot - sum(earlier < slot for earlier in slots)
                        held = np.flatnonzero(part.potential.A[part.row, place, place] < 0)
                        is_open[factors[held]] = False
                        if len(held):
                            yield part.take(held), factors[held]

    def _absorbed(self, group: FactorGroup, slots: tuple[int, ...]) -> FactorGroup:
        """The factors without these slots, whose observed values are absorbed."""
        if not slots:
            return group
        values = self.value[group.scope[:, list(slots)]]
        potential, row = group.potential.reduce(group.row, slots, values)
        left = [slot for slot in range(group.arity) if slot not in slots]
        return FactorGroup.unchecked(
            potential, group.scope[:, left], row.astype(np.int32), group.multiplicity, group.label
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Reals measured as coefficientsᵀ y + offset, with an error of variance var."""

    ids: IntArray  # (measurement,)
    value: FloatArray  # (measurement,)
    origin: IntArray  # (measurement,): number of the factor, as in Forms
    scope: NDArray[np.int32]  # (measurement, other): hidden variables, -1 where there is none
    coefficients: FloatArray  # (measurement, other)
    offset: FloatArray  # (measurement,)
    var: FloatArray  # (measurement,)

    def take(self, some: NDArray[Any]) -> Measurements:
        """Some of them."""
        return Measurements(*(getattr(self, name)[some] for name in self.__slots__))


def measurements_of(form: Forms) -> Measurements:
    """The first measured real of each factor that is a density of it given the others."""
    own = (form.seen >= 0) & (form.diagonal < 0)
    some = form.take(np.flatnonzero(own.any(axis=1)))
    slot = np.argmax(own[own.any(axis=1)], axis=1)
    parts, rest = some.split(slot)
    row = np.arange(len(slot))
    whole = Measurements(
        some.seen[row, slot],
        some.known[row, slot],
        some.origin,
        rest.scope,
        parts.coefficients,
        parts.offset + (parts.coefficients * rest.known).sum(axis=1),
        parts.var,
    )
    return whole.take(np.flatnonzero(parts.is_density))
