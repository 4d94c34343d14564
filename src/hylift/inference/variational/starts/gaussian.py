"""Graphs of reals and quadratics only: their best product is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, cg, splu

from hylift.errors import ModelError
from hylift.inference.variational.problem import FloatArray, Problem
from hylift.posterior.mixture.layout import GAUSSIAN

LARGEST_FACTORISED = 20_000
"""Reals up to which the linear system is factorised; above, conjugate gradients solve it."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianForm:
    """exp(-½ xᵀ J x + hᵀ x), summed over the members of classes where the graph is lifted."""

    J: sp.csr_array  # (variable, variable)
    h: FloatArray  # (variable,)
    precision: FloatArray
    """(variable,): of one member, given all other variables."""

    @classmethod
    def of(cls, problem: Problem) -> GaussianForm | None:
        """The form of a problem, or None if it is not such a one."""
        terms, size = problem.terms, problem.graph.num_variables
        if problem.functions or (problem.layout.family != GAUSSIAN).any() or not size:
            return None
        arity = np.diff(terms.slot_ptr)
        rows, columns, values = [], [], []
        h, diagonal = np.zeros(size), np.zeros(size)
        for r in np.unique(arity).tolist():
            which = np.flatnonzero(arity == r)
            scope = terms.slots[terms.slot_ptr[which][:, None] + np.arange(r)]
            theta = terms.theta[terms.base[which][:, None] + np.arange(r * r + r)]
            theta = theta * terms.multiplicity[which][:, None]
            A = theta[:, : r * r].reshape(-1, r, r)
            h += np.bincount(scope.ravel(), theta[:, r * r :].ravel(), size)
            own = np.diagonal(A, axis1=1, axis2=2)
            diagonal += np.bincount(scope.ravel(), -2 * own.ravel(), size)
            rows.append(np.repeat(scope, r, axis=1).ravel())
            columns.append(np.tile(scope, (1, r)).ravel())
            values.append(-2 * A.ravel())
        if not rows:
            J = sp.csr_array((size, size))
        else:
            at = (np.concatenate(rows), np.concatenate(columns))
            J = sp.csr_array((np.concatenate(values), at), shape=(size, size))
        return cls(J, h, diagonal / problem.multiplicity)

    def means(self, problem: Problem) -> FloatArray:
        """(variable,): where the density is largest; raises if it has no maximum."""
        loose = ~(self.precision > 0)
        if loose.any():
            raise not_held(problem, int(np.argmax(loose)))
        size = len(self.h)
        if size > LARGEST_FACTORISED:
            found = self._by_conjugate_gradients()
            if found is not None:
                return found
        factors = splu(
            self.J.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )  # fmt: skip
        pivots = factors.U.diagonal()
        scale = self.J.diagonal()[np.argsort(factors.perm_c)]
        if not (pivots > 1e-12 * scale).all():
            at = int(np.argsort(factors.perm_c)[np.argmin(pivots / scale)])
            raise not_held(problem, at)
        return np.asarray(factors.solve(self.h))

    def _by_conjugate_gradients(self) -> FloatArray | None:
        diagonal = self.J.diagonal()
        if not (diagonal > 0).all():
            return None
        size = len(self.h)
        scaled = LinearOperator((size, size), matvec=lambda x: x / diagonal)
        found, failed = cg(self.J, self.h, rtol=1e-12, maxiter=2000, M=scaled)
        return None if failed else np.asarray(found)

    def signs(self) -> NDArray[np.float64]:
        """(variable,): ±1, the same where partial correlations are positive, along a maximum
        spanning forest of their sizes."""
        coo = self.J.tocoo()
        off = coo.row != coo.col
        root = np.sqrt(np.abs(self.J.diagonal()))
        partial = -coo.data[off] / (root[coo.row[off]] * root[coo.col[off]])
        shape = self.J.shape
        at = (coo.row[off], coo.col[off])
        forest = csgraph.minimum_spanning_tree(sp.csr_array((-np.abs(partial), at), shape=shape))
        positive = sp.csr_array((partial, at), shape=shape)
        signs = np.ones(shape[0])
        count, label = csgraph.connected_components(forest, directed=False)
        # One more vertex joins the trees, so that one walk visits them all.
        _, roots = np.unique(label, return_index=True)
        joined = sp.coo_array(forest)
        edges = (
            np.concatenate([joined.row, np.full(count, shape[0])]),
            np.concatenate([joined.col, roots]),
        )
        ones = np.ones(len(edges[0]))
        tree = sp.csr_array((ones, edges), shape=(shape[0] + 1, shape[0] + 1))
        order, parent = csgraph.breadth_first_order(tree, shape[0], directed=False)
        inner = order[parent[order] >= 0]
        inner = inner[parent[inner] < shape[0]]
        if not len(inner):
            return signs
        flips = np.sign(np.asarray(positive[inner, parent[inner]]).ravel())
        return _along(signs, inner, parent, flips)


def _along(
    signs: FloatArray, order: NDArray[np.int32], parent: NDArray[np.int32], flips: FloatArray
) -> FloatArray:
    """Signs multiplied down a tree; order: parents before children."""
    from hylift.inference.variational.kernels.coordinate import multiply_down

    multiply_down(signs, order, parent, flips)
    return signs


def not_held(problem: Problem, variable: int) -> ModelError:
    """The error of a real that the model does not hold."""
    name = problem.graph.variables.names[variable]
    return ModelError(
        f"the model is not a distribution: nothing holds '{name}', whose log-density does not fall "
        f"in some direction. Give it bounds, or a rule such as '-0.01 {name}^2'"
    )
