"""Observed reals whose values a model predicts one step ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.factors import by_slots
from hylift.inference.filtering.forms import FloatArray, IntArray, num_discrete, split
from hylift.potentials import ConditionalQuadratic


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
        if isinstance(group.potential, ConditionalQuadratic):
            real = group.scope[:, num_discrete(group.potential) :]
            own = once[real] & (step[real] == step[group.scope].max(axis=1)[:, None])
            factors = np.flatnonzero(own.any(axis=1))
            if len(factors):
                found += _of_group(group, factors, own, begin, value, hidden_id)
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


def _of_group(
    group: FactorGroup,
    factors: IntArray,
    own: NDArray[np.bool_],
    begin: int,
    value: FloatArray,
    hidden_id: IntArray,
) -> list[Measurements]:
    """The first real that each of these factors is a density of, among its `own` (factor, real)."""
    some, own = group.take(factors), own[factors]
    potential = some.potential
    row: NDArray[Any] = some.row
    assert isinstance(potential, ConditionalQuadratic)
    if (num := potential.num_discrete) > 0:
        reduced, row = potential.reduce(row, tuple(range(num)), value[some.scope[:, :num]])
        assert isinstance(reduced, ConditionalQuadratic)
        potential = reduced
    weight = some.multiplicity
    A, b = weight[:, None, None] * potential.A[row], weight[:, None] * potential.b[row]
    own &= np.diagonal(A, axis1=1, axis2=2) < 0
    held = np.flatnonzero(own.any(axis=1))
    slot = np.argmax(own[held], axis=1)
    parts = split(A[held], b[held], np.zeros(len(held)), slot)
    real = some.scope[held, num:]
    others = np.take_along_axis(real, parts.others, 1)
    known = value[others]
    is_hidden = np.isnan(known)
    offset = parts.offset + np.where(is_hidden, 0.0, parts.coefficients * known).sum(axis=1)
    ids = real[np.arange(len(held)), slot].astype(np.int64)
    whole = Measurements(
        ids, value[ids], begin + factors[held], hidden_id[others], parts.coefficients, offset,
        parts.var,
    )  # fmt: skip
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
