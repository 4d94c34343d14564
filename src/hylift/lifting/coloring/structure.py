"""A factor graph as color passing walks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.graph.variables import freeze
from hylift.lifting.coloring.parameters import TOLERANCE, row_classes
from hylift.numerics.kernels.grouping import group_pairs, incidence

Links = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Per variable the factors in whose slots it stands: start (variable + 1,), factor (edge,)."""

MAX_WEIGHT = 2.0**62
"""Sums of weights stay below, so that they are exact in int64."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """The scopes of all groups in flat arrays, with what tells variables and factors apart."""

    slots: NDArray[np.int32]  # (edge,): variable of each slot, factor after factor
    first: NDArray[np.int64]  # (factor + 1,): first edge of each factor
    orbit: NDArray[np.int16]  # (edge,): slots of a factor with one number may be exchanged
    weight: NDArray[np.int64]  # (factor,): multiples of a common unit; empty where all are 1
    color: NDArray[np.int32]  # (variable,): domain and multiplicity
    num_colors: int
    kind: NDArray[np.int32]  # (factor,): group and parameters
    num_kinds: int
    offsets: NDArray[np.int64]  # (group + 1,): first factor of each group
    averages: tuple[bool, ...]  # (group,): whether the rows of its potential may be averaged

    @classmethod
    def of(cls, graph: FactorGraph, tolerance: float = TOLERANCE) -> Structure:
        """Of a graph without evidence; parameters are equal to a relative tolerance.

        Factors of different groups are told apart, even if their potentials are equal: groups of
        one signature are joined by `graph.condition()`. Where sums of multiplicities would not be
        exact, because they are no multiples of a common unit, factors that differ in theirs are
        told apart, too.
        """
        if len(graph.evidence):
            raise ModelError("a graph with evidence is conditioned before it is lifted")
        groups = graph.groups
        _check_sizes(groups)
        kinds, orbits, num_kinds = [], [], 0
        for group in groups:
            found = row_classes(group.potential, tolerance)
            row_class = found.row_to_class[group.row]
            kinds.append(row_class + np.int32(num_kinds))
            orbits.append(_spread_orbit(found.orbit, row_class).ravel())
            num_kinds += found.num_classes
        kind = _joined(kinds, np.int32)
        multiplicity = _joined([group.multiplicity for group in groups], np.float64)
        first = _first_edges(groups)
        weight = _weights(multiplicity, first)
        if weight is None:
            kind, num_kinds = group_pairs(kind, multiplicity.copy().view(np.uint64))
            weight = np.zeros(0, dtype=np.int64)
        color, num_colors = _initial_color(graph.variables)
        # Read-only whether joined or not: kernels are compiled for one kind of array.
        slots = _joined([group.scope.ravel() for group in groups], np.int32)
        return cls(
            freeze(slots, np.int32),
            freeze(first, np.int64),
            freeze(_joined(orbits, np.int16), np.int16),
            freeze(weight, np.int64),
            color,
            num_colors,
            kind,
            num_kinds,
            np.cumsum([0, *(len(group) for group in groups)]),
            tuple(group.potential.averages for group in groups),
        )

    def links(self) -> Links:
        """From variables back to the factors they stand in."""
        return incidence(self.slots, self.first, self.num_variables)

    @property
    def num_variables(self) -> int:
        return len(self.color)

    @property
    def num_factors(self) -> int:
        return len(self.kind)


def _spread_orbit(orbit: NDArray[np.int16], row_class: NDArray[np.int32]) -> NDArray[np.int16]:
    """(factor, slot); one copy in memory where all rows have the same symmetries."""
    if len(orbit) and (orbit == orbit[0]).all():
        return np.broadcast_to(orbit[0], (len(row_class), orbit.shape[1]))
    return orbit[row_class]


def _check_sizes(groups: tuple[FactorGroup, ...]) -> None:
    """Raises where numbers would not fit the arrays."""
    num_factors = sum(len(group) for group in groups)
    if num_factors > np.iinfo(np.int32).max:
        raise UnsupportedError(f"{num_factors:,} factors are too many to lift: at most 2^31 - 1")
    for group in groups:
        if group.arity > np.iinfo(np.int16).max:
            raise UnsupportedError(
                f"{group.named()}: a factor of {group.arity:,} slots is too wide to lift"
            )


def _first_edges(groups: tuple[FactorGroup, ...]) -> NDArray[np.int64]:
    """(factor + 1,): where the slots of each factor begin."""
    first = np.zeros(sum(len(group) for group in groups) + 1, dtype=np.int64)
    done, edge = 0, 0
    for group in groups:
        end = edge + len(group) * group.arity
        first[done : done + len(group)] = edge + group.arity * np.arange(len(group))
        done, edge = done + len(group), end
    first[done] = edge
    return first


def _weights(
    multiplicity: NDArray[np.float64], first: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Multiplicities as whole multiples of a power of two, empty where all are 1; None where sums
    of them might not be exact."""
    if (multiplicity == 1).all():
        return np.zeros(0, dtype=np.int64)
    fraction, exponent = np.frexp(multiplicity)
    digits = np.ldexp(fraction, 53).astype(np.int64)
    lowest = (digits & -digits).astype(np.float64)  # the lowest bit that is set
    unit = int((exponent - 53 + np.frexp(lowest)[1] - 1).min())
    with np.errstate(over="ignore"):
        total = np.ldexp((multiplicity * np.diff(first)).sum(), -unit)
    return np.ldexp(multiplicity, -unit).astype(np.int64) if total < MAX_WEIGHT else None


def _initial_color(variables: Variables) -> tuple[NDArray[np.int32], int]:
    return group_pairs(variables.domain_number, variables.multiplicity.copy().view(np.uint64))


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0], dtype=dtype)
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)
