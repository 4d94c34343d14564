"""The quadratic factors of a graph by shape, and a bound on all other factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, Variables, by_slots
from hylift.graph.factors import join_groups
from hylift.potentials import REAL, ConditionalQuadratic, Potential
from hylift.potentials.base import FloatArray, QuadraticForm
from hylift.rewrite.kinds import by_states, decouple
from hylift.rewrite.merge import add_up

IntArray = NDArray[np.integer[Any]]

MAX_FUNCTION_STATES = 2**16
"""Joint states up to which a function of discrete slots is tabulated."""

CHUNK = 2**20
"""Numbers held at once where factors are enumerated."""

ROUNDING = 1e-13
"""Eigenvalues this small, relative to the largest entries, count as zero."""


def open_reals(variables: Variables) -> NDArray[np.bool_]:
    """(variable,): whether it is a real without two bounds."""
    return (variables.num_states == REAL) & ~np.isfinite(variables.upper - variables.lower)


def joint_state(discrete: NDArray[Any], sizes: Sequence[int], states: IntArray) -> IntArray:
    """(factor, ...): joint states of slots `discrete` (factor, slot); states: (variable, ...)."""
    joint = np.zeros((len(discrete), *states.shape[1:]), dtype=np.int64)
    for slot, size in enumerate(sizes):
        joint = joint * size + states[discrete[:, slot]]
    return joint


@dataclass(frozen=True, slots=True, eq=False)
class OpenFactors:
    """Factors -½ xᵀ B(d) x + h(d)ᵀ x + k(d) of one shape; open slots come before closed ones.

    A closed slot takes reals with two bounds. The joint states d of the discrete slots lie along
    one axis, the last slot fastest.
    """

    group: FactorGroup
    form: QuadraticForm
    """xᵀ A x + bᵀ x + c by row and state: B is -2 A, h is b, k is c."""
    num_open: int
    lower: FloatArray  # (row, open slot, open slot): below B(d) on the open slots, for every d

    @classmethod
    def of(cls, group: FactorGroup, num_open: int) -> OpenFactors:
        """Factors with the common lower bound of their matrices."""
        form = _form(group.potential)
        return cls(group, form, num_open, common_lower(-2 * form.A[..., :num_open, :num_open]))

    def __len__(self) -> int:
        return len(self.group)

    @property
    def curvature(self) -> FloatArray:
        """B: (factor, state, real slot, real slot)."""
        return -2 * self.form.A[self.row]

    @property
    def slope(self) -> FloatArray:
        """h: (factor, state, real slot)."""
        return self.form.b[self.row]

    @property
    def constant(self) -> FloatArray:
        """k: (factor, state)."""
        return self.form.c[self.row]

    @property
    def row(self) -> NDArray[np.int32]:
        return self.group.row

    @property
    def multiplicity(self) -> FloatArray:
        return self.group.multiplicity

    @property
    def sizes(self) -> tuple[int, ...]:
        """States of each discrete slot."""
        return self.group.potential.slot_states[: self.discrete.shape[1]]

    @property
    def discrete(self) -> NDArray[np.int32]:
        """(factor, discrete slot): variable ids."""
        return self.group.scope[:, : -self.form.b.shape[-1]]

    @property
    def real(self) -> NDArray[np.int32]:
        """(factor, real slot): variable ids."""
        return self.group.scope[:, -self.form.b.shape[-1] :]

    @property
    def open(self) -> NDArray[np.int32]:
        """(factor, open slot): variable ids."""
        return self.real[:, : self.num_open]

    @property
    def closed(self) -> NDArray[np.int32]:
        """(factor, closed slot): variable ids."""
        return self.real[:, self.num_open :]

    @property
    def is_plain(self) -> bool:
        """True if there is one state and no closed slot, so that nothing has to be bounded."""
        form = self.form
        return form.c.shape[1] == 1 and self.num_open == form.num_reals

    def joint_state(self, states: IntArray) -> IntArray:
        """(factor,): joint states where variables have these states, (variable,)."""
        return joint_state(self.discrete, self.sizes, states)

    def take(self, factors: NDArray[Any]) -> OpenFactors:
        return replace(self, group=self.group.take(factors))

    def chunks(self) -> Iterator[OpenFactors]:
        """The factors a part at a time, so that arrays (factor, state, …) stay small."""
        step = max(1, CHUNK // math.prod(self.form.A.shape[1:]))
        for start in range(0, len(self), step):
            yield self.take(np.arange(start, min(start + step, len(self))))

    def sum_by_real(self, values: FloatArray, num_variables: int) -> FloatArray:
        """(variable,): values (factor, open slot), or (factor, 1), summed with multiplicity."""
        each = np.broadcast_to(self.multiplicity[:, None] * values, self.open.shape)
        return np.bincount(self.open.ravel(), each.ravel(), num_variables).astype(np.float64)


def _form(potential: Potential) -> QuadraticForm:
    form = potential.quadratic()
    assert form is not None
    return form


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
    quadratics: list[OpenFactors] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, graph: FactorGraph) -> Decomposition:
        is_open = open_reals(graph.variables)
        found = cls(graph, is_open, np.zeros_like(is_open), graph.log_constant)
        for group in graph.groups:
            form = group.potential.quadratic()
            if not len(group):
                continue
            if form is None:
                bound = found._function_bound(group)
                found.log_constant += bound or 0.0
                found.is_known &= bound is not None
            else:
                found._add_quadratic(group, form)
        if found.graph.is_ground:
            found.quadratics = _with_sums(found.quadratics)
        return found

    def _add_quadratic(self, group: FactorGroup, form: QuadraticForm) -> None:
        """Add the summands of a group that share no reals, and bound what is left over.

        Each summand is lowered by its maximum where it has one, so that a gate that switches a
        distance on leaves a small rest.
        """
        sizes = group.potential.slot_states[: group.potential.num_discrete_slots]
        rest = form.c.reshape(len(form.c), *sizes).copy()
        for piece in decouple(_without_impossible(form, sizes)) if form.num_reals else []:
            own = _form(piece.potential)
            if not own.num_reals:
                continue
            peak = _peak(-2 * own.A, own.b)
            states = [n if slot in piece.slots else 1 for slot, n in enumerate(sizes)]
            rest[piece.rows] += peak.reshape(len(peak), *states)
            own_sizes = [n for slot, n in enumerate(sizes) if slot in piece.slots]
            lowered = ConditionalQuadratic.of_form(own._replace(c=-peak), own_sizes)
            self._add_open(replace(piece, potential=lowered).of(group))
        largest = rest.reshape(len(rest), -1).max(axis=1)
        self.log_constant += float(group.multiplicity @ largest[group.row])

    def _add_open(self, group: FactorGroup) -> None:
        """Add quadratics, those with different reals open one after the other."""
        form, split = _form(group.potential), group.potential.num_discrete_slots
        for closed, some in by_slots(~self.is_open[group.scope[:, split:]]):
            order = [i for i in range(form.num_reals) if i not in closed] + list(closed)
            part = group.take(some)
            if closed:
                moved = QuadraticForm(form.A[..., order, :][..., order], form.b[..., order], form.c)
                sizes = group.potential.slot_states[:split]
                part = part.changed(
                    potential=ConditionalQuadratic.of_form(moved, sizes),
                    scope=part.scope[:, [*range(split), *(split + i for i in order)]],
                )
            self.quadratics.append(OpenFactors.of(part, form.num_reals - len(closed)))

    def _function_bound(self, group: FactorGroup) -> float | None:
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
        if REAL in group.potential.slot_states:
            self.assumptions.append(f"{what}, a user-defined function, is bounded above")
            return None
        total, num_states = 0.0, self.graph.variables.num_states
        for some in by_states(group, num_states):
            sizes = num_states[some.scope[0]]
            size = math.prod(sizes.tolist())
            if size > MAX_FUNCTION_STATES:
                self.assumptions.append(f"{what}, a function of {size} states, is bounded above")
                return None
            rows, row = np.unique(some.row, return_inverse=True)
            step = max(1, CHUNK // size)
            tables = (
                some.potential.tabulate(rows[start : start + step], sizes)
                for start in range(0, len(rows), step)
            )
            largest = np.concatenate(
                [table.reshape(len(table), -1).max(axis=1) for table in tables]
            )
            total += float(some.multiplicity @ largest[row])
        return total


def _with_sums(quadratics: Sequence[OpenFactors]) -> list[OpenFactors]:
    """Quadratics with factors of the same variables added up, so that several rules together may
    confine a real that each confines in some states only. Of ground graphs: members of classes may
    differ."""
    alike: dict[Any, list[OpenFactors]] = {}
    for some in quadratics:
        alike.setdefault((some.group.potential.signature, some.num_open), []).append(some)
    found = []
    for same in alike.values():
        joined = join_groups([some.group for some in same])
        total = add_up(joined) if same[0].sizes else joined
        if total is joined:
            found += same
            continue
        flat = total.potential.flat[total.row] * total.multiplicity[:, None]
        total = FactorGroup(total.potential.with_flat(flat), total.scope, label=total.label)
        found.append(OpenFactors.of(total, same[0].num_open))
    return found


def _without_impossible(form: QuadraticForm, sizes: Sequence[int]) -> ConditionalQuadratic:
    """The quadratic with c = 0, and A and b of a possible state in place of impossible ones.

    There the density is zero for all values of the reals, so that nothing has to confine them.
    """
    flags = np.isneginf(form.c)
    state = np.where(flags, np.argmin(flags, axis=1)[:, None], np.arange(flags.shape[1]))
    row = np.arange(len(flags))[:, None]
    possible = QuadraticForm(form.A[row, state], form.b[row, state], np.zeros(form.c.shape))
    return ConditionalQuadratic.of_form(possible, sizes)


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
