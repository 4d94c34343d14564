"""A factor graph laid out flat for color passing."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError
from hylift.graph import Conditioned, FactorGraph, FactorGroup
from hylift.graph.variables import freeze
from hylift.numerics.grouping import by_number, group_pairs
from hylift.numerics.segments import offsets
from hylift.potentials.alike import TOLERANCE, RowClasses
from hylift.progress import announce_compilation

FloatArray = NDArray[np.float64]

MAX_WEIGHT = 2.0**62
"""Sums of weights stay below, so that they are exact in int64."""

MAX_SCALE = 1 << 20
"""Largest common multiple of the multiplicities of variables by which weights are multiplied."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The scopes of all groups in flat arrays, with the initial colors of variables and factors."""

    slots: NDArray[np.int32]  # (edge,): variable of each slot, factor after factor
    first: NDArray[np.int64]  # (factor + 1,): first edge of each factor
    orbit: NDArray[np.int16]  # (edge,): exchangeable slots of a factor share a number
    weight: NDArray[np.int64]
    """(edge,): how many factors like it each member of the variable in the slot has, in multiples
    of a common unit; empty where all are 1."""
    color: NDArray[np.int32]  # (variable,): domain
    num_colors: int
    kind: NDArray[np.int32]  # (factor,): group and parameters
    num_kinds: int
    offsets: NDArray[np.int64]  # (group + 1,): first factor of each group
    averages: tuple[bool, ...]  # (group,): whether the rows of its potential may be averaged

    @classmethod
    def of(cls, graph: FactorGraph, tolerance: float = TOLERANCE) -> Structure:
        """Structure of a graph without evidence; parameters are compared to a relative tolerance.

        Factors of different groups always differ, even if their potentials are equal:
        `graph.condition()` joins groups of one signature. Of a lifted graph, variables differ by
        what each of their members has. Where these numbers are not multiples of a common unit, so
        that their sums would not be exact, variables of different multiplicity differ, too, and in
        the end factors.
        """
        check_conditioned(graph)
        groups = graph.groups
        _check_sizes(groups)
        kinds, orbits, num_kinds = [], [], 0
        for group in groups:
            found = RowClasses.of(group.potential, tolerance)
            row_class = found.row_to_class[group.row]
            kinds.append(row_class + np.int32(num_kinds))
            orbits.append(_spread_orbit(found.orbits(group.potential), row_class).ravel())
            num_kinds += len(found.first)
        kind = _joined(kinds, np.int32)
        multiplicity = _joined([group.multiplicity for group in groups], np.float64)
        sizes = np.array([(group.arity, len(group)) for group in groups], dtype=np.int64)
        arity = np.repeat(*sizes.reshape(-1, 2).T)
        first = offsets(arity)
        # Read-only whether joined or not: kernels are compiled for one kind of array.
        slots = _joined([group.scope.ravel() for group in groups], np.int32)
        members = graph.variables.multiplicity
        unlike = np.zeros(len(members), dtype=np.uint64)
        weight = _weights(multiplicity, arity, members[slots])
        if weight is None:
            unlike = members.copy().view(np.uint64)
            weight = _weights(multiplicity, arity, np.ones(1))
        if weight is None:
            kind, num_kinds = group_pairs(kind, multiplicity.copy().view(np.uint64))
            weight = np.zeros(0, dtype=np.int64)
        color, num_colors = group_pairs(graph.variables.domain_number, unlike)
        return cls(
            freeze(slots, np.int32),
            freeze(first, np.int64),
            freeze(_joined(orbits, np.int16), np.int16),
            freeze(weight, np.int64),
            color,
            num_colors,
            kind,
            num_kinds,
            offsets([len(group) for group in groups]),
            tuple(group.potential.averages for group in groups),
        )

    @classmethod
    def of_scopes(
        cls,
        scopes: Sequence[NDArray[np.int32]],
        kinds: Sequence[NDArray[np.int32]],
        color: NDArray[np.int32],
    ) -> Structure:
        """Of factors (factor, slot) of some kinds (factor,), others in each array, and of colored
        variables."""
        arity = np.repeat([s.shape[1] for s in scopes], [len(s) for s in scopes]).astype(np.int64)
        of_array = np.repeat(np.arange(len(scopes), dtype=np.uint64), [len(s) for s in scopes])
        kind, num_kinds = group_pairs(_joined(list(kinds), np.int32), of_array)
        color, num_colors = group_pairs(color, np.zeros(len(color), dtype=np.uint64))
        orbits = [np.tile(np.arange(s.shape[1]), len(s)) for s in scopes]
        return cls(
            freeze(_joined([s.ravel() for s in scopes], np.int32), np.int32),
            freeze(offsets(arity), np.int64),
            freeze(_joined(orbits, np.int16), np.int16),
            freeze(np.zeros(0), np.int64),
            color,
            num_colors,
            kind,
            num_kinds,
            offsets([len(s) for s in scopes]),
            tuple(False for _ in scopes),
        )

    @functools.cached_property
    def links(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The factors of each variable: start (variable + 1,), factor (edge,)."""
        owner = np.repeat(np.arange(self.num_factors, dtype=np.int32), np.diff(self.first))
        factors, start = by_number(self.slots, self.num_variables, owner)
        return freeze(start, np.int64), factors

    @property
    def num_variables(self) -> int:
        return len(self.color)

    @property
    def num_factors(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class LiftingInput:
    """A graph with its evidence absorbed and its scopes laid out flat."""

    conditioned: Conditioned
    structure: Structure
    """Of the conditioned graph."""
    tolerance: float

    @classmethod
    def of(cls, graph: FactorGraph | Conditioned, tolerance: float) -> LiftingInput:
        if not isinstance(graph, FactorGraph | Conditioned):
            raise ModelError(
                f"only a FactorGraph can be lifted, not a value of type '{type(graph).__name__}'"
            )
        if not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 1:
            raise ModelError(f"tolerance must be at least 0 and less than 1, not {tolerance!r}")
        announce_compilation()
        found = graph if isinstance(graph, Conditioned) else Conditioned.of(graph)
        return cls(found, Structure.of(found.graph, float(tolerance)), float(tolerance))

    @property
    def source(self) -> FactorGraph:
        """As it was given, with its evidence."""
        return self.conditioned.source


def check_conditioned(graph: FactorGraph) -> None:
    """Raises if the graph has evidence that is not yet absorbed."""
    if len(graph.evidence):
        raise ModelError("a graph with evidence must be conditioned before it is lifted")


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


def _weights(
    multiplicity: FloatArray, arity: NDArray[np.int64], members: FloatArray
) -> NDArray[np.int64] | None:
    """(edge,): multiplicities of factors per member, as integer multiples of a common unit; empty
    where all are 1; None where sums of them might not be exact.

    members: (edge,), of the variable in each slot; or one number for all.
    """
    if (multiplicity == 1).all() and (members == 1).all():
        return np.zeros(0, dtype=np.int64)
    share, times = np.repeat(multiplicity, arity), np.ones(1)
    if not np.fmod(share, members).any():
        share = share / members
    else:
        sizes = np.unique(members)
        scale = math.lcm(*sizes.astype(np.int64).tolist()) if (sizes % 1 == 0).all() else np.inf
        if scale > MAX_SCALE:
            return None
        times = scale / members
    fraction, exponent = np.frexp(share)
    digits = np.ldexp(fraction, 53).astype(np.int64)
    lowest = (digits & -digits).astype(np.float64)  # the lowest bit that is set
    unit = int((exponent - 53 + np.frexp(lowest)[1] - 1).min(initial=0))
    with np.errstate(over="ignore"):
        total = np.ldexp((share * times).sum(), -unit)
    if not total < MAX_WEIGHT:
        return None
    return np.ldexp(share, -unit).astype(np.int64) * times.astype(np.int64)


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0], dtype=dtype)
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)
