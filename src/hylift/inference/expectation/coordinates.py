"""Coordinates of sites: their reals, or the few linear combinations of them that matter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError
from hylift.graph import FactorGroup, Variables
from hylift.inference.expectation.joint import FloatArray
from hylift.inference.expectation.numeric import MOST_COORDINATES, BoundSites, FunctionSites
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import QuadraticForm
from hylift.words import method_call, worded

MANY = 3
"""Real slots from which on a quadratic is looked at for directions that it does not depend on."""
SAME = 1e-12
"""Size of a singular value, relative to the largest, that is rounding."""
NEAR, FAR = 10.0 ** np.arange(-2.0, 2.0, 0.5), 10.0 ** np.arange(2.0, 13.0, 0.5)
"""Distances from 0 at which functions are tried."""
NUM_POINTS, STEP, AWAY, FLAT, EQUAL = 8, 1e-4, 0.2, 1e-6, 1e-7
"""Of functions: points at which slopes are taken, by differences of so many standard deviations,
so far from bounds, where they may be steep; size of a direction, relative to the largest, that is
rounding; and of a difference of values."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Sites of one shape: factors of one group whose potentials have as many coordinates."""

    scope: NDArray[np.int32]  # (site, slot)
    num_discrete: int
    multiplicity: FloatArray  # (site,)
    row: NDArray[Any]  # (site,)
    flat: FloatArray  # (row, parameter): A, b and c in its coordinates
    dim: int
    """Coordinates: its reals, or linear combinations of them."""
    basis: FloatArray | None = None  # (row, real slot, coordinate)
    numeric: FunctionSites | BoundSites | None = None
    """The potentials, where they have no closed form."""

    def __len__(self) -> int:
        return len(self.scope)

    @property
    def reals(self) -> NDArray[np.int32]:
        """(site, real slot)"""
        return self.scope[:, self.num_discrete :]

    @property
    def coordinate_of_real(self) -> NDArray[np.int64]:
        """(site, real slot): the coordinate that is this real alone; -1 where there is none."""
        if self.basis is None:
            return np.broadcast_to(np.arange(self.dim), self.reals.shape)
        share = self.basis[self.row] != 0
        is_alone = share & (share.sum(axis=1, keepdims=True) == 1)
        return np.where(is_alone.any(axis=2), np.argmax(is_alone, axis=2), -1)

    @property
    def num_reals(self) -> int:
        return int(self.scope.shape[1]) - self.num_discrete


def in_coordinates(group: FactorGroup) -> list[Piece]:
    """The factors of a group, by the number of directions that their quadratics depend on."""
    potential, num_discrete = group.potential, group.potential.num_discrete_slots
    num_reals = group.arity - num_discrete
    whole = Piece(
        group.scope, num_discrete, group.multiplicity, group.row, potential.flat, num_reals
    )
    form = potential.quadratic()
    if num_reals < MANY or form is None:
        return [whole]
    forms = np.moveaxis(np.concatenate([form.A, form.b[..., None]], axis=3), 1, 2)
    left, size, _ = np.linalg.svd(forms.reshape(len(forms), num_reals, -1), full_matrices=False)
    rank = np.maximum((size > SAME * size[:, :1]).sum(axis=1), 1)
    if (rank == num_reals).all():
        return [whole]
    pieces, sizes = [], potential.slot_states[:num_discrete]
    for dim in np.unique(rank).tolist():
        some, rows = np.flatnonzero(rank[group.row] == dim), np.flatnonzero(rank == dim)
        number = np.zeros(len(rank), dtype=np.int32)
        number[rows] = np.arange(len(rows))
        basis = left[rows, :, :dim]
        A = np.einsum("tia,tsij,tjb->tsab", basis, form.A[rows], basis)
        b = np.einsum("tia,tsi->tsa", basis, form.b[rows])
        own = ConditionalQuadratic.of_form(QuadraticForm(A, b, form.c[rows]), sizes)
        pieces.append(
            Piece(
                group.scope[some], num_discrete, group.multiplicity[some],
                number[group.row[some]], own.flat, dim, basis,
            )
        )  # fmt: skip
    return pieces


def constants(group: FactorGroup, variables: Variables) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(factor,): a value of each function, and whether it is the same, in all states, at points
    near to the middle of the reals and at all distances from it, where any threshold shows."""
    num_discrete = group.potential.num_discrete_slots
    sizes = tuple(variables.num_states[group.scope[0, :num_discrete]].tolist())
    bounds = variables.lower[group.reals], variables.upper[group.reals]
    center = np.clip(np.zeros(group.reals.shape), *bounds)
    functions = FunctionSites(group, sizes, None, *bounds, bounds, (center, center))
    value, some = np.zeros(len(group)), np.arange(len(group))
    for scales, count in ((NEAR, 24), (FAR, 8)):
        points = np.random.default_rng(0).standard_normal((center.shape[1], count, len(scales)))
        x = center[some, :, None] + (points * scales).reshape(center.shape[1], -1)
        try:
            values = functions.log_values(some, x).reshape(len(some), -1)
        except ModelError:  # far out it has no value
            return value, np.zeros(len(group), dtype=bool)
        value[some] = values[:, 0]
        some = some[(values == values[:, :1]).all(axis=1) & np.isfinite(values[:, 0])]
        if not len(some):
            break
    return value, np.isin(np.arange(len(group)), some)


def of_functions(
    group: FactorGroup, variables: Variables, center: FloatArray, scale: FloatArray
) -> list[Piece]:
    """Factors of functions, by the number of directions that they depend on.

    group: of one number of states per slot; center, scale: (variable,), rough moments of reals.
    """
    num_discrete = group.potential.num_discrete_slots
    sizes = tuple(variables.num_states[group.scope[0, :num_discrete]].tolist())
    reals, num_reals = group.reals, group.arity - num_discrete
    bounds = variables.lower[reals], variables.upper[reals]
    center, scale = center[reals], scale[reals]
    whole = FunctionSites(group, sizes, None, *bounds, bounds, (center, scale))
    unit = _directions(whole)
    rank = np.where(np.isnan(unit).any(axis=(1, 2)), num_reals, (unit != 0).any(axis=2).sum(axis=1))
    pieces = []
    for dim in np.unique(rank).tolist():
        if dim > MOST_COORDINATES:
            raise UnsupportedError(
                f"EP integrates functions over up to {MOST_COORDINATES} reals, or linear "
                f"combinations of them, and those of {group.named()} depend on {dim}",
                worded("use ", method_call("EPBP"), " or ", method_call("BVI")),
            )
        some = np.flatnonzero(rank == dim)
        basis = embedding = None
        rough = center[some], scale[some]
        lower, upper = own_bounds = bounds[0][some], bounds[1][some]
        if dim < num_reals:
            along, size = _sparse(unit[some, :dim]), scale[some][:, :, None]
            rough = (
                (along / size * center[some][:, :, None]).sum(axis=1),
                np.sqrt((along**2).sum(axis=1)),
            )
            basis, embedding = along / size, np.linalg.pinv(np.swapaxes(along, 1, 2)) * size
            lower = _of_coordinates(basis, lower, -np.inf)
            upper = _of_coordinates(basis, upper, np.inf)
        own = FunctionSites(group.take(some), sizes, embedding, lower, upper, own_bounds, rough)
        pieces.append(
            Piece(
                group.scope[some], num_discrete, np.ones(len(some)), np.arange(len(some)),
                np.zeros((len(some), 0)), dim, basis, own,
            )
        )  # fmt: skip
    return pieces


def _sparse(unit: FloatArray) -> FloatArray:
    """(factor, real slot, coordinate): the same directions (factor, direction, real slot), each
    with a real that no other has."""
    unit, every = unit.copy(), np.arange(len(unit))
    for row in range(unit.shape[1]):
        pivot = np.argmax(np.abs(unit[:, row]), axis=1)
        unit[:, row] /= unit[every, row, pivot][:, None]
        for other in range(unit.shape[1]):
            if other != row:
                unit[:, other] -= unit[every, other, pivot][:, None] * unit[:, row]
    unit[np.abs(unit) < EQUAL] = 0.0
    return np.swapaxes(unit, 1, 2)


def _of_coordinates(basis: FloatArray, bound: FloatArray, none: float) -> FloatArray:
    """(factor, coordinate): the bound of its only real, whose share is positive; `none` where it
    has several."""
    is_alone = (basis != 0).sum(axis=1) == 1
    share = np.where(is_alone[:, None], basis, 0.0)
    with np.errstate(invalid="ignore"):
        value = np.where(share != 0, share * bound[:, :, None], 0.0).sum(axis=1)
    return np.where(is_alone, value, none)


def _directions(functions: FunctionSites) -> FloatArray:
    """(factor, direction, real slot): orthonormal directions, in units of scale, that a function
    depends on, then zeros; NaN where it seems to depend on all of them."""
    center, scale = functions.rough
    num_factors, num_reals = center.shape
    rng, some = np.random.default_rng(0), np.arange(num_factors)
    low, high = ((bound - center) / scale for bound in functions.bounds)
    points = np.clip(
        rng.standard_normal((NUM_POINTS, num_reals)), (low + AWAY)[:, None], (high - AWAY)[:, None]
    )

    def values(z: FloatArray) -> FloatArray:
        return functions.log_values(some, np.swapaxes(center[:, None] + scale[:, None] * z, 1, 2))

    with np.errstate(invalid="ignore"):
        slopes = [
            (values(points + STEP * unit) - values(points - STEP * unit)) / (2 * STEP)
            for unit in np.eye(num_reals)
        ]
    slope = np.stack(slopes, axis=-1).reshape(num_factors, -1, num_reals)
    unknown = ~np.isfinite(slope).all(axis=(1, 2))
    slope[unknown] = 0.0
    _, size, unit = np.linalg.svd(slope, full_matrices=False)
    unit = np.where((size > FLAT * size[:, :1])[:, :, None], unit, 0.0)
    far = points[:, ::-1] + points[:, :1] / 2
    far = np.clip(far, (low + AWAY)[:, None], (high - AWAY)[:, None])
    found = values(far), values(np.einsum("fki,fri,frj->fkj", far, unit, unit))
    with np.errstate(invalid="ignore"):
        differ = ~(np.abs(found[0] - found[1]) <= EQUAL * (1 + np.abs(found[0])))
    unknown |= (differ & (found[0] != found[1])).any(axis=(1, 2)) | (size[:, 0] == 0)
    unit[unknown] = np.nan
    return unit


def of_bounds(variables: Variables, functions: Iterable[Piece]) -> list[Piece]:
    """A site for each real with a bound that no function keeps."""
    lower, upper = variables.lower, variables.upper
    is_open = (variables.num_states == 0) & (np.isfinite(lower) | np.isfinite(upper))
    for piece in functions:
        if isinstance(piece.numeric, FunctionSites):
            is_open[piece.reals[piece.coordinate_of_real >= 0]] = False
    ids = np.flatnonzero(is_open)
    if not len(ids):
        return []
    return [
        Piece(
            ids[:, None].astype(np.int32), 0, np.ones(len(ids)), np.arange(len(ids)),
            np.zeros((len(ids), 0)), 1, None, BoundSites(lower[ids], upper[ids]),
        )
    ]  # fmt: skip
