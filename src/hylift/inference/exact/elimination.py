"""The order in which variables are eliminated, and the cliques that this makes.

The same structure serves tables (the buckets of variable elimination) and Gaussians (the columns
of a sparse Cholesky factor). A variable is called by its *step*: its position in the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import splu

from hylift.inference.exact.kernels import elimination as kernels

SMALL_TABLES = 100_000
"""Total number of table entries below which no better order is searched for."""

MAX_TRIES = 64
MAX_TRIED_VARIABLES = 200_000
"""Limits of that search: passes, and passes times variables."""


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """An elimination order with the neighbours that each variable has when its turn comes."""

    order: NDArray[np.int32]  # (step,): the variable eliminated
    step: NDArray[np.int32]  # (variable,): when it is eliminated
    ptr: NDArray[np.int64]  # (step + 1,)
    later: NDArray[np.int32]  # steps of the remaining neighbours, increasing within each step

    @property
    def parent(self) -> NDArray[np.int32]:
        """(step,): the first of the later neighbours, or -1."""
        padded = np.append(self.later, np.int32(-1))
        return np.where(np.diff(self.ptr) > 0, padded[self.ptr[:-1]], np.int32(-1))

    def separator_sums(self, per_step: NDArray[np.float64]) -> NDArray[np.float64]:
        """(step,): sum of a number per step over the later neighbours of each."""
        sums = np.zeros(len(self.order))
        some = np.diff(self.ptr) > 0
        sums[some] = np.add.reduceat(per_step[self.later], self.ptr[:-1][some])
        return sums

    def log_cost(self, log_states: NDArray[np.float64]) -> float:
        """Log of the number of entries of all tables together; log_states: (variable,)."""
        by_step = log_states[self.order]
        sizes = by_step + self.separator_sums(by_step)
        return float(np.logaddexp.reduce(sizes)) if len(sizes) else -np.inf


def eliminate_tables(
    log_states: NDArray[np.float64], edges: NDArray[np.int32], *, seed: int = 0
) -> Elimination:
    """An order that keeps the tables of discrete variables small; log_states: (variable,).

    It is greedy, and where the tables are large the best of many: mostly fewest edges filled,
    every fourth time smallest table first, ties broken at random.
    """
    num_variables = len(log_states)
    rng = np.random.default_rng(seed)
    max_tries = int(np.clip(MAX_TRIED_VARIABLES // max(num_variables, 1), 1, MAX_TRIES))
    best, best_cost = None, np.inf
    for attempt in range(max_tries):
        noise = rng.random(num_variables) if attempt else np.zeros(num_variables)
        found = _in_steps(
            *kernels.greedy(num_variables, edges, log_states, noise, attempt % 4 != 3)
        )
        cost = found.log_cost(log_states)
        if best is None or cost < best_cost:
            best, best_cost = found, cost
        if best_cost < np.log(SMALL_TABLES):
            break
    assert best is not None
    return best


def eliminate_reals(num_variables: int, edges: NDArray[np.int32]) -> Elimination:
    """An order that keeps the factor of a sparse matrix sparse: SciPy's minimum degree."""
    if not len(edges):
        order = np.arange(num_variables, dtype=np.int32)
        return Elimination(order, order, np.zeros(num_variables + 1, np.int64), order[:0])
    both = np.concatenate([edges, edges[:, ::-1]])
    degree = np.bincount(both[:, 0], minlength=num_variables)
    links = coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), (num_variables,) * 2)
    # Any dominant matrix with this pattern will do: only the order of its columns is used.
    matrix = diags_array(degree + 1.0, format="csc") - links.tocsc()
    step = splu(
        matrix,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    ).perm_c.astype(np.int32)
    order = np.empty_like(step)
    order[step] = np.arange(num_variables, dtype=np.int32)
    low, high = np.sort(step[edges], axis=1).T
    by_low = np.lexsort((high, low))
    start = np.searchsorted(low[by_low], np.arange(num_variables + 1))
    ptr, later = kernels.symbolic(start, high[by_low])
    return Elimination(order, step, ptr, later)


def scope_edges(scopes: list[NDArray[np.int32]], num_variables: int) -> NDArray[np.int32]:
    """(edge, 2): the pairs of variables that share a factor, each once."""
    codes = [np.zeros(0, dtype=np.int64)]
    for scope in scopes:
        for a in range(scope.shape[1]):
            for b in range(a):
                low = np.minimum(scope[:, a], scope[:, b]).astype(np.int64)
                high = np.maximum(scope[:, a], scope[:, b])
                codes.append(np.unique(low * num_variables + high))
    code = np.unique(np.concatenate(codes))
    return np.stack([code // num_variables, code % num_variables], axis=1).astype(np.int32)


def _in_steps(
    order: NDArray[np.int32], ptr: NDArray[np.int64], later: NDArray[np.int32]
) -> Elimination:
    step = np.empty(len(order), dtype=np.int32)
    step[order] = np.arange(len(order), dtype=np.int32)
    renamed = step[later]
    owner = np.repeat(np.arange(len(order)), np.diff(ptr))
    renamed = renamed[np.lexsort((renamed, owner))]
    return Elimination(order, step, ptr, renamed)
