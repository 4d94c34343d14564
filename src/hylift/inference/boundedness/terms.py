"""A conditioned graph as sums of quadratics in the reals, and numbers that bound all the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, by_slots
from hylift.inference.boundedness.lower import common_lower
from hylift.inference.decouple import Piece, decouple
from hylift.potentials import REAL, ConditionalQuadratic, Function, Table
from hylift.potentials.base import FloatArray

MAX_FUNCTION_STATES = 2**16
"""Joint states of a function of discrete slots that are all looked at."""

CHUNK = 2**20
"""Numbers that are held at once where factors are looked at one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Factors -½ xᵀ B(d) x + h(d)ᵀ x + k(d) of one shape; open slots come before closed ones.

    A closed slot takes reals that are bounded on both sides. The joint states d of the discrete
    slots lie along one axis, the last slot fastest.
    """

    precision: FloatArray  # (row, state, real slot, real slot): B
    linear: FloatArray  # (row, state, real slot): h
    constant: FloatArray  # (row, state): k
    sizes: tuple[int, ...]  # states of each discrete slot
    discrete: NDArray[np.int64]  # (factor, discrete slot): variable ids
    real: NDArray[np.int64]  # (factor, real slot): variable ids
    row: NDArray[np.int64]  # (factor,)
    multiplicity: FloatArray  # (factor,)
    lower: FloatArray  # (row, open slot, open slot): below B(d) on the open slots, for every d
    label: str

    def __len__(self) -> int:
        return len(self.row)

    @property
    def num_open(self) -> int:
        return int(self.lower.shape[-1])

    @property
    def num_states(self) -> int:
        return int(self.precision.shape[1])

    @property
    def open(self) -> NDArray[np.int64]:
        """(factor, open slot): variable ids."""
        return self.real[:, : self.num_open]

    @property
    def closed(self) -> NDArray[np.int64]:
        """(factor, closed slot): variable ids."""
        return self.real[:, self.num_open :]

    @property
    def is_plain(self) -> bool:
        """Whether there is but one state and no closed slot: nothing is to be bounded."""
        return self.num_states == 1 and self.num_open == self.real.shape[1]

    def take(self, factors: NDArray[Any]) -> Terms:
        return replace(
            self,
            discrete=self.discrete[factors],
            real=self.real[factors],
            row=self.row[factors],
            multiplicity=self.multiplicity[factors],
        )

    def chunks(self) -> Iterable[Terms]:
        """The factors a part at a time, so that arrays (factor, state, …) stay small."""
        entries = self.num_states * max(1, self.real.shape[1]) ** 2
        step = max(1, CHUNK // entries)
        for start in range(0, len(self), step):
            yield self.take(np.arange(start, min(start + step, len(self))))


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A graph of hidden variables, taken apart."""

    graph: FactorGraph
    terms: list[Terms]
    log_constant: float
    """At least the sum of all that does not depend on reals, in whatever state."""
    is_known: bool
    """Whether `log_constant` is a number; functions that are only trusted to be bounded have none.
    """
    assumptions: list[str]
    undecided: list[str]
    unclear: NDArray[np.bool_]
    """(variable,): open reals in functions of the user's own."""

    @property
    def is_ground(self) -> bool:
        return bool((self.graph.variables.multiplicity == 1).all())


def take_apart(graph: FactorGraph) -> Apart:
    """The parts of a graph without evidence."""
    variables = graph.variables
    is_real = variables.num_states == REAL
    closed = is_real & np.isfinite(variables.lower) & np.isfinite(variables.upper)
    apart = Apart(
        graph, [], graph.log_constant, True, [], [], np.zeros(len(variables), dtype=np.bool_)
    )
    constant, is_known = graph.log_constant, True
    for group in graph.groups:
        if not len(group):
            continue
        if isinstance(group.potential, Table):
            constant += _largest(group, group.potential.log_table)
        elif isinstance(group.potential, ConditionalQuadratic):
            terms, rest = _quadratic_terms(group, group.potential, closed)
            apart.terms.extend(terms)
            constant += _largest(group, rest)
        elif isinstance(group.potential, Function):
            found = _function_bound(group, group.potential, apart, is_real & ~closed)
            constant += found or 0.0
            is_known &= found is not None
    if apart.is_ground:
        apart.terms[:] = combined(apart.terms)
    return replace(apart, log_constant=constant, is_known=is_known)


def combined(terms: Sequence[Terms]) -> list[Terms]:
    """The terms with factors of the same variables added up, so that several rules hold together
    what each holds in some states only. Of ground graphs: members of classes may differ."""
    alike: dict[tuple[tuple[int, ...], int, int], list[Terms]] = {}
    for term in terms:
        shape = (term.sizes, term.num_open, term.real.shape[1])
        alike.setdefault(shape, []).append(term)
    found = []
    for (sizes, _, _), same in alike.items():
        scopes = np.concatenate([np.hstack([term.discrete, term.real]) for term in same])
        first, which = _distinct(scopes)
        if not sizes or len(first) == len(scopes):
            found += same
        else:
            found.append(_added_up(same, scopes[first], which))
    return found


def _distinct(scopes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of distinct rows, and which of them each row is."""
    size = int(scopes.max(initial=0)) + 1
    keys: NDArray[np.int64] = scopes
    if size ** scopes.shape[1] < 2**62:
        keys = scopes @ size ** np.arange(scopes.shape[1], dtype=np.int64)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _added_up(terms: Sequence[Terms], scopes: NDArray[np.int64], which: NDArray[np.int64]) -> Terms:
    """Terms of one shape as one factor per scope; which: (factor of all terms,)."""
    one, count = terms[0], len(scopes)
    B = np.zeros((count, *one.precision.shape[1:]))
    h = np.zeros((count, *one.linear.shape[1:]))
    k = np.zeros((count, *one.constant.shape[1:]))
    start = 0
    for term in terms:
        at = which[start : start + len(term)]
        start += len(term)
        m = term.multiplicity
        np.add.at(B, at, m[:, None, None, None] * term.precision[term.row])
        np.add.at(h, at, m[:, None, None] * term.linear[term.row])
        np.add.at(k, at, m[:, None] * term.constant[term.row])
    split, u = one.discrete.shape[1], one.num_open
    return Terms(
        B,
        h,
        k,
        one.sizes,
        scopes[:, :split],
        scopes[:, split:],
        np.arange(count),
        np.ones(count),
        common_lower(B[..., :u, :u]),
        " + ".join(dict.fromkeys(term.label for term in terms if term.label)),
    )


def _largest(group: FactorGroup, log_table: FloatArray) -> float:
    """The sum over factors of the largest entry of each one's table (row, states...)."""
    largest = log_table.reshape(len(log_table), -1).max(axis=1)
    return float(group.multiplicity @ largest[group.row])


def _quadratic_terms(
    group: FactorGroup, potential: ConditionalQuadratic, closed: NDArray[np.bool_]
) -> tuple[list[Terms], FloatArray]:
    """The summands of a group that share no reals, and what is left over, (row, states...).

    Each summand is lowered by its own largest value where it has one, so that a gate that
    switches a distance on leaves a small rest.
    """
    possible = _without_impossible(potential)
    terms: list[Terms] = []
    rest = potential.c.copy()
    for piece in decouple(possible):
        if not isinstance(piece.potential, ConditionalQuadratic):
            continue
        slots = [slot for slot in piece.slots if slot < potential.num_discrete]
        sizes = tuple(potential.c.shape[1 + slot] for slot in slots)
        peak = _peak(-2 * piece.potential.A, piece.potential.b)
        shape = [size if slot in slots else 1 for slot, size in enumerate(potential.c.shape[1:])]
        rest[piece.rows] += peak.reshape(len(peak), *shape)
        terms.extend(_terms_of(group, piece, peak, len(slots), sizes, closed))
    return terms, rest


def _terms_of(
    group: FactorGroup,
    piece: Piece,
    peak: FloatArray,
    split: int,
    sizes: tuple[int, ...],
    closed: NDArray[np.bool_],
) -> list[Terms]:
    """The factors that have a piece, by which of their reals are bounded on both sides."""
    quadratic = piece.potential
    assert isinstance(quadratic, ConditionalQuadratic)
    num_rows, num_states, num_reals = len(peak), math.prod(sizes), quadratic.num_reals
    row_of = np.full(group.potential.num_rows, -1, dtype=np.int64)
    row_of[piece.rows] = np.arange(num_rows)
    factors = np.flatnonzero(row_of[group.row] >= 0)
    scope = group.scope[factors][:, list(piece.slots)].astype(np.int64)
    found = []
    for slots, some in by_slots(closed[scope[:, split:]]):
        order = [i for i in range(num_reals) if i not in slots] + list(slots)
        B = -2 * quadratic.A.reshape(num_rows, num_states, num_reals, num_reals)
        B = B[..., order, :][..., order]
        num_open = num_reals - len(slots)
        found.append(
            Terms(
                B,
                quadratic.b.reshape(num_rows, num_states, num_reals)[..., order],
                -peak.reshape(num_rows, num_states),
                sizes,
                scope[some][:, :split],
                scope[some][:, split:][:, order],
                row_of[group.row[factors[some]]],
                group.multiplicity[factors[some]],
                common_lower(B[..., :num_open, :num_open]),
                group.label,
            )
        )
    return found


def _without_impossible(potential: ConditionalQuadratic) -> ConditionalQuadratic:
    """The quadratic with the reals' part of a possible state wherever the state is impossible.

    There the value is -inf, whatever the reals, so that nothing has to hold them.
    """
    impossible = np.isneginf(potential.c)
    if not impossible.any():
        return potential
    num_rows, states, size = potential.num_rows, potential.c.shape[1:], potential.num_reals
    flags = impossible.reshape(num_rows, -1)
    first = np.argmin(flags, axis=1)
    stand_in = np.where(flags, first[:, None], np.arange(flags.shape[1]))
    rows = np.arange(num_rows)[:, None]
    A = potential.A.reshape(num_rows, -1, size, size)[rows, stand_in]
    b = potential.b.reshape(num_rows, -1, size)[rows, stand_in]
    return ConditionalQuadratic(
        A.reshape(potential.A.shape), b.reshape(potential.b.shape), np.zeros((num_rows, *states))
    )


def _peak(B: FloatArray, h: FloatArray) -> FloatArray:
    """(...): the largest value of -½ xᵀ B x + hᵀ x where there is one, and 0 elsewhere."""
    values, vectors = np.linalg.eigh(B)
    along = np.einsum("...ji,...j->...i", vectors, h)
    small = 1e-12 * np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    flat = values <= small
    drifts = flat & (np.abs(along) > 1e-12 * np.abs(along).max(axis=-1, keepdims=True))
    has_peak = (values >= -small).all(axis=-1) & ~drifts.any(axis=-1)
    squares = np.where(flat, 0.0, along**2 / np.where(flat, 1.0, values))
    return np.where(has_peak, 0.5 * squares.sum(axis=-1), 0.0)


def _function_bound(
    group: FactorGroup, function: Function, apart: Apart, is_open: NDArray[np.bool_]
) -> float | None:
    """The largest sum of the factors of a function of discrete slots; None if not known.

    What is known of it otherwise is noted in `apart`.
    """
    what = f"'{group.label}'" if group.label else "a factor without a label"
    if is_open[group.scope].any():
        apart.unclear[group.scope[is_open[group.scope]]] = True
        at, slot = np.argwhere(is_open[group.scope])[0]
        name = apart.graph.variables.names[int(group.scope[at, slot])]
        apart.undecided.append(
            f"{what} is a function of the user's own, and '{name}' in it has no bounds"
        )
        return None
    if any(states == REAL for states in function.slot_states):
        apart.assumptions.append(f"{what}, a function of the user's own, is bounded above")
        return None
    total = 0.0
    sizes = apart.graph.variables.num_states[group.scope]
    shapes, which = np.unique(sizes, axis=0, return_inverse=True)
    for number, shape in enumerate(shapes):
        num_states = math.prod(shape.tolist())
        if num_states > MAX_FUNCTION_STATES:
            apart.assumptions.append(f"{what}, a function of {num_states} states, is bounded above")
            return None
        grid = [axis.ravel() for axis in np.indices(shape)]
        factors = np.flatnonzero(which.reshape(-1) == number)
        step = max(1, CHUNK // num_states)
        for start in range(0, len(factors), step):
            some = factors[start : start + step]
            values = function.log_value(group.row[some][:, None], grid)
            total += float(group.multiplicity[some] @ values.max(axis=1))
    return total
