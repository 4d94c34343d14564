"""The quadratic factors of a graph stacked by shape, and a bound on all other factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, Variables, by_slots
from hylift.potentials import REAL, ConditionalQuadratic, Potential, Table
from hylift.potentials.base import FloatArray
from hylift.rewrite.decouple import Piece, decouple

IntArray = NDArray[np.int64]

MAX_FUNCTION_STATES = 2**16
"""Joint states up to which a function of discrete slots is tabulated."""

CHUNK = 2**20
"""Numbers held at once where factors are enumerated."""

ROUNDING = 1e-13
"""Eigenvalues this small, relative to the largest entries, count as zero."""


def open_reals(variables: Variables) -> NDArray[np.bool_]:
    """(variable,): whether it is a real without two bounds."""
    return (variables.num_states == REAL) & ~np.isfinite(variables.upper - variables.lower)


def joint_state(discrete: IntArray, sizes: Sequence[int], states: IntArray) -> IntArray:
    """(factor, ...): joint states of slots `discrete` (factor, slot); states: (variable, ...)."""
    joint = np.zeros((len(discrete), *states.shape[1:]), dtype=np.int64)
    for slot, size in enumerate(sizes):
        joint = joint * size + states[discrete[:, slot]]
    return joint


@dataclass(frozen=True, slots=True, eq=False)
class Quadratics:
    """Factors -½ xᵀ B(d) x + h(d)ᵀ x + k(d) of one shape; open slots come before closed ones.

    A closed slot takes reals with two bounds. The joint states d of the discrete slots lie along
    one axis, the last slot fastest.
    """

    B: FloatArray  # (row, state, real slot, real slot)
    h: FloatArray  # (row, state, real slot)
    k: FloatArray  # (row, state)
    sizes: tuple[int, ...]  # states of each discrete slot
    discrete: IntArray  # (factor, discrete slot): variable ids
    real: IntArray  # (factor, real slot): variable ids
    row: IntArray  # (factor,)
    multiplicity: FloatArray  # (factor,)
    lower: FloatArray  # (row, open slot, open slot): below B(d) on the open slots, for every d

    @classmethod
    def of(
        cls,
        B: FloatArray,
        h: FloatArray,
        k: FloatArray,
        sizes: tuple[int, ...],
        discrete: IntArray,
        real: IntArray,
        num_open: int,
        row: IntArray | None = None,
        multiplicity: FloatArray | None = None,
    ) -> Quadratics:
        """Factors with the common lower bound of their matrices; a row each unless said."""
        row = np.arange(len(real)) if row is None else row
        multiplicity = np.ones(len(real)) if multiplicity is None else multiplicity
        lower = common_lower(B[..., :num_open, :num_open])
        return cls(B, h, k, sizes, discrete, real, row, multiplicity, lower)

    def __len__(self) -> int:
        return len(self.row)

    @property
    def num_open(self) -> int:
        return int(self.lower.shape[-1])

    @property
    def num_states(self) -> int:
        return int(self.B.shape[1])

    @property
    def open(self) -> IntArray:
        """(factor, open slot): variable ids."""
        return self.real[:, : self.num_open]

    @property
    def closed(self) -> IntArray:
        """(factor, closed slot): variable ids."""
        return self.real[:, self.num_open :]

    @property
    def is_plain(self) -> bool:
        """Whether there is one state and no closed slot, so that nothing has to be bounded."""
        return self.num_states == 1 and self.num_open == self.real.shape[1]

    def take(self, factors: NDArray[Any]) -> Quadratics:
        names = ("discrete", "real", "row", "multiplicity")
        return replace(self, **{name: getattr(self, name)[factors] for name in names})

    def chunks(self) -> Iterator[Quadratics]:
        """The factors a part at a time, so that arrays (factor, state, …) stay small."""
        entries = self.num_states * max(1, self.real.shape[1]) ** 2
        step = max(1, CHUNK // entries)
        for start in range(0, len(self), step):
            yield self.take(np.arange(start, min(start + step, len(self))))

    def sum_by_real(self, values: FloatArray, num_variables: int) -> FloatArray:
        """(variable,): values (factor, open slot), or (factor, 1), summed with multiplicity."""
        each = np.broadcast_to(self.multiplicity[:, None] * values, self.open.shape)
        return np.bincount(self.open.ravel(), each.ravel(), num_variables).astype(np.float64)


@dataclass(slots=True, eq=False)
class Decomposition:
    """A graph without evidence as quadratics, and an upper bound on all other factors."""

    graph: FactorGraph
    is_open: NDArray[np.bool_]  # (variable,)
    in_function: NDArray[np.bool_]  # (variable,): open reals in user-defined functions
    log_constant: float
    """At least the sum of all that does not depend on reals, in any state."""
    is_known: bool = True
    """False if some functions are merely assumed to be bounded."""
    quadratics: list[Quadratics] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, graph: FactorGraph) -> Decomposition:
        is_open = open_reals(graph.variables)
        found = cls(graph, is_open, np.zeros_like(is_open), graph.log_constant)
        for group in graph.groups:
            potential = group.potential
            if not len(group):
                continue
            if isinstance(potential, Table):
                found.log_constant += _largest(group, potential.log_table)
            elif isinstance(potential, ConditionalQuadratic):
                found._add_quadratic(group, potential)
            else:
                bound = found._function_bound(group, potential)
                found.log_constant += bound or 0.0
                found.is_known &= bound is not None
        if found.is_ground:
            found.quadratics = _with_sums(found.quadratics)
        return found

    @property
    def is_ground(self) -> bool:
        return bool((self.graph.variables.multiplicity == 1).all())

    def _add_quadratic(self, group: FactorGroup, potential: ConditionalQuadratic) -> None:
        """Add the summands of a group that share no reals, and bound what is left over.

        Each summand is lowered by its maximum where it has one, so that a gate that switches a
        distance on leaves a small rest.
        """
        rest = potential.c.copy()  # (row, states...)
        for piece in decouple(_without_impossible(potential)):
            if not isinstance(piece.potential, ConditionalQuadratic):
                continue
            slots = [slot for slot in piece.slots if slot < potential.num_discrete]
            peak = _peak(-2 * piece.potential.A, piece.potential.b)
            shape = [n if slot in slots else 1 for slot, n in enumerate(potential.c.shape[1:])]
            rest[piece.rows] += peak.reshape(len(peak), *shape)
            self.quadratics += _stacked(group, piece, piece.potential, peak, self.is_open)
        self.log_constant += _largest(group, rest)

    def _function_bound(self, group: FactorGroup, function: Potential) -> float | None:
        """The largest sum of the factors of a function of discrete slots; None if unknown."""
        what = f"'{group.label}'" if group.label else "a factor without a label"
        is_open = self.is_open[group.scope]
        if is_open.any():
            self.in_function[group.scope[is_open]] = True
            name = self.graph.variables.names[int(group.scope[is_open][0])]
            self.undecided.append(
                f"{what} is a user-defined function, and '{name}' in it has no bounds"
            )
            return None
        if REAL in function.slot_states:
            self.assumptions.append(f"{what}, a user-defined function, is bounded above")
            return None
        total = 0.0
        sizes = self.graph.variables.num_states[group.scope]
        shapes, which = np.unique(sizes, axis=0, return_inverse=True)
        for number, shape in enumerate(shapes):
            num_states = math.prod(shape.tolist())
            if num_states > MAX_FUNCTION_STATES:
                self.assumptions.append(
                    f"{what}, a function of {num_states} states, is bounded above"
                )
                return None
            grid = [axis.ravel() for axis in np.indices(shape)]
            factors = np.flatnonzero(which.reshape(-1) == number)
            step = max(1, CHUNK // num_states)
            for start in range(0, len(factors), step):
                some = factors[start : start + step]
                values = function.log_value(group.row[some][:, None], grid)
                total += float(group.multiplicity[some] @ values.max(axis=1))
        return total


def _with_sums(quadratics: Sequence[Quadratics]) -> list[Quadratics]:
    """Quadratics with factors of the same variables added up, so that several rules together may
    confine a real that each confines in some states only. Of ground graphs: members of classes may
    differ."""
    alike: dict[tuple[tuple[int, ...], int, int], list[Quadratics]] = {}
    for some in quadratics:
        alike.setdefault((some.sizes, some.num_open, some.real.shape[1]), []).append(some)
    found = []
    for (sizes, _, _), same in alike.items():
        scopes = np.concatenate([np.hstack([some.discrete, some.real]) for some in same])
        first, which = _distinct(scopes)
        if not sizes or len(first) == len(scopes):
            found += same
        else:
            found.append(_summed(same, scopes[first], which))
    return found


def _distinct(scopes: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of distinct rows, and which of them each row is."""
    size = int(scopes.max(initial=0)) + 1
    keys: IntArray = scopes
    if size ** scopes.shape[1] < 2**62:
        keys = scopes @ size ** np.arange(scopes.shape[1], dtype=np.int64)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _summed(same: Sequence[Quadratics], scopes: IntArray, which: IntArray) -> Quadratics:
    """Quadratics of one shape as one factor per scope; which: (factor of all,)."""
    one = same[0]
    sums = []
    for name in ("B", "h", "k"):
        each = [getattr(some, name)[some.row] for some in same]
        weights = [some.multiplicity for some in same]
        values = np.concatenate(each)
        values = values * np.concatenate(weights).reshape(-1, *(1,) * (values.ndim - 1))
        sums.append(np.zeros((len(scopes), *values.shape[1:])))
        np.add.at(sums[-1], which, values)
    split = one.discrete.shape[1]
    B, h, k = sums
    return Quadratics.of(B, h, k, one.sizes, scopes[:, :split], scopes[:, split:], one.num_open)


def _largest(group: FactorGroup, log_table: FloatArray) -> float:
    """The sum over factors of the largest entry of each one's table (row, states...)."""
    largest = log_table.reshape(len(log_table), -1).max(axis=1)
    return float(group.multiplicity @ largest[group.row])


def _stacked(
    group: FactorGroup,
    piece: Piece,
    quadratic: ConditionalQuadratic,
    peak: FloatArray,
    is_open: NDArray[np.bool_],
) -> list[Quadratics]:
    """The factors that have a piece, by which of their reals have two bounds."""
    num_rows, num_reals = len(peak), quadratic.num_reals
    split, sizes = quadratic.num_discrete, quadratic.c.shape[1:]
    B = -2 * quadratic.A.reshape(num_rows, -1, num_reals, num_reals)
    h, k = quadratic.b.reshape(num_rows, -1, num_reals), -peak.reshape(num_rows, -1)
    row_of = np.full(group.potential.num_rows, -1, dtype=np.int64)
    row_of[piece.rows] = np.arange(num_rows)
    factors = np.flatnonzero(row_of[group.row] >= 0)
    scope = group.scope[factors][:, list(piece.slots)].astype(np.int64)
    found = []
    for closed, some in by_slots(~is_open[scope[:, split:]]):
        order = [i for i in range(num_reals) if i not in closed] + list(closed)
        found.append(
            Quadratics.of(
                B[..., order, :][..., order],
                h[..., order],
                k,
                sizes,
                scope[some][:, :split],
                scope[some][:, split:][:, order],
                num_reals - len(closed),
                row_of[group.row[factors[some]]],
                group.multiplicity[factors[some]],
            )
        )
    return found


def _without_impossible(potential: ConditionalQuadratic) -> ConditionalQuadratic:
    """The quadratic with c = 0, and A and b of a possible state in place of impossible ones.

    There the density is zero for all values of the reals, so that nothing has to confine them.
    """
    impossible = np.isneginf(potential.c)
    if not impossible.any():
        return potential
    num_rows, size = potential.num_rows, potential.num_reals
    flags = impossible.reshape(num_rows, -1)
    state = np.where(flags, np.argmin(flags, axis=1)[:, None], np.arange(flags.shape[1]))
    rows = np.arange(num_rows)[:, None]
    A = potential.A.reshape(num_rows, -1, size, size)[rows, state]
    b = potential.b.reshape(num_rows, -1, size)[rows, state]
    return ConditionalQuadratic(
        A.reshape(potential.A.shape), b.reshape(potential.b.shape), np.zeros(potential.c.shape)
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


def common_lower(matrices: FloatArray) -> FloatArray:
    """(row, slot, slot): a matrix X below all Y of a row, (row, state, slot, slot): Y - X ⪰ 0.

    That is the least of them where one is below all others, as with a gate that switches a square
    on. Otherwise it is their meet, one after the other; of diagonal matrices that is the minimum.
    """
    if matrices.shape[1] == 1 or not matrices.shape[2]:
        return matrices[:, 0]
    if matrices.shape[2] == 1:
        return matrices.min(axis=1)
    first = np.argmin(np.trace(matrices, axis1=-2, axis2=-1), axis=1)
    least = matrices[np.arange(len(matrices)), first]
    above = np.linalg.eigvalsh(matrices - least[:, None])[..., 0].min(axis=1)
    rounding = ROUNDING * np.abs(matrices).max(axis=(1, 2, 3))
    rows = np.flatnonzero(above < -rounding)
    if len(rows):
        # A meet may be indefinite where no matrix is: then a multiple of 1 is below all.
        met = _meet(matrices[rows])
        smallest = np.linalg.eigvalsh(matrices[rows])[..., 0].min(axis=1)
        lost = np.linalg.eigvalsh(met)[..., 0] < -rounding[rows]
        lost &= smallest >= -rounding[rows]
        least[rows] = np.where(lost[:, None, None], _multiple_of_one(smallest, met), met)
    return least


def without_couplings(matrices: FloatArray) -> FloatArray:
    """(row, slot, slot): diagonal matrices below the given ones; indefinite ones are kept."""
    if matrices.shape[-1] < 3:
        return matrices
    smallest = np.linalg.eigvalsh(matrices)[..., 0]
    is_definite = smallest >= -ROUNDING * np.abs(matrices).max(axis=(-2, -1), initial=0.0)
    return np.where(is_definite[:, None, None], _multiple_of_one(smallest, matrices), matrices)


def _multiple_of_one(smallest: NDArray[Any], matrices: FloatArray) -> FloatArray:
    return np.maximum(smallest, 0.0)[:, None, None] * np.eye(matrices.shape[-1])


def _meet(matrices: FloatArray) -> FloatArray:
    found = matrices[:, 0]
    for state in range(1, matrices.shape[1]):
        # X - (X - Y)₊ is below X, and below Y by (X - Y)₋.
        values, vectors = np.linalg.eigh(found - matrices[:, state])
        positive = np.maximum(values, 0.0)[..., None, :]
        found = found - (vectors * positive) @ np.swapaxes(vectors, -1, -2)
    return 0.5 * (found + np.swapaxes(found, -1, -2))
