"""The flat layout of terms that local search and Gibbs sampling read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.search.kernels.arrays import (
    ENTRY,
    FLAT,
    INCIDENCE,
    LINK,
    TERM,
    VARIABLE,
    Layout,
)
from hylift.inference.terms import Terms
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.decouple import pieces

FloatArray = NDArray[np.float64]


def flat_terms(graph: FactorGraph, *, whole: bool = False) -> Layout:
    """The terms of a graph without evidence, tables before quadratics; functions are left out.

    A quadratic is taken apart into pieces that share no real, unless it is to stay whole. A class
    that stands in several slots of a factor stands once in its term, which has the values at
    equal states.
    """
    variables = graph.variables
    parted = [p for group in graph.groups for p in _pieces(group, variables.multiplicity, whole)]
    parted.sort(key=lambda piece: not isinstance(piece.potential, Table))  # stable
    num_tables = sum(len(p) for p in parted if isinstance(p.potential, Table))
    flat = Terms.of(parted, variables.num_states)
    counts = [len(p) for p in parted]
    term = np.zeros(len(flat), dtype=TERM)
    term["first"], term["last"], term["base"] = flat.slot_ptr[:-1], flat.slot_ptr[1:], flat.base
    term["middle"] = term["first"] + flat.num_discrete
    sizes = [int(np.prod(_states(p), dtype=np.int64)) for p in parted]
    term["num_joint"] = np.repeat(np.array(sizes, dtype=np.int64), counts)
    term["multiplicity"] = flat.multiplicity
    entry = np.zeros(len(flat.slots), dtype=ENTRY)
    entry["variable"] = flat.slots
    if parted:
        entry["stride"] = np.concatenate([np.tile(_strides(p), len(p)) for p in parted])
    variable = np.zeros(len(variables), dtype=VARIABLE)
    variable["num_states"] = variables.num_states
    variable["lower"], variable["upper"] = variables.lower, variables.upper
    variable["movable"] = ~_function_variables(graph)
    variable["scores"] = _pointers(variable["num_states"])[:-1]
    incidence = _incidence(term, entry, num_tables, variable)
    pair_of, link = _links(term, entry["variable"], variable)
    least = 1e-9 + 1e-13 * _measure(term, entry, flat.theta, variable)
    return Layout(num_tables, term, entry, flat.theta, variable, incidence, pair_of, link, least)


def joint_states(layout: Layout, x: NDArray[np.float64]) -> NDArray[np.int64]:
    """(term,): the joint state of each term at an assignment."""
    if not len(layout.term):
        return np.zeros(0, dtype=np.int64)
    states = layout.entry["stride"] * x[layout.entry["variable"]]
    return np.add.reduceat(states, layout.term["first"]).astype(np.int64)


def _measure(
    term: NDArray[np.void],
    entry: NDArray[np.void],
    theta: NDArray[np.float64],
    variable: NDArray[np.void],
) -> float:
    """About the largest size of a log-value; `variable` learns what is flat, and the units.

    Nothing here changes if a real is measured in other units.
    """
    curve, slope, largest = np.zeros(len(variable)), np.zeros(len(variable)), 0.0
    for rows in rows_by_shape(term, theta):
        m = term["multiplicity"][rows.terms]
        values = np.abs(np.where(np.isfinite(rows.c), rows.c, 0)).max(axis=1, initial=0)
        largest = max(largest, float((m * values[rows.row]).max(initial=0)))
        reals = rows.reals(term, entry)
        bends = np.abs(np.diagonal(rows.A, axis1=2, axis2=3)).max(axis=1, initial=0)
        slopes = np.abs(rows.b).max(axis=1, initial=0)
        np.add.at(curve, reals, m[:, None] * bends[rows.row])
        np.add.at(slope, reals, m[:, None] * slopes[rows.row])
    curved, sloped = curve > 0, slope > 0
    width = variable["upper"] - variable["lower"]
    unit = np.where(sloped, 1 / np.where(sloped, slope, 1), 1.0)
    unit = np.where(curved, 1 / np.sqrt(np.where(curved, curve, 1)), unit)
    variable["unit"] = np.where(width > 0, np.minimum(unit, width), 1.0)
    variable["flat"] = FLAT * curve
    return max(largest, float(((slope * unit) ** 2)[curved].max(initial=0)))


def _function_variables(graph: FactorGraph) -> NDArray[np.bool_]:
    """(variable,): whether it stands in a function, so that its moves are not for the kernels."""
    inside = np.zeros(graph.num_variables, dtype=bool)
    for group in graph.groups:
        if group.potential.quadratic() is None:
            inside[group.scope.ravel()] = True
    return inside


def _pieces(
    group: FactorGroup, multiplicity: NDArray[np.float64], whole: bool
) -> Iterator[FactorGroup]:
    """Groups of tables and quadratics without repeated slots whose sum this group is."""
    if not len(group) or not group.arity or group.potential.quadratic() is None:
        return
    for distinct in _without_repeats(group, multiplicity):
        if whole or isinstance(distinct.potential, Table):
            yield distinct
            continue
        assert isinstance(distinct.potential, ConditionalQuadratic)
        yield from (piece for piece in pieces(distinct) if len(piece) and piece.arity)


def _without_repeats(
    group: FactorGroup, multiplicity: NDArray[np.float64]
) -> Iterator[FactorGroup]:
    """The group, taken apart by which of its slots hold the same class."""
    scope = group.scope
    first = np.tile(np.arange(group.arity), (len(group), 1))
    if (multiplicity != 1).any():
        for slot in range(group.arity):
            for earlier in range(slot - 1, -1, -1):
                first[scope[:, slot] == scope[:, earlier], slot] = earlier
    if (first == np.arange(group.arity)).all():
        yield group
        return
    patterns, which = np.unique(first, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        some = group.take(np.flatnonzero(which.reshape(-1) == number))
        kept, place = np.unique(pattern, return_inverse=True)
        potential = _at_equal_states(some.potential, kept, place)
        yield FactorGroup.unchecked(
            potential, some.scope[:, kept], some.row, some.multiplicity, some.label
        )


def _at_equal_states(
    potential: Any, kept: NDArray[np.int64], place: NDArray[np.int64]
) -> Table | ConditionalQuadratic:
    """The potential of the kept slots; slot i has the value of kept slot place[i]."""
    states = [size for size in (potential.slot_states[slot] for slot in kept) if size]
    num_discrete = sum(size > 0 for size in potential.slot_states)
    grid = np.indices(states)
    at = (slice(None), *(grid[place[slot]] for slot in range(num_discrete)))
    if isinstance(potential, Table):
        return Table(potential.log_table[at])
    # xᵀAx + bᵀx at x = Bz
    B = np.eye(len(kept) - len(states))[place[num_discrete:] - len(states)]
    A, b = potential.A[at], potential.b[at]
    return ConditionalQuadratic(B.T @ A @ B, b @ B, potential.c[at])


def _states(piece: FactorGroup) -> list[int]:
    return [size for size in piece.potential.slot_states if size]


def _strides(piece: FactorGroup) -> NDArray[np.int64]:
    """(slot,): distance between two states of a slot among the joint states; 0 for a real."""
    states = np.array(_states(piece), dtype=np.int64)
    strides = np.zeros(piece.arity, dtype=np.int64)
    strides[: len(states)] = np.append(np.cumprod(states[:0:-1])[::-1], 1)[: len(states)]
    return strides


def _incidence(
    term: NDArray[np.void],
    entry: NDArray[np.void],
    num_tables: int,
    variable: NDArray[np.void],
) -> NDArray[np.void]:
    """Per variable the terms where it stands, tables first; `variable` learns where they are."""
    slots = entry["variable"]
    order = np.argsort(slots, kind="stable")
    terms = np.repeat(np.arange(len(term), dtype=np.int32), term["last"] - term["first"])
    incidence = np.zeros(len(order), dtype=INCIDENCE)
    incidence["term"], incidence["stride"] = terms[order], entry["stride"][order]
    ptr = _pointers(np.bincount(slots, minlength=len(variable)))
    num_entries = int(term["last"][num_tables - 1]) if num_tables else 0
    variable["first"], variable["last"] = ptr[:-1], ptr[1:]
    variable["split"] = ptr[:-1] + np.bincount(slots[:num_entries], minlength=len(variable))
    return incidence


def _links(
    term: NDArray[np.void], slots: NDArray[np.int32], variable: NDArray[np.void]
) -> tuple[NDArray[np.int64], NDArray[np.void]]:
    """The pairs of reals of each term, and the links between reals that share a term.

    `term` and `variable` learn where theirs are.
    """
    num_variables = len(variable)
    num_reals = term["last"] - term["middle"]
    ptr = _pointers(num_reals * (num_reals - 1) // 2)
    term["pair"] = ptr[:-1]
    key = np.empty(ptr[-1], dtype=np.int64)
    for size in np.unique(num_reals[num_reals > 1]):
        some = np.flatnonzero(num_reals == size)
        for at, (i, j) in enumerate(zip(*np.triu_indices(size, 1), strict=True)):
            left, right = slots[term["middle"][some] + i], slots[term["middle"][some] + j]
            low = np.minimum(left, right).astype(np.int64)
            key[ptr[some] + at] = low * num_variables + np.maximum(left, right)
    keys, pair_of = np.unique(key, return_inverse=True)
    low, high = np.divmod(keys, max(num_variables, 1))
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort([target, source])
    link = np.zeros(len(order), dtype=LINK)
    link["other"], link["pair"] = target[order], np.tile(np.arange(len(keys)), 2)[order]
    ends = _pointers(np.bincount(source, minlength=num_variables))
    variable["links"], variable["links_end"] = ends[:-1], ends[1:]
    return pair_of.reshape(-1), link


def _pointers(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Distinct xᵀAx + bᵀx + c by joint state, and the terms that have them; tables have no x."""

    terms: NDArray[np.int64]
    row: NDArray[np.int64]  # (term,)
    A: FloatArray  # (row, joint state, real, real)
    b: FloatArray  # (row, joint state, real)
    c: FloatArray  # (row, joint state)

    @property
    def num_reals(self) -> int:
        return self.b.shape[2]

    def reals(self, term: NDArray[np.void], entry: NDArray[np.void]) -> NDArray[np.int64]:
        """(term, real): the variables."""
        at = term["middle"][self.terms, None] + np.arange(self.num_reals)
        return entry["variable"][at].astype(np.int64)


def rows_by_shape(term: NDArray[np.void], theta: FloatArray) -> Iterator[Rows]:
    """All terms of a layout, by their numbers of reals and joint states."""
    sizes = np.stack([term["last"] - term["middle"], term["num_joint"]])
    span = sizes.max(axis=1, initial=0) + 1
    shapes, shape = np.unique(np.ravel_multi_index(tuple(sizes), span), return_inverse=True)
    for number, key in enumerate(shapes):
        num_reals, num_joint = (int(size) for size in np.unravel_index(key, span))
        some = np.flatnonzero(shape.reshape(-1) == number)
        base, row = np.unique(term["base"][some], return_inverse=True)
        starts = np.cumsum([0, num_joint * num_reals**2, num_joint * num_reals, num_joint])
        A, b, c = (
            theta[base[:, None] + np.arange(first, last)]
            for first, last in pairwise(starts.tolist())
        )
        shaped = len(base), num_joint, num_reals
        yield Rows(some, row.reshape(-1), A.reshape(*shaped, num_reals), b.reshape(shaped), c)
