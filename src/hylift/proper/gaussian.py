"""Graphs of reals and quadratics only: precision matrix, maximum and definiteness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph

from hylift.errors import DivergentModelError, IntractableError
from hylift.graph import Evidence, FactorGraph, Variables, real
from hylift.numerics.sparse import (
    INDEFINITE,
    SymmetricFactors,
    are_sparse,
    by_conjugate_gradients,
    connected,
    sum_of_blocks,
)
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import FloatArray
from hylift.proper.improper import ImproperDirection

LARGEST_FACTORISED = 20_000
"""Reals up to which the linear system is factorised, if that is cheap; else conjugate gradients
solve it."""
TRIAL_STEPS = 100
"""Steps of conjugate gradients that look for a direction of negative curvature in a large form."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianForm:
    """exp(-½ xᵀ J x + hᵀ x), summed over the members of classes where the graph is lifted."""

    variables: Variables
    J: sp.csr_array  # (variable, variable)
    h: FloatArray  # (variable,)
    precision: FloatArray
    """(variable,): of one member, given all other variables."""
    means: FloatArray
    """(variable,): where the density is largest."""

    @classmethod
    def solved(cls, graph: FactorGraph) -> GaussianForm | None:
        """The form of a graph without evidence, with its maximum; None if it is not Gaussian, or
        its maximum is not found soon.

        Raises if the density is improper. Where only bounds make it proper, it is not Gaussian.
        """
        form = cls.of(graph)
        if form is None:
            return None
        try:
            return replace(form, means=form._maximum())
        except IntractableError:
            return None
        except DivergentModelError:
            bounded = np.isfinite(graph.variables.lower) | np.isfinite(graph.variables.upper)
            if bounded.any():
                return None
            raise

    @classmethod
    def of(cls, graph: FactorGraph) -> GaussianForm | None:
        """The form of a graph without evidence; None if it has other variables or factors."""
        size = graph.num_variables
        if not size or (graph.variables.num_states > 0).any():
            return None
        blocks: list[tuple[NDArray[Any], FloatArray]] = []
        h, diagonal = np.zeros(size), np.zeros(size)
        for group in graph.groups:
            if not len(group) or not group.arity:
                continue
            form = group.potential.quadratic()
            if form is None or (form.c == -np.inf).any():
                return None
            J = -2 * group.multiplicity[:, None, None] * form.A[group.row, 0]
            b = group.multiplicity[:, None] * form.b[group.row, 0]
            own = np.diagonal(J, axis1=1, axis2=2)
            h += np.bincount(group.scope.ravel(), b.ravel(), size)
            diagonal += np.bincount(group.scope.ravel(), own.ravel(), size)
            blocks.append((group.scope, J))
        J = sum_of_blocks(blocks, size)
        precision = diagonal / graph.variables.multiplicity
        return cls(graph.variables, J, h, precision, np.full(size, np.nan))

    @property
    def var(self) -> FloatArray:
        """(variable,): variances of the best product."""
        return 1.0 / self.precision

    def check_definite(self) -> None:
        """Raise if the form has no maximum."""
        if self._is_factorised:
            self._maximum()
        else:
            # A random vector has a part in any direction of negative curvature.
            scale = np.sqrt(np.abs(self.J.diagonal()))
            trial = scale * np.random.default_rng(0).normal(size=len(self.h))
            self._by_conjugate_gradients(trial, TRIAL_STEPS)

    @property
    def _is_factorised(self) -> bool:
        return len(self.h) <= LARGEST_FACTORISED and are_sparse(self.J)

    def _maximum(self) -> FloatArray:
        """(variable,): where the density is largest."""
        flat = ~(self.precision > 0)
        if flat.any():
            raise self._improper(int(np.argmax(flat)))
        if not self._is_factorised:
            found = self._by_conjugate_gradients(self.h)
            if found is not None:
                return found
            if not are_sparse(self.J):
                raise IntractableError(
                    f"the joint Gaussian of {len(self.h):,} reals is coupled too densely to be "
                    "factorised, and conjugate gradients do not find its maximum"
                )
        factors = SymmetricFactors.of(self.J)
        if factors is None:
            raise self._improper(int(np.argmin(self.precision)))
        share = factors.pivots / self.J.diagonal()
        if not (share > 1e-12).all():
            raise self._improper(int(np.argmin(share)))
        return factors.solve(self.h)

    def _by_conjugate_gradients(
        self, right: FloatArray, most_steps: int = 2000
    ) -> FloatArray | None:
        """The solution of J x = right; None if it takes too many steps."""
        diagonal = self.J.diagonal()
        if not (diagonal > 0).all():
            raise self._improper(int(np.argmin(diagonal)))
        found, ended = by_conjugate_gradients(self.J, right, most_steps)
        if ended == INDEFINITE:
            raise self._improper(int(np.argmin(self.precision)))
        return None if ended < 0 else found

    def _improper(self, variable: int) -> DivergentModelError:
        return ImproperDirection.of(self.variables, {variable: 1.0}).error()

    def signs(self) -> NDArray[np.float64]:
        """(variable,): ±1, the same where partial correlations are positive, along a maximum
        spanning forest of their sizes."""
        size, coo = len(self.h), self.J.tocoo()
        off = coo.row != coo.col
        row, column, root = coo.row[off], coo.col[off], np.sqrt(np.abs(self.J.diagonal()))
        values = -coo.data[off] / (root[row] * root[column])
        partial = sp.csr_array((values, (row, column)), shape=self.J.shape)
        row, column = csgraph.minimum_spanning_tree(-abs(partial)).nonzero()
        if not len(row):
            return np.ones(size)
        # Each variable stands twice, once for each sign: an edge joins the two pairs that fit it.
        turned = np.where(np.asarray(partial[row, column]).ravel() < 0, size, 0)
        other = np.concatenate([column + turned, column + size - turned])
        label = connected(2 * size, np.stack([np.concatenate([row, row + size]), other], axis=1))
        return np.where(label[:size] < label[size:], 1.0, -1.0)


def is_dominant(graph: FactorGraph) -> bool:
    """True if the precision of a graph of reals and quadratics is diagonally dominant, which makes
    it proper; a quick sufficient test."""
    size = graph.num_variables
    own, links = np.zeros(size), np.zeros(size)
    for group in graph.groups:
        if not len(group) or not group.arity:
            continue
        form = group.potential.quadratic()
        if form is None or not form.num_reals or form.c.shape[1] > 1:
            return False
        A = form.A[:, 0]
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        beside = np.abs(A).sum(axis=2) - np.abs(diagonal)
        weight = group.multiplicity[:, None]
        scope = group.reals.ravel()
        own -= np.bincount(scope, (weight * diagonal[group.row]).ravel(), size)
        links += np.bincount(scope, (weight * beside[group.row]).ravel(), size)
    return bool((links < own * (1 - 1e-9)).all())


def centred(graph: FactorGraph, means: FloatArray) -> FactorGraph:
    """A Gaussian graph in coordinates in which its maximum is 0.

    There the linear terms of all factors at a variable cancel and can be left out: observed values
    make no difference any more, only which variables were observed.
    """
    groups = []
    for group in graph.groups:
        if not len(group) or not group.arity:
            continue
        form = group.potential.quadratic()
        assert form is not None
        A = form.A[:, 0]
        potential = ConditionalQuadratic(A, np.zeros(A.shape[:-1]), np.zeros(len(A)))
        groups.append(replace(group, potential=potential))
    names, multiplicity = graph.variables.names, graph.variables.multiplicity
    everywhere = np.zeros(len(multiplicity), dtype=np.int32)
    variables = Variables((real,), everywhere, names, multiplicity)
    return FactorGraph.unchecked(variables, groups, Evidence.none(), graph.log_density(means))
