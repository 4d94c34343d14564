"""The joint Gaussian of all reals: its structure, what is quadratic in them alone, its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.exact.elimination import Elimination, eliminate_reals, scope_edges
from hylift.inference.exact.kernels.gaussian import draw
from hylift.inference.expectation.kernels import joint as kernels
from hylift.numerics.segments import inverse, offsets
from hylift.numerics.sparse import connected

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_ENTRIES = 2**27
"""Entries of the factor of the precision matrix."""


@dataclass(frozen=True, eq=False)
class Joint:
    """The structure of the precision matrix, and the part of it that no site changes.

    Entries are the diagonal, by step of the elimination, and then its edges.
    """

    elimination: Elimination
    real: Ids  # (step,): the variable
    step: Ids  # (variable,): its step; -1 for a discrete one
    component_ptr: Ids  # (component + 1,)
    steps: Ids  # the steps of each component, increasing
    base: FloatArray  # (entry,): precision
    linear: FloatArray  # (step,)
    constant: float
    """Of the quadratics of reals alone."""

    @classmethod
    def of(
        cls, graph: FactorGraph, base: Sequence[FactorGroup], scopes: Sequence[NDArray[np.int32]]
    ) -> Joint:
        """base: groups of quadratics of reals alone; scopes: (factor, real slot) of all factors."""
        real = np.flatnonzero(graph.variables.num_states == 0)
        number = inverse(real, graph.num_variables, np.int32)
        edges = scope_edges([number[scope] for scope in scopes], len(real))
        elimination = eliminate_reals(len(real), edges)
        if len(elimination.later) > MOST_ENTRIES:
            raise IntractableError(
                f"the joint Gaussian of {len(real):,} reals has {len(elimination.later):,} "
                "entries: its reals are coupled too densely"
            )
        step = np.full(graph.num_variables, -1, dtype=np.int64)
        step[real] = elimination.step
        component = connected(len(real), elimination.step[edges])
        joint = cls(
            elimination,
            real[elimination.order],
            step,
            offsets(np.bincount(component)) if len(real) else np.zeros(1, dtype=np.int64),
            np.argsort(component, kind="stable"),
            np.zeros(len(real) + len(elimination.later)),
            np.zeros(len(real)),
            0.0,
        )
        return joint._with(base)

    def _with(self, base: Sequence[FactorGroup]) -> Joint:
        entries, linear, constant = self.base, self.linear, self.constant
        for group in base:
            form = group.potential.quadratic()
            assert form is not None
            at, weight = self.step[group.scope], group.multiplicity
            value = -2.0 * form.A[:, 0][group.row] * weight[:, None, None]
            lower = np.tril(np.ones(value.shape[1:], dtype=bool))
            where = self.positions(at)[:, lower].ravel()
            entries = entries + np.bincount(where, value[:, lower].ravel(), len(entries))
            slopes = form.b[:, 0][group.row] * weight[:, None]
            linear = linear + np.bincount(at.ravel(), slopes.ravel(), len(linear))
            constant += float(form.c[:, 0][group.row] @ weight)
        return Joint(
            self.elimination, self.real, self.step, self.component_ptr, self.steps, entries,
            linear, constant,
        )  # fmt: skip

    @property
    def num_components(self) -> int:
        return len(self.component_ptr) - 1

    @cached_property
    def owner(self) -> Ids:
        """(edge,): the step that it begins at."""
        return np.repeat(np.arange(len(self.real)), np.diff(self.elimination.ptr))

    def positions(self, steps: Ids) -> Ids:
        """(factor, real slot, real slot): entries of the pairs of steps (factor, real slot)."""
        first = np.minimum(steps[:, :, None], steps[:, None, :])
        second = np.maximum(steps[:, :, None], steps[:, None, :])
        size = len(self.real)
        known = self.owner * size + self.elimination.later
        edge = np.searchsorted(known, (first * size + second).ravel()).reshape(first.shape)
        return np.where(first == second, first, size + edge)

    def rough_moments(self, variables: Variables) -> tuple[FloatArray, FloatArray]:
        """(variable,): center and scale of each real by itself, by its own quadratics or bounds."""
        own = self.base[: len(self.real)]
        is_proper = own > 0
        precision = np.where(is_proper, own, 1.0)
        center, scale = np.zeros(len(variables)), np.ones(len(variables))
        center[self.real] = np.where(is_proper, self.linear / precision, 0.0)
        scale[self.real] = 1.0 / np.sqrt(precision)
        width = variables.upper - variables.lower
        is_narrow = np.isfinite(width) & (width < 4 * scale)
        with np.errstate(invalid="ignore"):
            middle = variables.lower / 2 + variables.upper / 2
        center = np.clip(np.where(is_narrow, middle, center), variables.lower, variables.upper)
        return center, np.where(is_narrow, width / 4, scale)

    def value(self, mean: FloatArray) -> float:
        """The log-density of the base at the means (step,)."""
        return self.constant + float((self.linear - 0.5 * self.times(self.base, mean)) @ mean)

    def times(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """(step,): a symmetric matrix (entry,) times a vector (step,)."""
        size, later = len(vector), self.elimination.later
        found = matrix[:size] * vector
        found += np.bincount(self.owner, matrix[size:] * vector[later], size)
        return np.asarray(found + np.bincount(later, matrix[size:] * vector[self.owner], size))

    def square(self, vector: FloatArray) -> FloatArray:
        """(entry,): the products of the elements of a vector (step,)."""
        crossed = vector[self.owner] * vector[self.elimination.later]
        return np.concatenate([vector * vector, crossed])


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The current Gaussian; the arrays change with every step."""

    joint: Joint
    entries: FloatArray  # (entry,): precision
    total: FloatArray  # (step,): linear part
    mean: FloatArray  # (step,)
    covariance: FloatArray  # (entry,): of the structure
    log_det: FloatArray  # (component,): of the precision
    failed: NDArray[np.bool_]  # (component,): its precision is not positive definite
    room: tuple[NDArray[Any], ...]

    @classmethod
    def start(cls, joint: Joint) -> Solved:
        size, num_edges = len(joint.real), len(joint.elimination.later)
        whole = [np.zeros(size, dtype=np.int64) for _ in range(3)]
        room = (np.zeros(num_edges), np.zeros(size), np.zeros(size), *whole)
        return cls(
            joint, np.zeros(size + num_edges), np.zeros(size), np.zeros(size),
            np.zeros(size + num_edges), np.zeros(joint.num_components),
            np.zeros(joint.num_components, dtype=bool), room,
        )  # fmt: skip

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """(draw, step): independent draws of the Gaussian."""
        joint, elimination, num_reals = self.joint, self.joint.elimination, len(self.mean)
        draws = rng.standard_normal((size, num_reals))
        bad = draw(
            elimination.ptr, elimination.later, joint.component_ptr, joint.steps,
            np.ones(joint.num_components, dtype=np.int64), np.arange(num_reals), elimination.ptr,
            self.entries[:num_reals], self.total, self.entries[num_reals:], np.array([0, size]),
            draws,
        )  # fmt: skip
        if bad >= 0:
            raise ArithmeticError("the joint Gaussian is not definite, by rounding")
        return draws

    def solve(self, components: Ids) -> None:
        """Means and covariances of some components, whose entries are assembled."""
        joint, elimination = self.joint, self.joint.elimination
        kernels.solve(
            components, joint.component_ptr, joint.steps, elimination.ptr, elimination.later,
            np.arange(len(joint.real)), self.entries, self.total, *self.room, self.mean,
            self.covariance, self.log_det, self.failed,
        )  # fmt: skip
