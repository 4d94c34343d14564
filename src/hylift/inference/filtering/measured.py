"""Observed reals whose values a model predicts one step ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.factors import by_slots
from hylift.inference.filtering.forms import FloatArray, IntArray, split
from hylift.potentials import ConditionalQuadratic, Function


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Reals that were measured as coefficientsᵀ y + offset, with an error of variance var."""

    ids: IntArray  # (measurement,)
    value: FloatArray  # (measurement,)
    origin: IntArray  # (measurement,): number of the factor, soft evidence behind all factors
    scope: IntArray  # (measurement, other): hidden variables
    coefficients: FloatArray  # (measurement, other)
    offset: FloatArray  # (measurement,)
    var: FloatArray  # (measurement,)

    def take(self, some: NDArray[Any]) -> Measurements:
        """Some of them."""
        return Measurements(*(getattr(self, name)[some] for name in self.__slots__))


def measurements_of(graph: FactorGraph, step: IntArray) -> list[Measurements]:
    """What is measured in a graph, by the number of reals that it depends on; step (variable,)."""
    evidence, hard = graph.evidence, graph.evidence.is_hard
    value = np.full(graph.num_variables, np.nan)
    value[evidence.variable[hard]] = evidence.value[hard]
    count = np.zeros(graph.num_variables, dtype=np.int64)
    for group in graph.groups:
        count += np.bincount(group.scope.ravel(), minlength=len(count))
    once = (count == 1) & ~np.isnan(value) & (graph.variables.num_states == 0)
    hidden_id = np.cumsum(np.isnan(value)) - 1
    first = np.cumsum([0, *(len(group) for group in graph.groups)])
    found = []
    for group, begin in zip(graph.groups, first, strict=False):
        own = once[group.scope] & (step[group.scope] == step[group.scope].max(axis=1)[:, None])
        some = np.flatnonzero(own.any(axis=1))
        for part, factors, slots in _quadratics(group.take(some), own[some], value):
            found += _of_group(part, begin + some[factors], slots, value, hidden_id)
    soft = np.flatnonzero(~hard)
    if len(soft):
        variable = evidence.variable[soft].astype(np.int64)
        ones, zeros = np.ones((len(soft), 1)), np.zeros(len(soft))
        scope = hidden_id[variable][:, None]
        origin = first[-1] + soft
        found.append(
            Measurements(
                variable, evidence.value[soft], origin, scope, ones, zeros, evidence.var[soft]
            )
        )
    return found


def _quadratics(
    group: FactorGroup, own: NDArray[np.bool_], value: FloatArray
) -> Iterator[tuple[FactorGroup, IntArray, NDArray[np.bool_]]]:
    """Quadratics of reals only, which of the factors they are, and what is left of `own`
    (factor, slot).

    What is left of a function is quadratic, if ever, where all is known but one of its own reals
    and what is hidden. Quadratics keep their observed reals: that rounds less.
    """
    potential = group.potential
    everything = np.arange(len(group))
    if isinstance(potential, ConditionalQuadratic) and len(group):
        num = potential.num_discrete
        yield _absorbed(group, tuple(range(num)), value), everything, own[:, num:]
    elif isinstance(potential, Function):
        is_open = own.copy()
        for slot in range(group.arity):
            candidates = everything[is_open[:, slot]]
            known = ~np.isnan(value[group.scope[candidates]])
            known[:, slot] = False
            for slots, at in by_slots(known):
                factors = candidates[at]
                part = _absorbed(group.take(factors), slots, value)
                if isinstance(part.potential, ConditionalQuadratic):
                    place = slot - sum(earlier < slot for earlier in slots)
                    held = part.potential.A[part.row, place, place] < 0
                    is_open[factors[held]] = False
                    left = np.zeros(part.scope.shape, dtype=bool)
                    left[:, place] = True
                    yield part, factors, left


def _absorbed(group: FactorGroup, slots: tuple[int, ...], value: FloatArray) -> FactorGroup:
    """The factors without these slots, whose variables are observed."""
    if not slots:
        return group
    potential, row = group.potential.reduce(group.row, slots, value[group.scope[:, list(slots)]])
    left = [slot for slot in range(group.arity) if slot not in slots]
    return FactorGroup.unchecked(
        potential, group.scope[:, left], row.astype(np.int32), group.multiplicity, group.label
    )


def _of_group(
    group: FactorGroup,
    origin: IntArray,
    own: NDArray[np.bool_],
    value: FloatArray,
    hidden_id: IntArray,
) -> list[Measurements]:
    """The first real that each of these quadratics is a density of, among its `own` (factor,
    slot)."""
    potential, weight = group.potential, group.multiplicity
    assert isinstance(potential, ConditionalQuadratic)
    A = weight[:, None, None] * potential.A[group.row]
    b = weight[:, None] * potential.b[group.row]
    own = own & (np.diagonal(A, axis1=1, axis2=2) < 0)
    held = np.flatnonzero(own.any(axis=1))
    slot = np.argmax(own[held], axis=1)
    parts = split(A[held], b[held], np.zeros(len(held)), slot)
    scope = group.scope[held]
    others = np.take_along_axis(scope, parts.others, 1)
    known = value[others]
    is_hidden = np.isnan(known)
    offset = parts.offset + np.where(is_hidden, 0.0, parts.coefficients * known).sum(axis=1)
    ids = scope[np.arange(len(held)), slot].astype(np.int64)
    whole = Measurements(
        ids, value[ids], origin[held], hidden_id[others], parts.coefficients, offset, parts.var
    )
    is_density = parts.is_density
    found = []
    for places, at in by_slots(is_hidden):
        alike, columns = whole.take(at[is_density[at]]), list(places)
        found.append(
            replace(
                alike,
                scope=alike.scope[:, columns],
                coefficients=alike.coefficients[:, columns],
            )
        )
    return found
