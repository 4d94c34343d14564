"""The factors of a graph as quadratics of hidden and known reals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup, Variables, by_slots

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUNDING = 1e-12
"""Sums this small, relative to their terms, count as 0."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class FilterFactors:
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
    ) -> FilterFactors:
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

    def take(self, factors: NDArray[Any]) -> FilterFactors:
        """Some of the factors."""
        return FilterFactors(*(getattr(self, name)[factors] for name in self.__slots__))

    def absorbed(self) -> FilterFactors:
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

    def split(self, slot: IntArray) -> tuple[Split, FilterFactors]:
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


def forms_of(graph: FactorGraph, step: IntArray) -> list[FilterFactors]:
    """All factors with real slots, and soft evidence; step: (variable,).

    Quadratics keep their observed reals. Functions keep one that they measure, if the rest is
    quadratic; all other evidence is absorbed.
    """
    known, begin, found = _Known.of(graph, step), 0, []
    for group in graph.groups:
        for part, factors in known.quadratics(group, graph.variables):
            found.append(known.forms(part, group.take(factors), begin + factors))
        begin += len(group)
    return [form for form in [*found, known.soft(graph, begin)] if len(form)]


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

    def forms(self, part: FactorGroup, source: FactorGroup, origin: IntArray) -> FilterFactors:
        """Factors whose slots are real; source: the same before variables were absorbed."""
        form, weight, scope = part.potential.quadratic(), part.multiplicity, part.scope
        assert form is not None
        whole = source.scope
        own = self.step[whole].max(axis=1)
        value = self.value[scope]
        hidden = np.isnan(value)
        seen = ~np.isnan(self.value[whole]) & (self.step[whole] == own[:, None])
        return FilterFactors.of(
            np.where(hidden, self.hidden_id[scope], -1).astype(np.int32),
            weight[:, None, None] * form.A[part.row, 0],
            weight[:, None] * form.b[part.row, 0],
            weight * form.c[part.row, 0],
            own,
            known=np.where(hidden, 0.0, value),
            seen=np.where(self.measured(scope, own), scope, -1).astype(np.int64),
            is_new=seen.any(axis=1),
            leads=whole[:, source.potential.num_discrete_slots] == scope[:, 0],
            origin=origin,
        )

    def soft(self, graph: FactorGraph, begin: int) -> FilterFactors:
        """Soft evidence, as densities of the measurement given the real."""
        at = np.flatnonzero(~graph.evidence.is_hard)
        variable = graph.evidence.variable[at].astype(np.int64)
        precision, nothing = 1 / graph.evidence.var[at], np.full(len(at), -1)
        return FilterFactors.of(
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

    def quadratics(
        self, group: FactorGroup, variables: Variables
    ) -> Iterator[tuple[FactorGroup, IntArray]]:
        """Factors as quadratics of reals that may be known, and their numbers.

        A function is quadratic, if at all, once all known variables are absorbed, but for one real
        that it measures where that is possible.
        """
        form, everything = group.potential.quadratic(), np.arange(len(group))
        if form is not None:
            if form.num_reals and len(group):
                discrete = tuple(range(group.potential.num_discrete_slots))
                yield self._absorbed(group, discrete), everything
            return
        known = ~np.isnan(self.value[group.scope])
        left = np.asarray(~known.all(axis=1))
        is_open = self.measured(group.scope, self.step[group.scope].max(axis=1, initial=0))
        for slot in range(group.arity):
            others = known & (np.arange(group.arity) != slot)
            candidates = everything[is_open[:, slot]]
            for slots, at in by_slots(others[candidates]):
                factors = candidates[at]
                part = self._absorbed(group.take(factors), slots)
                form = part.potential.quadratic()
                if form is not None:
                    place = slot - sum(earlier < slot for earlier in slots)
                    held = np.flatnonzero(form.A[part.row, 0, place, place] < 0)
                    is_open[factors[held]] = left[factors[held]] = False
                    if len(held):
                        yield part.take(held), factors[held]
        for slots, at in by_slots(known[left]):
            factors = everything[left][at]
            part = self._absorbed(group.take(factors), slots)
            if part.potential.quadratic() is None:
                raise UnsupportedError(
                    f"{group.named(int(factors[0]))} is a function of "
                    f"'{variables.names[int(part.scope[0, 0])]}': a Kalman filter needs "
                    "quadratics. Observe what keeps it from being one, or use infer with EPBP or "
                    "BVI"
                )
            yield part, factors

    def _absorbed(self, group: FactorGroup, slots: tuple[int, ...]) -> FactorGroup:
        """The factors without these slots, whose observed values are absorbed."""
        if not slots:
            return group
        values = self.value[group.scope[:, list(slots)]]
        potential, row = group.potential.reduce(group.row, slots, values)
        left = [slot for slot in range(group.arity) if slot not in slots]
        return group.changed(potential=potential, scope=group.scope[:, left], row=row)


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Reals measured as coefficientsᵀ y + offset, with an error of variance var."""

    ids: IntArray  # (measurement,)
    value: FloatArray  # (measurement,)
    scope: NDArray[np.int32]  # (measurement, other): hidden variables, -1 where there is none
    coefficients: FloatArray  # (measurement, other)
    offset: FloatArray  # (measurement,)
    var: FloatArray  # (measurement,)

    @classmethod
    def of(cls, forms: Sequence[FilterFactors], without: IntArray) -> Measurements:
        """The first measured real of each factor that is a density of it given the others.

        without: numbers of factors in the user's graph that are left out.
        """
        width = max((form.arity for form in forms), default=1) - 1
        nothing = np.zeros((0, width))
        parts: list[tuple[NDArray[Any], ...]] = [
            (np.zeros(0, np.int64), np.zeros(0), nothing.astype(np.int32), nothing, np.zeros(0),
             np.zeros(0))
        ]  # fmt: skip
        for form in forms:
            own = (form.seen >= 0) & (form.diagonal < 0)
            chosen = own.any(axis=1) & ~np.isin(form.origin, without)
            some, slot = form.take(chosen), np.argmax(own[chosen], axis=1)
            split, rest = some.split(slot)
            row, is_density = np.arange(len(slot)), split.is_density
            pad = ((0, 0), (0, width - rest.arity))
            columns = (
                some.seen[row, slot],
                some.known[row, slot],
                np.pad(rest.scope, pad, constant_values=-1),
                np.pad(split.coefficients, pad),
                split.offset + (split.coefficients * rest.known).sum(axis=1),
                split.var,
            )
            parts.append(tuple(column[is_density] for column in columns))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))
